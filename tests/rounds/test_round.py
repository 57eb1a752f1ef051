"""A round reads what the previous one left: no answer is lost, replaced, or given to another question.

`Round.ask` returns the answers to some questions, or raises InputRequired if one is missing. The next round gets the
record and the fingerprints of the open questions as JSON, and the client's responses by key.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_functions.protocol.errors import DeveloperError, InputRequired
from mcp_functions.rounds.input_requests import fingerprint
from mcp_functions.rounds.questions import WireQuestion
from mcp_functions.rounds.round import History, Round, RoundRequest
from mcp_functions.rounds.steps import Step
from mcp_functions.schemas.forms import InvalidAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.protocol.wire_types import JSONObject


def form(message: str) -> JSONObject:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def read(response: dict[str, Any]) -> str:
    """Read the text of an answer; it is invalid if it begins with `bad`."""
    answer = str(response["content"])
    if answer.startswith("bad"):
        message = "it is bad"
        raise InvalidAnswer(message)
    return answer


def accepted(answer: str) -> dict[str, Any]:
    return {"action": "accept", "content": answer}


def ask(round_: Round, key: str, message: str, *, once: bool = False) -> Any:  # noqa: ANN401 - whatever was answered
    (answer,) = round_.ask(WireQuestion(key, form(message), read, once))
    return answer


def ask_in_vain(round_: Round, *keys: str) -> Round:
    """Ask questions together, each with its key as the message; at least one has no answer, which ends the round."""
    with pytest.raises(InputRequired):
        round_.ask(*(WireQuestion(key, form(key), read) for key in keys))
    return round_


def next_round(previous: Round, responses: Mapping[str, Any] | None = None) -> Round:
    """Begin the round after `previous`, with the responses of the client."""
    state = json.dumps([previous.next_record(), previous.questions.open_fingerprints()])
    record, asked = json.loads(state)
    return Round(RoundRequest(responses=responses or {}), History(record=record, asked=asked))


# Laws of whole conversations, which Hypothesis makes.


@dataclass
class Turn:
    """One round of a handler that asks groups of questions, one group after the other."""

    round_: Round = field(compare=False)
    messages: dict[str, str]  # the message of each question in this round, by key
    open_keys: set[str]  # the questions that the client has to answer
    answers: dict[str, str]  # what the handler got, by key
    ended: bool  # True if the handler got all answers


def play(round_: Round, groups: list[list[str]], messages: dict[str, str]) -> Turn:
    """Run the handler in this round."""
    answers: dict[str, str] = {}
    for group in groups:
        try:
            group_answers = round_.ask(*(WireQuestion(key, form(messages[key]), read) for key in group))
        except InputRequired:
            return Turn(round_, messages, set(round_.requests), answers, ended=False)
        answers.update(zip(group, group_answers, strict=True))
    return Turn(round_, messages, set(), answers, ended=True)


KEYS = "abcd"
MAX_ROUNDS = 9

# Each key is in one of four groups; a group without keys is left out.
groups_of_keys = st.lists(st.integers(0, 3), min_size=len(KEYS), max_size=len(KEYS)).map(
    lambda numbers: [
        [key for key, number in zip(KEYS, numbers, strict=True) if number == group] for group in sorted(set(numbers))
    ]
)
# For each round after the first: "good" or "bad" answers by key, to open questions or others.
replies_of_rounds = st.lists(
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["good", "good", "good", "bad"])), max_size=MAX_ROUNDS - 1
)
# For each round: the keys whose message has another wording.
rewordings_of_rounds = st.lists(st.sets(st.sampled_from(KEYS), max_size=2), min_size=MAX_ROUNDS, max_size=MAX_ROUNDS)
NO_REWORDING: Sequence[set[str]] = [set()] * MAX_ROUNDS


def responses_in(number: int, reply: dict[str, str]) -> dict[str, Any]:
    """Return the client's responses; each answer says in which round it was sent: `good:3`."""
    return {key: accepted(f"{quality}:{number}") for key, quality in reply.items()}


def hold(
    groups: list[list[str]], replies: list[dict[str, str]], rewordings: Sequence[set[str]] = NO_REWORDING
) -> list[Turn]:
    """Hold a conversation until its handler ends, or the client has no more replies."""
    turns: list[Turn] = []
    for number, reply in enumerate([{}, *replies]):
        round_ = next_round(turns[-1].round_, responses_in(number, reply)) if turns else Round()
        messages = {key: f"{key}? {key in rewordings[number]}" for key in KEYS}
        turns.append(play(round_, groups, messages))
        if turns[-1].ended:
            break
    return turns


