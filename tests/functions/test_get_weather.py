"""The sample `get_weather`: the first example of SEP-2322, the proposal that added multi-round requests to MCP.

`recording` compares a conversation with the API Gateway events in events/get_weather.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from functions.get_weather.app import handler
from mcp_functions_harness.testing import Conversation

if TYPE_CHECKING:
    from tests.support.recordings import Recording


def test_the_user_gets_the_weather_after_giving_a_name(recording: Recording) -> None:
    talk = Conversation(handler).call(location="New York")
    assert talk.requests == {
        "github_login": {
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": "Please provide your GitHub username",
                "requestedSchema": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}},
                    "required": ["name"],
                },
            },
        }
    }
    talk.accept(github_login={"name": "octocat"})
    assert talk.text == "Current weather in New York:\nTemperature: 72°F\nConditions: Partly cloudy"
    recording.assert_matches(talk, steps=["call", "github_login"])


def test_the_function_ignores_an_unrequested_answer_and_repeats_the_question() -> None:
    talk = Conversation(handler).call(location="New York")
    unrequested = {
        "action": "accept",
        "content": {"not_requested_param_name": "Information the server did not request"},
    }
    assert talk.answer(not_requested_info=unrequested).asked == ["github_login"]


def test_a_user_who_declines_gets_no_weather() -> None:
    talk = Conversation(handler).call(location="New York").decline()
    assert talk.result["isError"]
    assert "weather" not in talk.text
