"""The low level: two requests in one round, and a typed state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from functions.plan_trip.app import handler
from mcp_functions.testing import Conversation

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.local.api_gateway.events import Moment

    Recorded = Callable[[Conversation, list[str]], None]

PLANNED = "5 days in Lisbon in May."


def test_where_and_when_are_asked_in_one_round(recorded: Recorded, moment: Callable[[], Moment]) -> None:
    talk = Conversation(handler, moment=moment).call(days=5)
    assert {key: asked["params"]["message"] for key, asked in talk.requests.items()} == {
        "where": "Where to?",
        "when": "In which month?",
    }
    talk.accept(where={"city": "Lisbon"}, when={"month": "May"})
    assert talk.text == PLANNED
    recorded(talk, ["call", "where-and-when"])


@pytest.mark.parametrize("first", ["where", "when"])
def test_a_user_who_answers_one_question_is_asked_only_the_other(first: str) -> None:
    answers = {"where": {"city": "Lisbon"}, "when": {"month": "May"}}
    talk = Conversation(handler).call(days=5).accept(**{first: answers.pop(first)})
    assert talk.asked == list(answers)
    assert talk.accept(**answers).text == PLANNED


def test_only_the_question_with_an_invalid_answer_is_asked_again() -> None:
    talk = Conversation(handler).call(days=5).accept(where={"city": 7}, when={"month": "May"})
    assert talk.asked == ["where"]
    assert talk.accept(where={"city": "Lisbon"}).text == PLANNED


def test_an_answer_that_was_given_is_not_taken_back() -> None:
    talk = Conversation(handler).call(days=5).accept(where={"city": "Lisbon"})
    assert talk.accept(where={"city": "Porto"}, when={"month": "May"}).text == PLANNED


@pytest.mark.parametrize("key", ["where", "when"])
def test_a_user_who_declines_or_cancels_a_question_plans_no_trip(key: str) -> None:
    assert Conversation(handler).call(days=5).decline(key).text == "No trip was planned."
    assert Conversation(handler).call(days=5).cancel(key).text == "No trip was planned."


def test_answers_before_their_questions_plan_no_trip() -> None:
    talk = Conversation(handler).call(days=5)
    talk._send(  # noqa: SLF001 - a client that answers before it is asked
        inputResponses={"where": {"action": "accept", "content": {"city": "Lisbon"}}}
    )
    assert talk.asked == ["where", "when"]


def test_the_state_is_not_for_the_client_to_read() -> None:
    talk = Conversation(handler).call(days=5).accept(where={"city": "Lisbon"})
    assert "Lisbon" not in str(talk.result)
    assert talk.tamper().error["message"] == "Invalid or expired requestState"
