"""A state of a form or of a question in text opens only in its way of asking, and for its caller, tool and function."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypedDict

import pytest

from mcp_functions import Elicit, serve, tool
from mcp_functions import store as tables
from mcp_functions_harness.environment import TABLE
from mcp_functions_harness.testing import Conversation, MemoryTable
from tests.apps.tools import APPS, FORMS, NOTHING, Ledger, book, host, rate, request, state_in
from tests.support import wire

if TYPE_CHECKING:
    from mcp_functions.http.gateway import LambdaFunction

REFUSED = {"code": -32602, "message": "Invalid or expired requestState", "data": {"reason": "invalid_request_state"}}
WINDOW: dict[str, Any] = {"seat": {"action": "accept", "content": {"seat": "window"}}}
TRIP: dict[str, Any] = {"city": "Lisbon"}


@tool(single_use="reject", ask_in_words=["seat"])
def reserve(city: str, *, elicit: Elicit) -> str:
    """Reserve a seat, once."""
    return f"{elicit('seat', 'Which seat?', str)} to {city}"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> MemoryTable:
    kept = MemoryTable(TABLE)
    monkeypatch.setattr(tables, "make_call", lambda: kept)
    return kept


class Nothing(TypedDict):
    """A form without a field."""


class StatesOfOneQuestion:
    """One function, and a state of each way of asking for the same question."""

    def __init__(self, function: LambdaFunction) -> None:
        self.function = function
        self.states = {
            "client": self.call("book", TRIP, FORMS)["result"]["requestState"],
            "app": self.call("book", TRIP, APPS)["result"]["_meta"]["mcp-functions/form"]["state"],
            "model": state_in(self.call("book", TRIP, NOTHING)["result"]["content"][0]["text"]),
        }

    def call(self, name: str, arguments: dict[str, Any], declared: dict[str, Any], **more: Any) -> dict[str, Any]:  # noqa: ANN401
        params = {"name": name, "arguments": arguments, **more}
        return request(self.function, "tools/call", params, capabilities=declared)

    def present(self, state: str, to: str) -> dict[str, Any]:
        """Send a state in a way of asking, with the answer to its question."""
        if to == "client":
            return self.call("book", TRIP, FORMS, requestState=state, inputResponses=WINDOW)
        declared, name = (APPS, "book-form") if to == "app" else (NOTHING, "book-answer")
        return self.call(name, {"state": state, "answers": WINDOW}, declared)


@pytest.fixture(params=["the seal", "a codec of the author's"])
def question(request: pytest.FixtureRequest) -> StatesOfOneQuestion:
    return StatesOfOneQuestion(serve(book) if request.param == "the seal" else serve(book, codec=wire.PlainCodec()))


@pytest.mark.parametrize("to", ["client", "app", "model"])
@pytest.mark.parametrize("of", ["client", "app", "model"])
def test_a_state_opens_only_in_its_own_way_of_asking(question: StatesOfOneQuestion, of: str, to: str) -> None:
    received = question.present(question.states[of], to)
    assert received.get("error") == (None if of == to else REFUSED)


@pytest.mark.parametrize(
    "answers", [{}, {"other": WINDOW["seat"]}, {"agree": {"action": "accept", "content": {"agree": True}}}]
)
def test_an_answer_to_a_question_that_the_state_does_not_have_is_ignored(answers: dict[str, Any]) -> None:
    talk = host(book).call(city="Lisbon")
    assert talk.submit("book-form", state=talk.form["state"], answers=answers).asked == ["seat"]


def test_a_call_of_an_answer_tool_runs_with_the_arguments_in_the_state() -> None:
    talk = host(book).call(city="Lisbon")
    talk.submit("book-form", state=talk.form["state"], answers=WINDOW, city="Rome")
    assert talk.messages["agree"].startswith("A window seat to Lisbon")


def test_a_state_of_another_person_is_refused() -> None:
    talk = host(book, principal="alice").call(city="Lisbon")
    thief = talk.as_("mallory").submit("book-form", state=talk.form["state"], answers=WINDOW)
    assert thief.error == REFUSED
    assert talk.accept(seat="window").asked == ["agree"]


def test_a_state_of_another_tool_of_the_same_function_is_refused() -> None:
    talk = host(book, rate).call("book", city="Lisbon")
    assert talk.submit("rate-form", state=talk.form["state"], answers=WINDOW).error == REFUSED


@pytest.mark.parametrize(
    "change", [lambda state: f"{state}A", lambda state: state[:-1], lambda _state: "ks1.", lambda _state: ""]
)
def test_a_changed_state_is_refused(change: Any) -> None:  # noqa: ANN401 - a function
    talk = host(book).call(city="Lisbon")
    assert talk.submit("book-form", state=change(talk.form["state"]), answers=WINDOW).error == REFUSED


@pytest.mark.parametrize(
    "arguments",
    [{}, {"state": 7}, {"state": "x", "answers": []}, {"state": "x", "answers": {"a": 1}}, {"state": "x", "check": 1}],
)
def test_malformed_arguments_of_an_answer_tool_are_refused(arguments: dict[str, Any]) -> None:
    talk = host(book).submit("book-form", **arguments)
    assert (talk.status, talk.error["code"]) == (400, -32602)


# ---- A chat that is opened again


def test_a_form_in_a_reopened_chat_can_be_answered() -> None:
    talk = host(book).call(city="Lisbon")
    assert talk.submit("book-form", state=talk.form["state"], check=True).form == {"status": "open"}


def test_a_form_expires_with_its_state() -> None:
    now = [1_785_000_000.0]
    talk = Conversation(serve(book, now=lambda: now[0]), capabilities=APPS).call(city="Lisbon")
    form = talk.form
    assert form["expires"] == (now[0] + 600) * 1000
    now[0] += 600
    for more in ({"check": True}, {"answers": WINDOW}):
        assert talk.submit("book-form", state=form["state"], **more).error == REFUSED


def test_without_a_table_a_form_can_be_answered_again_until_it_expires() -> None:
    talk = host(book).call(city="Lisbon")
    state = talk.form["state"]
    for _ in range(2):
        assert talk.submit("book-form", state=state, answers=WINDOW).asked == ["agree"]


def test_with_a_table_a_form_is_answered_once(table: MemoryTable) -> None:
    talk = host(reserve).call(city="Lisbon")
    state = talk.form["state"]
    assert talk.submit("reserve-form", state=state, check=True).form["status"] == "open"
    assert talk.submit("reserve-form", state=state, answers=_seat("4a")).text == "4a to Lisbon"
    assert talk.submit("reserve-form", state=state, check=True).error == REFUSED
    assert talk.submit("reserve-form", state=state, answers=_seat("5b")).error == REFUSED
    assert len(table.items) == 1


def test_a_repeated_answer_gets_the_recorded_outcome_by_default(table: MemoryTable) -> None:
    @tool(task="allowed")
    def order(*, elicit: Elicit) -> str:
        return elicit("seat", "Which seat?", str)

    talk = host(order).call()
    state = talk.form["state"]
    for _ in range(2):
        assert talk.submit("order-form", state=state, answers=_seat("4a")).text == "4a"
    assert talk.submit("order-form", state=state, answers=_seat("5b")).error == REFUSED
    assert len(table.items) == 1


def _seat(number: str) -> dict[str, Any]:
    return {"seat": {"action": "accept", "content": {"seat": number}}}


# ---- Who answered


@pytest.mark.parametrize(("declared", "who"), [(FORMS, "client"), (APPS, "app")])
def test_the_audit_and_the_log_say_who_answered(
    declared: dict[str, Any], who: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    ledger = Ledger()
    talk = Conversation(serve(book, audit=ledger.write), capabilities=declared)
    talk.call(city="Lisbon").accept(seat="window").accept(agree=True)
    assert [(record.round, dict(record.answered), record.answered_by) for record in ledger.records] == [
        (1, {}, "client"),
        (2, {"seat": "accept"}, who),
        (3, {"agree": "accept"}, who),
    ]
    assert list(ledger.records[0].asked) == ["seat"]
    assert len({record.flow for record in ledger.records}) == 1
    lines = [vars(line) for line in caplog.records if line.name == "mcp_functions"]
    assert [line.get("answered_by") for line in lines][-3:] == [None, who, who]


# ---- Words: the model relays an answer, where the author allows it


def test_a_model_may_relay_an_answer_if_the_author_allows_it() -> None:
    ledger = Ledger()
    talk = Conversation(serve(book, audit=ledger.write), capabilities=NOTHING).call(city="Lisbon")
    assert "Only the user can answer this." in talk.text
    assert "call book-answer with" in talk.text
    assert talk.result["isError"] is False
    talk.submit("book-answer", state=state_in(talk.text), answers=WINDOW)
    assert ledger.records[-1].answered_by == "model"
    assert talk.result["isError"] is True, "the next question is a consent, which no model relays"
    assert "It asks: A window seat to Lisbon costs 70 EUR. Book it?" in talk.text


def test_a_question_in_words_is_an_error_result_if_the_tool_has_an_output_schema() -> None:
    @tool(ask_in_words=["stars"])
    def stars(*, elicit: Elicit) -> dict[str, int]:
        return {"stars": elicit("stars", "How many stars?", int)}

    talk = host(stars, capabilities=NOTHING).call()
    assert talk.result["isError"] is True
    talk.submit(
        "stars-answer", state=state_in(talk.text), answers={"stars": {"action": "accept", "content": {"stars": 3}}}
    )
    assert talk.result["structuredContent"] == {"stars": 3}


@pytest.mark.parametrize("kind", ["page", "consent", "nothing to fill in", "another key"])
def test_a_model_cannot_relay_a_page_a_consent_or_an_answer_that_the_author_did_not_allow(kind: str) -> None:
    @tool(ask_in_words=["it"])
    def ask(*, elicit: Elicit) -> str:
        if kind == "page":
            elicit.url("it", "Sign in", "https://bank.example/login")
        if kind == "consent":
            elicit("it", "Delete everything?", bool)
        if kind == "nothing to fill in":
            elicit("it", "Go on?", Nothing)
        return elicit("other", "What?", str)

    talk = host(ask, capabilities=NOTHING).call()
    assert talk.result["isError"] is True
    assert talk.text.startswith("Not finished: this client declares no way to ask its user. It asks: ")
    assert "ks1." not in talk.text


def test_a_model_cannot_answer_with_the_state_of_a_form() -> None:
    """The attacker is a model that sees the calls of the app, and the pending result with its `_meta`."""
    ledger = Ledger()
    talk = Conversation(serve(book, audit=ledger.write), capabilities=APPS).call(city="Lisbon")
    state = talk.form["state"]
    for name, arguments in [
        ("book-answer", {"state": state, "answers": WINDOW}),
        ("book", {"city": "Lisbon", "state": state, "answers": WINDOW}),
    ]:
        talk.submit(name, **arguments)
        assert "error" in talk.body or talk.result["isError"] is True
    assert not any(record.answered for record in ledger.records)


def test_another_function_refuses_the_state_of_a_form() -> None:
    state = host(book).call(city="Lisbon").form["state"]
    other = Conversation(serve(book), function="another", capabilities=APPS)
    assert other.submit("book-form", state=state, answers=WINDOW).error == REFUSED
