"""The JSON examples of the seeds, message by message: the functions send the responses that the documents show.

The seeds are the proposals and drafts from which this package descends. `replay` sends the requests of an example and
compares the responses; replay.py says what may differ. requirements.toml lists all examples and their tests.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from functions.get_weather.app import get_weather
from functions.get_weather.app import handler as weather
from functions.update_work_item.app import handler as work_item
from functions.update_work_item.app import update_work_item
from mcp_functions import serve
from mcp_functions.testing import Conversation
from tests.seeds import functions
from tests.seeds.replay import example, permitted, replay, send

if TYPE_CHECKING:
    from pathlib import Path

LOGIN = {"action": "accept", "content": {"name": "octocat"}}


def test_the_weather_example_of_sep_2322() -> None:
    assert replay(weather, example("sep-2322-get-weather")) is None


def test_the_azure_devops_example_of_sep_2322() -> None:
    assert replay(work_item, example("sep-2322-update-work-item")) is None


@pytest.mark.parametrize(
    ("tool", "name"), [(get_weather, "sep-2322-get-weather"), (update_work_item, "sep-2322-update-work-item")]
)
def test_every_round_of_an_example_may_reach_another_container(tool: Any, name: str) -> None:  # noqa: ANN401 - a handler
    state, messages = None, example(name)
    for start in range(0, len(messages), 2):
        state = replay(serve(tool), messages[start : start + 2], state=state)
    assert state is None


@pytest.mark.parametrize("echoes", [False, True])
def test_an_unrequested_answer_repeats_the_question(*, echoes: bool) -> None:
    request, response = example("sep-2322-missing-answer")
    state = replay(weather, example("sep-2322-get-weather")[:2]) if echoes else None
    received = send(weather, request, state=state)
    # The document answers request 3 under id 2: a slip. "Result responses MUST include the same ID as the request".
    assert received == permitted({**response, "id": request["id"]}, received)


def test_an_answer_after_a_missing_one_continues_the_conversation() -> None:
    request, _response = example("sep-2322-missing-answer")
    state = send(weather, request)["result"]["requestState"]
    assert replay(weather, example("sep-2322-get-weather")[2:], state=state) is None


def test_the_input_required_result_of_the_draft_page() -> None:
    shown = example("draft-page-core-types")["inputRequiredResult"]
    received = send(functions.handler, called("core_types", id=shown["id"]))
    assert received == permitted(shown, received)


@pytest.mark.parametrize(("name", "preferences"), [("draft-page-core-types", False), ("sep-2322-core-types", True)])
def test_the_input_requests_of_both_documents(name: str, *, preferences: bool) -> None:
    talk = Conversation(functions.handler).call("core_types", preferences=preferences)
    assert talk.requests == example(name)["inputRequests"]


@pytest.mark.parametrize("name", ["draft-page-core-types", "sep-2322-core-types"])
def test_the_input_responses_of_both_documents_reach_the_function(name: str) -> None:
    talk = Conversation(functions.handler).call("core_types")
    talk.answer(**example(name)["inputResponses"])
    assert talk.text == "octocat: The capital of France is Paris."


def test_the_error_of_the_sdk_page_for_an_invalid_state() -> None:
    talk = Conversation(work_item).call(workItemId=4522, fields={"System.State": "Resolved"}).tamper()
    # `data` came with the released SDK; code and message are the page's
    shown = {"code": -32602, "message": "Invalid or expired requestState"}
    assert talk.error == {**shown, "data": {"reason": "invalid_request_state"}}


def test_the_example_of_the_sdk_page_asks_on_the_first_call() -> None:
    talk = Conversation(functions.handler).call("region_of", service="DynamoDB")
    assert talk.asked == ["region"]
    assert talk.accept(region={"region": "eu-central-1"}).text == "DynamoDB in eu-central-1"


def test_a_request_state_in_a_file_is_enough_to_continue_in_another_process(tmp_path: Path) -> None:
    """Drive the loop without a client: one leg passes only the content of the file to the next."""
    written = tmp_path / "conversation.json"
    legs = example("sep-2322-update-work-item")[::2]
    written.write_text(json.dumps({"requestState": None}), encoding="utf-8")
    kinds = []
    for leg in legs:
        state = json.loads(written.read_text(encoding="utf-8"))["requestState"]
        result = send(serve(update_work_item), leg, state=state)["result"]
        kinds.append(result["resultType"])
        written.write_text(json.dumps({"requestState": result.get("requestState")}), encoding="utf-8")
    assert kinds == ["input_required", "input_required", "complete"]
    # "Same tool name, same arguments, every leg."
    assert len({json.dumps([leg["params"]["name"], leg["params"]["arguments"]]) for leg in legs}) == 1


def called(name: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - an id
    return {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": name, "arguments": {}}, **options}
