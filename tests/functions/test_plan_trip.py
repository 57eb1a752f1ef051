"""The sample `plan_trip`: the low-level API, with two questions in one round and a typed request state.

`recording` compares a conversation with the API Gateway events in events/plan_trip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from functions.plan_trip.app import handler
from mcp_functions_harness.testing import Conversation

if TYPE_CHECKING:
    from tests.support.recordings import Recording

ANSWERS = {"where": {"city": "Lisbon"}, "when": {"month": "May"}}
PLANNED_TRIP = "5 days in Lisbon in May."


def test_one_round_asks_both_questions(recording: Recording) -> None:
    talk = Conversation(handler).call(days=5)
    assert talk.requests["where"]["params"]["message"] == "Where to?"
    assert talk.requests["when"]["params"]["message"] == "In which month?"
    talk.accept(**ANSWERS)
    assert talk.text == PLANNED_TRIP
    recording.assert_matches(talk, steps=["call", "where-and-when"])


@pytest.mark.parametrize(("first", "second"), [("where", "when"), ("when", "where")])
def test_the_next_round_asks_only_the_question_without_an_answer(first: str, second: str) -> None:
    talk = Conversation(handler).call(days=5).accept(**{first: ANSWERS[first]})
    assert talk.asked == [second]
    assert talk.accept(**{second: ANSWERS[second]}).text == PLANNED_TRIP


def test_the_next_round_asks_only_the_question_with_an_invalid_answer() -> None:
    talk = Conversation(handler).call(days=5).accept(where={"city": 7}, when={"month": "May"})
    assert talk.asked == ["where"]
    assert talk.accept(where={"city": "Lisbon"}).text == PLANNED_TRIP


def test_a_later_answer_does_not_replace_the_first_one() -> None:
    talk = Conversation(handler).call(days=5).accept(where={"city": "Lisbon"})
    talk.accept(where={"city": "Porto"}, when={"month": "May"})
    assert talk.text == PLANNED_TRIP


@pytest.mark.parametrize("key", ["where", "when"])
def test_a_user_who_declines_or_dismisses_a_question_plans_no_trip(key: str) -> None:
    assert Conversation(handler).call(days=5).decline(key).text == "No trip was planned."
    assert Conversation(handler).call(days=5).cancel(key).text == "No trip was planned."


def test_the_function_ignores_an_answer_without_a_request_state() -> None:
    talk = Conversation(handler).call(days=5)
    answer = {"action": "accept", "content": {"city": "Lisbon"}}
    talk._send({"inputResponses": {"where": answer}})  # noqa: SLF001 - `answer` would send the state too
    assert talk.asked == ["where", "when"]


def test_the_request_state_hides_the_answers() -> None:
    talk = Conversation(handler).call(days=5).accept(where={"city": "Lisbon"})
    assert "Lisbon" not in str(talk.result)
