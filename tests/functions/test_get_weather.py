"""SEP-2322's first example."""

from __future__ import annotations

from typing import TYPE_CHECKING

from functions.get_weather.app import handler
from mcp_functions.testing import Conversation

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.local.api_gateway.events import Moment

    Recorded = Callable[[Conversation, list[str]], None]


def test_a_user_who_gives_a_name_gets_the_weather(recorded: Recorded, moment: Callable[[], Moment]) -> None:
    talk = Conversation(handler, moment=moment).call(location="New York")
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
    recorded(talk, ["call", "github_login"])


def test_an_answer_that_was_not_requested_is_ignored_and_the_question_is_asked_again() -> None:
    talk = Conversation(handler).call(location="New York")
    stranger = {"action": "accept", "content": {"not_requested_param_name": "Information the server did not request"}}
    assert talk.answer(not_requested_info=stranger).asked == ["github_login"]


def test_a_user_who_declines_gets_no_weather() -> None:
    talk = Conversation(handler).call(location="New York").decline()
    assert talk.result["isError"]
    assert "weather" not in talk.text
