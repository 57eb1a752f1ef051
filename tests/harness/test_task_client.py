"""A client that knows tasks, over HTTP, against the harness: it polls, answers and cancels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions_harness import Harness
from mcp_functions_harness.loopback import Loopback, json_response
from mcp_functions_harness.testing import Refused, TaskClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from mcp_functions.protocol.wire_types import ResultObject

APP = '''
from typing import Annotated

from pydantic import BaseModel

from mcp_functions import Ask, Elicit, serve, tool


class Name(BaseModel):
    name: str


@tool(task="allowed")
def greet(*, first: Annotated[Name, Ask("Who are you?")], elicit: Elicit) -> str:
    """Greet a person."""
    if first.name == "nobody":
        raise RuntimeError(first.name)
    return f"Hello {first.name} {elicit('last', 'And then?', Name).name}"


handler = serve(greet)
'''


@pytest.fixture
def url(project: Callable[[dict[str, str]], Path], tmp_path: Path) -> Iterator[str]:
    with Harness(project({"greet/app.py": APP}), state_dir=tmp_path) as harness:
        yield harness.url + "/greet"


def call_tool(name: str) -> Callable[[str, Mapping[str, Any]], dict[str, Any]]:
    """Answer every question with a name."""
    return lambda key, _request: {
        "action": "accept",
        "content": {"name": f"{name}-{key}" if name != "nobody" else name},
    }


def test_a_client_with_tasks_completes_a_call(url: str) -> None:
    told = list[str]()
    client = TaskClient(url, told=lambda task: told.append(task["status"]), sleep=lambda _seconds: None)
    result = client.run("greet", {}, call_tool("Ann"))
    assert result["content"][0]["text"] == "Hello Ann-first Ann-last"
    assert told[-1] == "completed"
    assert "input_required" in told


def test_a_crashed_task_has_a_result_and_an_unanswered_question_is_an_error(url: str) -> None:
    client = TaskClient(url, sleep=lambda _seconds: None)
    assert client.run("greet", {}, call_tool("nobody"))["isError"] is True
    with pytest.raises(Refused, match="this client has no answer to first"):
        client.run("greet", {})
    with pytest.raises(Refused, match="Unknown task"):
        client.cancel("greet.0123456789abcdef012345")


def test_the_task_client_can_cancel_a_task(url: str) -> None:
    client = TaskClient(url, sleep=lambda _seconds: None)
    asking = client.call("greet", {})
    answers = {"first": {"action": "accept", "content": {"name": "Ann"}}}
    task = client.call("greet", {}, inputResponses=answers, requestState=asking["requestState"])
    client.cancel(task["taskId"])
    with pytest.raises(Refused, match="the task was cancelled"):
        client.follow(task, call_tool("Ann"))


def test_the_task_client_waits_before_it_polls_a_task_without_a_new_question() -> None:
    asking: ResultObject = {"taskId": "t.1", "status": "input_required", "inputRequests": {}, "pollIntervalMs": 70}
    completed = {"taskId": "t.1", "status": "completed", "result": {"content": []}}
    slept: list[float] = []
    with Loopback(max_body=10_000) as server:
        server.start(lambda _request: json_response(200, {"jsonrpc": "2.0", "id": 1, "result": completed}))
        client = TaskClient(f"{server.url}/mcp", sleep=slept.append)
        assert client.follow(asking) == {"content": []}
    assert slept == [0.07]


@pytest.mark.parametrize("result", [None, "ab", ["ab"], [["content", []]]])
def test_the_task_client_takes_only_an_object_as_the_result_of_a_task(result: object) -> None:
    asking: ResultObject = {"taskId": "t.1", "status": "working"}
    completed = {"taskId": "t.1", "status": "completed", "result": result}
    with Loopback(max_body=10_000) as server:
        server.start(lambda _request: json_response(200, {"jsonrpc": "2.0", "id": 1, "result": completed}))
        with pytest.raises(ValueError, match="the task is completed, and has no result"):
            TaskClient(f"{server.url}/mcp", sleep=lambda _seconds: None).follow(asking)


def test_a_client_without_the_tasks_extension_gets_rounds(url: str) -> None:
    told = list[object]()
    client = TaskClient(url, capabilities={"elicitation": {}}, told=told.append)
    assert client.run("greet", {}, call_tool("Ann"))["content"][0]["text"] == "Hello Ann-first Ann-last"
    assert told == []