@given(groups_of_keys, replies_of_rounds, rewordings_of_rounds)
def test_an_answer_is_only_delivered_to_the_question_it_was_asked_for(
    groups: list[list[str]], replies: list[dict[str, str]], rewordings: list[set[str]]
) -> None:
    turns = hold(groups, replies, rewordings)
    for turn in turns:
        for key, answer in turn.answers.items():
            quality, number = answer.split(":")
            asked = turns[int(number) - 1]  # the round before the one that brought the answer
            assert quality == "good"
            assert key in asked.open_keys
            assert asked.messages[key] == turn.messages[key]


@given(groups_of_keys, replies_of_rounds)
def test_no_answer_is_lost_or_replaced(groups: list[list[str]], replies: list[dict[str, str]]) -> None:
    turns = hold(groups, replies)
    valid_answers: dict[str, str] = {}
    for number, turn in enumerate(turns):
        assert turn.answers.items() <= valid_answers.items()
        assert not turn.open_keys & valid_answers.keys()
        assert turn.ended is (valid_answers.keys() == set(KEYS))
        next_reply = replies[number] if number < len(replies) else {}
        for key in turn.open_keys & next_reply.keys():
            if next_reply[key] == "good":
                valid_answers[key] = f"good:{number + 1}"


@given(groups_of_keys, replies_of_rounds)
def test_a_repeated_round_does_the_same(groups: list[list[str]], replies: list[dict[str, str]]) -> None:
    turns = hold(groups, replies)
    for number in range(1, len(turns)):
        responses = responses_in(number, replies[number - 1])
        round_ = next_round(turns[number - 1].round_, responses)
        assert play(round_, groups, turns[number].messages) == turns[number]
        assert round_.next_record() == turns[number].round_.next_record()
        assert round_.questions.open_fingerprints() == turns[number].round_.questions.open_fingerprints()


@given(groups_of_keys, replies_of_rounds)
def test_a_round_without_responses_changes_nothing(groups: list[list[str]], replies: list[dict[str, str]]) -> None:
    for turn in hold(groups, replies):
        if not turn.ended:
            round_ = next_round(turn.round_)
            assert play(round_, groups, turn.messages) == turn
            assert round_.next_record() == turn.round_.next_record()


@given(groups_of_keys)
def test_a_client_that_answers_every_question_reaches_the_end(groups: list[list[str]]) -> None:
    every_answer = dict.fromkeys(KEYS, "good")
    turns = hold(groups, [every_answer] * len(groups))
    assert turns[-1].answers.keys() == set(KEYS)
    assert len(turns) == len(groups) + 1


# Examples.


def test_the_first_round_ends_with_the_first_question() -> None:
    round_ = ask_in_vain(Round(), "name")
    assert round_.requests == {"name": form("name")}
    assert round_.questions.open_fingerprints() == {"name": fingerprint(form("name"))}


def test_the_next_round_gets_the_answer_each_time_it_asks() -> None:
    round_ = next_round(ask_in_vain(Round(), "name"), {"name": accepted("Ann")})
    assert ask(round_, "name", "name") == "Ann"
    assert ask(round_, "name", "name") == "Ann"
    assert round_.requests == {}


def test_an_answer_to_another_message_is_asked_again() -> None:
    round_ = next_round(ask_in_vain(Round(), "name"), {"name": accepted("Ann")})
    with pytest.raises(InputRequired):
        ask(round_, "name", "Another message")
    assert round_.questions.open_fingerprints() == {"name": fingerprint(form("Another message"))}
    assert ask(next_round(round_, {"name": accepted("Bob")}), "name", "Another message") == "Bob"


def test_an_answer_without_a_question_answers_nothing() -> None:
    first = ask_in_vain(Round(RoundRequest(responses={"name": accepted("Ann")})), "name")
    ask_in_vain(next_round(first), "name")


def test_an_answer_stays_even_if_a_state_has_its_question_as_open() -> None:
    first = ask_in_vain(Round(), "a", "b")
    second = ask_in_vain(next_round(first, {"a": accepted("Ann")}), "a", "b")
    request = RoundRequest(responses={"a": accepted("Eve")})
    third = Round(request, History(record=second.next_record(), asked=first.questions.open_fingerprints()))
    assert ask(third, "a", "a") == "Ann"


