"""A prompt that asks before it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from functions.briefing.app import handler
from mcp_functions.testing import Conversation

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.local.api_gateway.events import Moment

    Recorded = Callable[[Conversation, list[str]], None]


def test_a_briefing_is_written_for_its_audience(recorded: Recorded, moment: Callable[[], Moment]) -> None:
    talk = Conversation(handler, moment=moment).call(topic="the outage")
    assert talk.asked == ["audience"]
    assert talk.requests["audience"]["params"]["requestedSchema"]["properties"]["minutes"] == {
        "type": "integer",
        "default": 5,
        "minimum": 1,
        "maximum": 30,
        "description": "How long they have to read it",
    }
    talk.accept(audience={"audience": "executives"})
    assert talk.text == "Write a briefing on the outage for executives, to be read in 5 minutes."
    recorded(talk, ["get", "audience"])


def test_a_prompt_has_no_tool_error_so_a_decline_is_a_json_rpc_error() -> None:
    talk = Conversation(handler).call(topic="the outage").decline()
    assert talk.status == 200
    assert talk.error["code"] == -32602
    assert talk.error["message"].startswith("The user declined to answer: Who is the briefing")


def test_a_missing_argument_is_named() -> None:
    talk = Conversation(handler).call()
    assert talk.error == {"code": -32602, "message": "Argument 'topic': it is missing"}
