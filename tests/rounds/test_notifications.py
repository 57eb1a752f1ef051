"""Progress and log messages reach the client before the result, if its request asks for them.

`Client(work)` has a Lambda function with the tool `work`. Its `messages` are the notifications and the response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import Elicit, Log, Progress, Step, tool
from mcp_functions.rounds.round import Round
from tests.support import wire
from tests.support.dispatching import Client

if TYPE_CHECKING:
    from collections.abc import Callable

LOG_LEVEL = wire.PREFIX + "logLevel"


@tool
def work(*, progress: Progress, log: Log) -> str:
    progress(1, total=2)
    progress(1)  # not sent, because it is no progress
    progress(2, total=2, message="done")
    log.debug("noise")
    log.warning({"disk": "full"}, logger="work")
    return "done"


def call_work(meta: dict[str, Any]) -> list[dict[str, Any]]:
    """Call `work`, and return the notifications that came before its result."""
    client = Client(work)
    assert client.call("work", meta=meta).text == "done"
    return client.messages[:-1]


def test_a_client_that_requested_no_progress_gets_none() -> None:
    assert call_work({}) == []


@pytest.mark.parametrize("token", ["p1", 0, 7])
def test_progress_has_the_token_of_the_request_and_increases(token: str | int) -> None:
    first, second = call_work({"progressToken": token})
    assert first["method"] == second["method"] == "notifications/progress"
    assert first["params"] == {"progressToken": token, "progress": 1, "total": 2}
    assert second["params"] == {"progressToken": token, "progress": 2, "total": 2, "message": "done"}


@pytest.mark.parametrize(
    ("level", "count"), [("debug", 2), ("info", 1), ("warning", 1), ("error", 0), ("emergency", 0)]
)
def test_log_messages_have_the_level_that_the_request_asks_for(level: str, count: int) -> None:
    messages = call_work({LOG_LEVEL: level})
    assert [message["method"] for message in messages] == ["notifications/message"] * count


def test_a_log_message_has_its_level_its_data_and_its_logger() -> None:
    (message,) = call_work({LOG_LEVEL: "warning"})
    assert message["params"] == {"level": "warning", "data": {"disk": "full"}, "logger": "work"}


@pytest.mark.parametrize(
    ("report", "rule"),
    [
        pytest.param(
            lambda progress, _log: progress(1, message=object()),
            "is text, and not of type …",
            id="the message of progress",
        ),
        pytest.param(
            lambda _progress, log: log.error("full", logger=object()),
            "JSON cannot carry what log.… was given",
            id="the logger of a log message",
        ),
        pytest.param(
            lambda _progress, log: log.error(object()),
            "JSON cannot carry what log.… was given",
            id="the data of a log message",
        ),
    ],
)
def test_progress_or_a_log_message_outside_json_fails_the_tool(
    report: Callable[[Progress, Log], None], rule: str, caplog: pytest.LogCaptureFixture
) -> None:
    @tool(name="work")
    def report_and_work(*, progress: Progress, log: Log) -> str:
        report(progress, log)
        return "done"

    reply = Client(report_and_work).call("work", meta={"progressToken": 1, LOG_LEVEL: "info"})
    assert reply.result["isError"] is True
    assert rule in caplog.text


def test_a_round_that_replays_the_work_reports_no_progress_again_under_one_token() -> None:
    @tool(name="work")
    def work_and_ask(*, progress: Progress, step: Step, elicit: Elicit) -> str:
        for part in range(1, 5):
            progress(part, total=4)  # before the step, as a task does
            step(f"part-{part}", str, part)
            if part in {2, 3}:
                elicit(f"go-on-{part}", "Shall I go on?", bool)
        return "done"

    client = Client(work_and_ask)
    told: list[float] = []
    inputs: dict[str, Any] = {}
    for part in (2, 3, 4):
        reply = client.call("work", meta={"progressToken": "one"}, **inputs)
        told += [message["params"]["progress"] for message in client.messages[:-1]]
        answer = {"action": "accept", "content": {f"go-on-{part}": True}}
        inputs = {"state": reply.result.get("requestState"), "answers": {f"go-on-{part}": answer}}
    assert reply.text == "done"
    assert told == [1, 2, 3, 4]


def test_a_total_of_progress_outside_json_is_omitted() -> None:
    @tool
    def endless(*, progress: Progress) -> str:
        progress(1, total=float("inf"))
        return "done"

    client = Client(endless)
    assert client.call("endless", meta={"progressToken": 1}).result["isError"] is False
    assert client.messages[0]["params"] == {"progressToken": 1, "progress": 1}


@pytest.mark.parametrize(("total", "message"), [(None, "3"), (0, "3"), (8, "3 of 8")])
def test_a_progress_message_includes_the_total_if_there_is_one(total: float | None, message: str) -> None:
    round_ = Round()
    Progress(round_)(3, total=total)
    assert round_.progress_message == message
