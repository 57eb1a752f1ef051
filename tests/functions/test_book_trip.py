"""The sample `book_trip`: the steps reserve, ask, pay. `bank` is a payment API that charges an idempotency key once.

`recording` compares a conversation with the API Gateway events in events/book_trip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from functions.book_trip import app
from functions.book_trip.app import Flight, handler
from mcp_functions_harness.testing import Conversation

if TYPE_CHECKING:
    from tests.support.recordings import Recording

QUESTION = "Flight MF 106 to Lisbon costs 420 EUR. Book it?"


class Bank:
    """A payment API with idempotency keys: a second call with the same key charges nothing."""

    def __init__(self) -> None:
        self.calls = 0
        self.charged: dict[str, int] = {}

    def pay(self, euros: int, key: str) -> str:
        self.calls += 1
        self.charged.setdefault(key, euros)
        return f"receipt {list(self.charged).index(key) + 1}"


@pytest.fixture
def bank(monkeypatch: pytest.MonkeyPatch) -> Bank:
    bank = Bank()
    monkeypatch.setattr(app, "pay", bank.pay)
    return bank


def test_the_bank_charges_the_user_only_after_the_consent(recording: Recording, bank: Bank) -> None:
    talk = Conversation(handler).call(city="Lisbon")
    assert talk.requests["consent"]["params"]["message"] == QUESTION
    assert bank.calls == 0
    talk.accept(consent=True)
    assert talk.text == "Booked MF 106 to Lisbon: receipt 1."
    assert list(bank.charged.values()) == [420]
    recording.assert_matches(talk, steps=["call", "consent"])


def test_a_repeated_last_request_charges_the_user_once(bank: Bank) -> None:
    talk = Conversation(handler).call(city="Lisbon").accept(consent=True)
    talk.retry()
    assert talk.text == "Booked MF 106 to Lisbon: receipt 1."
    assert bank.calls == 2  # no later request state records the payment, so the step runs again with the same key
    assert list(bank.charged.values()) == [420]


def test_two_conversations_make_two_charges(bank: Bank) -> None:
    for number in (1, 2):
        talk = Conversation(handler).call(city="Lisbon").accept(consent=True)
        assert talk.text == f"Booked MF 106 to Lisbon: receipt {number}."
    assert list(bank.charged.values()) == [420, 420]


def test_the_user_pays_the_price_that_the_question_named(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Conversation(handler).call(city="Lisbon")
    monkeypatch.setattr(app, "reserve", lambda _city: Flight(number="MF 999", euros=9999))
    assert talk.accept(consent=True).text == "Booked MF 106 to Lisbon: receipt 1."
    assert list(bank.charged.values()) == [420]


def test_a_user_who_answers_no_pays_nothing(bank: Bank) -> None:
    talk = Conversation(handler).call(city="Lisbon").accept(consent=False)
    assert talk.text == "Nothing was booked."
    assert bank.calls == 0


def test_a_user_who_declines_the_question_pays_nothing(bank: Bank) -> None:
    talk = Conversation(handler).call(city="Lisbon").decline()
    assert talk.result["isError"]
    assert talk.text == f"The user declined to answer: {QUESTION}"
    assert bank.calls == 0


def test_a_user_who_dismisses_the_question_pays_nothing(bank: Bank) -> None:
    talk = Conversation(handler).call(city="Lisbon").cancel()
    assert talk.text == f"The user dismissed without answering: {QUESTION}"
    assert bank.calls == 0


def test_the_state_of_another_conversation_is_refused(bank: Bank) -> None:
    porto = Conversation(handler).call(city="Porto")
    lisbon = Conversation(handler).call(city="Lisbon")
    lisbon.tamper(lambda _state: porto.state)
    assert lisbon.error["message"] == "Invalid or expired requestState"
    assert bank.calls == 0


def test_the_samples_own_services_return_fixed_values() -> None:
    assert app.reserve("Lisbon") == Flight(number="MF 106", euros=420)
    assert app.pay(420, "0123456789abcdef") == "receipt 01234567 for 420 EUR"
