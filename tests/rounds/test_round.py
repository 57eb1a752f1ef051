"""The laws of replay: nothing answered is lost, nothing is delivered to another question, nothing accepted changes."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from mcp_functions import ElicitRequest, InputRequiredResult, InputResponses, ListRootsRequest
from mcp_functions.protocol.errors import DeveloperError, InputRequired
from mcp_functions.rounds.asking import WireQuestion
from mcp_functions.rounds.input_requests import fingerprint
from mcp_functions.rounds.round import Round, RoundRequest
from mcp_functions.schemas.forms import InvalidAnswer

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import JSONObject


def question(words: str) -> JSONObject:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": words, "requestedSchema": schema}}


def read(response: dict[str, Any]) -> str:
    answer = str(response["content"])
    if answer.startswith("bad"):
        message = "it is bad"
        raise InvalidAnswer(message)
    return answer


def said(answer: str) -> dict[str, Any]:
    return {"action": "accept", "content": answer}


def ask(round_: Round, key: str, words: str, *, once: bool = False) -> Any:  # noqa: ANN401 - whatever was answered
    (answer,) = round_.ask(WireQuestion(key, question(words), read, once))
    return answer


# A conversation, as a server and its client hold it: groups of questions in order, each group asked at once.


@dataclass
class Turn:
    """The outcome of one round."""

    opened: dict[str, str]  # key -> words that are now with the client
    delivered: dict[str, str]  # key -> answer that the handler was given
    finished: bool


@dataclass
class Talk:
    """One conversation; between its rounds only JSON is carried."""

    groups: list[list[str]]
    record: Any = field(default_factory=dict)
    asked: Any = field(default_factory=dict)

    def turn(self, responses: dict[str, Any], words: dict[str, str]) -> Turn:
        turn, round_ = self.run(responses, words)
        again, same = self.run(responses, words)  # a retry that the server sees twice
        assert (again, same.next_record(), same.questions.open_fingerprints()) == (
            turn,
            round_.next_record(),
            round_.questions.open_fingerprints(),
        )
        if not turn.finished:  # only a round that asks leaves a state
            self.record, self.asked = json.loads(
                json.dumps([round_.next_record(), round_.questions.open_fingerprints()])
            )
        return turn

    def run(self, responses: dict[str, Any], words: dict[str, str]) -> tuple[Turn, Round]:
        round_ = Round(RoundRequest(responses=responses), self.record, self.asked)
        delivered: dict[str, str] = {}
        try:
            for group in self.groups:
                answers = round_.ask(*(WireQuestion(key, question(words[key]), read) for key in group))
                delivered |= dict(zip(group, answers, strict=True))
        except InputRequired:
            return Turn({key: words[key] for key in round_.requests}, delivered, finished=False), round_
        return Turn({}, delivered, finished=True), round_


KEYS = "abcd"
groups = st.permutations(KEYS).flatmap(
    lambda keys: st.lists(st.integers(1, 3), min_size=1, max_size=4).map(
        lambda sizes: [
            list(keys[sum(sizes[:n]) : sum(sizes[: n + 1])]) for n in range(len(sizes)) if keys[sum(sizes[:n]) :]
        ]
    )
)
quality = st.sampled_from(["good", "good", "good", "bad"])
replies = st.lists(st.dictionaries(st.sampled_from(KEYS), quality, max_size=4), max_size=8)  # to open questions or not
wordings = st.lists(st.dictionaries(st.sampled_from(KEYS), st.integers(0, 1), max_size=2), min_size=9, max_size=9)


def hold(talk: Talk, replies: list[dict[str, str]], changes: list[dict[str, int]]) -> list[tuple[dict[str, str], Turn]]:
    """Hold a conversation; an answer says in which round it was sent. Returns the words and the turn of each round."""
    turns = []
    for number, reply in enumerate([{}, *replies]):
        words = {key: f"{key}? {changes[number].get(key, 0)}" for key in KEYS}
        responses = {key: said(f"{quality}:{number}") for key, quality in reply.items()}
        try:
            turns.append((words, talk.turn(responses, words)))
        except DeveloperError:
            assert any(changes)  # a question that never stays the same is refused, sooner or later
            break
        if turns[-1][1].finished:
            break
    return turns


@given(groups, replies, wordings)
def test_an_answer_is_only_delivered_to_the_question_it_was_asked_for(
    groups: list[list[str]], replies: list[dict[str, str]], changes: list[dict[str, int]]
) -> None:
    turns = hold(Talk(groups), replies, changes)
    for number, (words, turn) in enumerate(turns):
        for key, answer in turn.delivered.items():
            quality, sent_in = answer.split(":")
            assert quality == "good"
            assert (
                0 < int(sent_in) <= number
            )  # the first request brings no answer, because the server has asked nothing yet
            assert turns[int(sent_in) - 1][1].opened[key] == words[key]


@given(groups, replies)
def test_no_answer_is_lost_or_replaced(groups: list[list[str]], replies: list[dict[str, str]]) -> None:
    turns = hold(Talk(groups), replies, [{}] * 9)
    accepted: dict[str, str] = {}
    for number, (_words, turn) in enumerate(turns):
        if number:
            opened = turns[number - 1][1].opened
            new = {key: f"good:{number}" for key, quality in replies[number - 1].items() if quality == "good"}
            accepted = {**{key: answer for key, answer in new.items() if key in opened}, **accepted}
        assert not turn.opened.keys() & accepted.keys()
        assert turn.delivered == {key: accepted[key] for group in groups for key in group if key in turn.delivered}
        assert turn.finished is all(key in accepted for group in groups for key in group)


@given(groups, replies)
def test_a_round_without_answers_changes_nothing(groups: list[list[str]], replies: list[dict[str, str]]) -> None:
    talk = Talk(groups)
    (words, last) = hold(talk, replies, [{}] * 9)[-1]
    if last.finished:
        return
    before = (talk.record, talk.asked)
    assert talk.turn({}, words) == last
    assert (talk.record, talk.asked) == before


@given(groups)
def test_a_client_that_answers_every_question_reaches_the_end(groups: list[list[str]]) -> None:
    talk, words = Talk(groups), {key: key for key in KEYS}
    turn = talk.turn({}, words)
    for _group in groups:
        assert not turn.finished
        turn = talk.turn({key: said("good") for key in turn.opened}, words)
    assert turn.finished
    assert turn.delivered == {key: "good" for group in groups for key in group}


def follow(round_: Round, responses: dict[str, Any] | None = None) -> Round:
    """Begin the round after `round_`: between them there is only JSON."""
    record, asked = json.loads(json.dumps([round_.next_record(), round_.questions.open_fingerprints()]))
    return Round(RoundRequest(responses=responses or {}), record, asked)


def opened(*words: str) -> Round:
    """End a round that asks some questions together, each under its words as key."""
    round_ = Round()
    with pytest.raises(InputRequired):
        round_.ask(*(WireQuestion(word, question(word), read) for word in words))
    return round_


def test_the_first_round_ends_with_the_first_question() -> None:
    round_ = Round()
    with pytest.raises(InputRequired):
        ask(round_, "name", "Who?")
    assert round_.requests == {"name": question("Who?")}
    assert round_.questions.open_fingerprints() == {"name": fingerprint(question("Who?"))}
    assert round_.record.answers == {}


def test_the_call_that_asked_returns_the_answer() -> None:
    round_ = follow(opened("Who?"), {"Who?": said("Ann")})
    assert ask(round_, "Who?", "Who?") == "Ann"
    assert ask(round_, "Who?", "Who?") == "Ann"
    assert round_.requests == {}


def test_an_answer_to_another_message_is_asked_again() -> None:
    round_ = follow(opened("who"), {"who": said("Ann")})
    with pytest.raises(InputRequired):
        ask(round_, "who", "Who are you?")
    assert round_.questions.open_fingerprints() == {"who": fingerprint(question("Who are you?"))}
    later = follow(round_, {"who": said("Bo")})
    assert ask(later, "who", "Who are you?") == "Bo"


def test_an_answer_without_a_question_answers_nothing() -> None:
    round_ = Round(RoundRequest(responses={"name": said("Ann")}))
    with pytest.raises(InputRequired):
        ask(round_, "name", "Who?")
    with pytest.raises(InputRequired):
        ask(follow(round_), "name", "Who?")


def test_a_later_answer_does_not_replace_an_accepted_one() -> None:
    second = follow(opened("a", "b"), {"a": said("Ann")})
    with pytest.raises(InputRequired):
        second.ask(WireQuestion("a", question("a"), read), WireQuestion("b", question("b"), read))
    third = follow(second, {"a": said("Eve"), "b": said("yes")})
    assert ask(third, "a", "a") == "Ann"
    # even if the state lists the question as open again
    forced = Round(
        RoundRequest(responses={"a": said("Eve")}), second.next_record(), opened("a").questions.open_fingerprints()
    )
    assert ask(forced, "a", "a") == "Ann"


def test_an_answer_is_kept_even_if_the_round_ends_before_it_is_read() -> None:
    round_ = follow(opened("a", "b"), {"b": said("yes")})
    with pytest.raises(InputRequired):
        ask(round_, "a", "a")
    later = follow(round_, {"a": said("no"), "b": said("Eve")})
    assert (ask(later, "a", "a"), ask(later, "b", "b")) == ("no", "yes")


def test_an_answer_that_does_not_fit_is_asked_again_with_the_reason_under_the_same_fingerprint() -> None:
    first = opened("Who?")
    round_ = follow(first, {"Who?": said("bad")})
    with pytest.raises(InputRequired):
        ask(round_, "Who?", "Who?")
    asked: Any = round_.requests["Who?"]
    assert asked["params"]["message"] == "Who? (Please answer again: it is bad.)"
    assert round_.questions.open_fingerprints() == first.questions.open_fingerprints()
    assert ask(follow(round_, {"Who?": said("Ann")}), "Who?", "Who?") == "Ann"


def test_two_questions_under_one_key_are_the_developers_error() -> None:
    round_ = follow(opened("name"), {"name": said("Ann")})
    ask(round_, "name", "name")
    expected = "two different questions under the key 'name': give each question a key of its own"
    with pytest.raises(DeveloperError, match=expected):
        ask(round_, "name", "Who else?")


def test_except_exception_cannot_swallow_the_signal() -> None:
    def careless(round_: Round) -> Any:  # noqa: ANN401 - whatever was answered
        try:
            return ask(round_, "name", "Who?")
        except Exception:  # noqa: BLE001 - as a careless author writes
            return "nobody"

    with pytest.raises(InputRequired):
        careless(Round())


def test_a_bare_except_cannot_undo_the_end_of_a_round() -> None:
    round_ = Round()
    with contextlib.suppress(BaseException):
        ask(round_, "name", "Who?")
    assert round_.input_required


def test_a_broken_rule_ends_the_round_even_if_it_is_caught() -> None:
    round_ = Round()
    for words in ("Who?", "Who else?"):
        with contextlib.suppress(BaseException):
            ask(round_, "name", words)
    assert str(round_.error) == "two different questions under the key 'name': give each question a key of its own"


def test_questions_asked_together_are_open_together() -> None:
    round_ = Round()
    with pytest.raises(InputRequired):
        round_.ask(WireQuestion("a", question("A?"), read), WireQuestion("b", question("B?"), read))
    assert round_.requests == {"a": question("A?"), "b": question("B?")}


def test_only_the_open_questions_of_a_group_are_asked_again() -> None:
    together = [WireQuestion("a", question("a"), read), WireQuestion("b", question("b"), read)]
    round_ = follow(opened("a", "b"), {"b": said("yes")})
    with pytest.raises(InputRequired):
        round_.ask(*together)
    assert round_.requests.keys() == {"a"}
    assert follow(round_, {"a": said("no")}).ask(*together) == ["no", "yes"]


def test_the_outcome_of_one_question_waits_for_the_answers_to_the_others() -> None:
    def no(_response: object) -> str:
        message = "no"
        raise LookupError(message)

    together = [WireQuestion("a", question("a"), no), WireQuestion("b", question("b"), read)]
    with pytest.raises(InputRequired):
        follow(opened("a", "b"), {"a": said("x")}).ask(*together)
    with pytest.raises(LookupError):
        follow(opened("a", "b"), {"a": said("x"), "b": said("y")}).ask(*together)


def test_an_answer_for_one_reading_holds_in_every_round_but_only_once_in_each() -> None:
    first = follow(opened("page"), {"page": said("yes")})
    assert ask(first, "page", "page", once=True) == "yes"
    later = follow(first)
    assert ask(later, "page", "page", once=True) == "yes"
    with pytest.raises(InputRequired):
        ask(later, "page", "page", once=True)
    with pytest.raises(InputRequired):
        ask(follow(later), "page", "page", once=True)


def test_a_question_that_says_something_else_in_every_round_is_the_developers_error() -> None:
    def ask_by_the_clock() -> None:
        round_ = Round()
        for minute in range(20):
            with pytest.raises(InputRequired):
                ask(round_, "name", f"It is 12:{minute}. Who?")
            round_ = follow(round_, {"name": said("Ann")})

    with pytest.raises(DeveloperError, match="the question 'name' says something else in every round"):
        ask_by_the_clock()


WHO, OTHERWISE = fingerprint(question("Who?")), fingerprint(question("Who is it?"))


@pytest.mark.parametrize(
    ("answers", "asked", "response", "asks", "refused"),
    [
        ({}, {"old": WHO}, "Ann", [("new", "Who?")], True),
        ({}, {"old": WHO}, "Ann", [("new", "Who else?")], False),
        ({}, {"old": OTHERWISE}, "Ann", [("new", "Who?")], False),
        ({}, {"old": WHO, "new": WHO}, "Ann", [("new", "Who?")], False),
        ({"new": {OTHERWISE: said("Bo")}}, {"old": WHO}, "Ann", [("new", "Who?")], False),
        ({"other": {WHO: said("Bo")}}, {"old": WHO}, "Ann", [("other", "Who?"), ("new", "Who?")], False),
        ({"other": {WHO: said("Bo")}}, {"old": WHO}, "Ann", [("new", "Who?")], True),
        ({}, {"old": WHO}, "bad", [("old", "Who?"), ("new", "Who?")], False),
    ],
    ids=[
        "a new key",
        "a new question",
        "new words under a new key",
        "asked in the last round too",
        "a reworded question",
        "the words were read under another key",
        "the words could be read under another key",
        "the answer does not fit",
    ],
)
def test_a_key_changes_in_every_round_if_an_answered_question_gets_an_unknown_key(
    answers: dict[str, Any], asked: dict[str, str], response: str, asks: list[tuple[str, str]], *, refused: bool
) -> None:
    record = {"answers": answers, "lost_answers": 1}  # the last round did the same
    round_ = Round(RoundRequest(responses={"old": said(response)}), record, asked)
    for key, words in asks:
        with contextlib.suppress(InputRequired):
            ask(round_, key, words)
    round_.close()
    assert bool(round_.error) is refused
    assert ("lost_answers" in round_.next_record()) is refused


def test_two_alternating_versions_each_find_the_answer_to_their_own_message() -> None:
    old = opened("name")
    new = follow(old, {"name": said("Ann")})
    with pytest.raises(InputRequired):
        ask(new, "name", "New words")
    both = follow(new, {"name": said("Bo")})
    assert ask(both, "name", "New words") == "Bo"
    assert ask(follow(both), "name", "name") == "Ann"


# The low level: a function ends the round itself.


class Draft(BaseModel):
    """The state of a low-level function."""

    step: int = 0


class Name(BaseModel):
    """The form of its question."""

    name: str


def test_a_low_level_function_returns_its_questions_and_its_state() -> None:
    round_ = Round()
    with pytest.raises(InputRequired):
        InputRequiredResult({"who": ElicitRequest("Who?", Name), "roots": ListRootsRequest()}, Draft(step=1)).end_round(
            round_
        )
    assert list(round_.requests) == ["who", "roots"]
    assert round_.questions.open_fingerprints() == {key: fingerprint(asked) for key, asked in round_.requests.items()}
    assert follow(round_).record.state == '{"step":1}'


def test_a_low_level_function_may_continue_without_a_question() -> None:
    round_ = Round()
    with pytest.raises(InputRequired):
        InputRequiredResult(request_state=Draft(step=2)).end_round(round_)
    assert round_.requests == {}
    assert follow(round_).record.state == '{"step":2}'


def test_a_low_level_function_may_ask_without_a_state() -> None:
    first = Round()
    with pytest.raises(InputRequired):
        InputRequiredResult(request_state=Draft(step=1)).end_round(first)
    round_ = follow(first)
    with pytest.raises(InputRequired):
        InputRequiredResult({"roots": ListRootsRequest()}).end_round(round_)
    assert follow(round_).record.state is None


def test_a_result_that_requires_nothing_is_the_developers_error() -> None:
    with pytest.raises(DeveloperError, match="an InputRequiredResult needs input_requests or a request_state"):
        InputRequiredResult().end_round(Round())


def test_proven_answers_are_separate_from_unproven_ones() -> None:
    fingerprint_ = fingerprint(ListRootsRequest().wire())
    round_ = Round(RoundRequest(responses={"roots": {"roots": []}, "other": said("x")}), asked={"roots": fingerprint_})
    assert dict(InputResponses(round_)) == {"roots": {"roots": []}}
    assert InputResponses(round_).unproven == {"other": said("x")}


def test_a_question_of_a_later_round_needs_its_own_answer() -> None:
    round_ = Round()
    for uri in ("file:///a", "file:///b"):
        with pytest.raises(InputRequired):
            InputRequiredResult({"roots": ListRootsRequest()}).end_round(round_)
        round_ = follow(round_, {"roots": {"roots": [{"uri": uri}]}})
        assert InputResponses(round_)["roots"] == {"roots": [{"uri": uri}]}


def test_the_first_round_has_no_state() -> None:
    assert Round().record.state is None