def test_an_answer_is_recorded_even_if_the_round_ends_before_it_is_read() -> None:
    first = ask_in_vain(Round(), "a", "b")
    second = ask_in_vain(next_round(first, {"b": accepted("Bob")}), "a")
    third = next_round(second, {"a": accepted("Ann"), "b": accepted("Eve")})
    assert ask(third, "a", "a") == "Ann"
    assert ask(third, "b", "b") == "Bob"


def test_each_of_two_versions_finds_the_answer_to_its_own_message() -> None:
    old_version = ask_in_vain(Round(), "name")
    new_version = next_round(old_version, {"name": accepted("Ann")})
    with pytest.raises(InputRequired):
        ask(new_version, "name", "New message")
    third = next_round(new_version, {"name": accepted("Bob")})
    assert ask(third, "name", "New message") == "Bob"
    assert ask(next_round(third), "name", "name") == "Ann"


def test_a_call_that_has_its_result_does_not_go_on_because_a_thread_of_its_function_ends_the_round() -> None:
    round_ = Round()
    step = Step(round_)
    step("work", len, "ab")
    round_.close()
    with pytest.raises(InputRequired):
        step.shed()
    ask_in_vain(round_, "name")
    assert (round_.continues, round_.requests) == (False, {})


def test_a_call_that_goes_on_does_not_fail_because_a_thread_of_its_function_then_breaks_a_rule() -> None:
    round_ = ask_in_vain(Round(), "name")
    round_.close()
    with pytest.raises(DeveloperError):
        Step(round_).key  # noqa: B018 - outside of a step
    ask_in_vain(round_, "another")
    assert (round_.continues, round_.error, [*round_.requests]) == (True, None, ["name"])


def test_an_answer_that_is_read_once_counts_once_in_each_round() -> None:
    first = next_round(ask_in_vain(Round(), "page"), {"page": accepted("opened")})
    second = next_round(first)
    for round_ in (first, second):
        assert ask(round_, "page", "page", once=True) == "opened"
    with pytest.raises(InputRequired):
        ask(second, "page", "page", once=True)
    ask_in_vain(next_round(second), "page")


# A key that changes in every round: an answer is not read, and its message is asked again under a new key.

WHO_MESSAGE = fingerprint(form("Who?"))
OTHER = fingerprint(form("Who is it?"))


def renames_key(
    *questions: tuple[str, str],
    asked: Mapping[str, str] = {"old": WHO_MESSAGE},
    recorded: Mapping[str, Any] = {},
    answer: str = "Ann",
) -> bool:
    """Run a round after one that has renamed a key; return whether this one is refused, because it does so as well.

    Args:
        questions: the key and the message of each question that the handler asks.
        asked: the open questions of the previous round; the client answers the key `old`.
        recorded: the earlier answers in the record, by key and fingerprint.
        answer: the client's answer.
    """
    request = RoundRequest(responses={"old": accepted(answer)})
    round_ = Round(request, History(record={"answers": recorded, "lost_answers": 1}, asked=asked))
    for key, message in questions:
        with contextlib.suppress(InputRequired):
            ask(round_, key, message)
    round_.close()
    return isinstance(round_.error, DeveloperError)


def test_the_same_message_under_a_new_key_renames_the_key() -> None:
    assert renames_key(("new", "Who?"))


def test_another_message_under_a_new_key_renames_nothing() -> None:
    assert not renames_key(("new", "Who else?"))
    assert not renames_key(("new", "Who?"), asked={"old": OTHER})


def test_a_key_that_the_previous_round_asked_too_is_not_new() -> None:
    assert not renames_key(("new", "Who?"), asked={"old": WHO_MESSAGE, "new": WHO_MESSAGE})


def test_a_key_with_an_earlier_answer_is_not_new() -> None:
    assert not renames_key(("new", "Who?"), recorded={"new": {OTHER: accepted("Bob")}})


def test_a_message_that_was_read_under_another_key_is_not_lost() -> None:
    recorded = {"other": {WHO_MESSAGE: accepted("Bob")}}
    assert not renames_key(("other", "Who?"), ("new", "Who?"), recorded=recorded)
    assert renames_key(("new", "Who?"), recorded=recorded)  # nothing has read it in this round


def test_an_invalid_answer_is_not_lost() -> None:
    assert not renames_key(("old", "Who?"), ("new", "Who?"), answer="bad")
