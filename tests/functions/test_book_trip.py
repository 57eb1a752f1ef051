"""A booking in steps, and the bank that must hear of it once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from functions.book_trip import app
from functions.book_trip.app import Flight, handler
from mcp_functions.testing import Conversation

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.local.api_gateway.events import Moment

    Recorded = Callable[[Conversation, list[str]], None]

ASKED = "Flight MF 106 to Lisbon costs 420 EUR. Book it?"


class Bank:
    """A payment API: the same key is the same payment."""

    def __init__(self) -> None:
        self.calls = 0
        self.charged: dict[str, int] = {}

    def pay(self, euros: int, key: str) -> str:
        self.calls += 1
        self.charged.setdefault(key, euros)
        return f"receipt {list(self.charged).index(key) + 1}"


def dearer(_city: str) -> Flight:
    return Flight(number="MF 999", euros=9999)


@pytest.fixture
def bank(monkeypatch: pytest.MonkeyPatch) -> Bank:
    bank = Bank()
    monkeypatch.setattr(app, "pay", bank.pay)
    return bank


def test_a_trip_is_reserved_confirmed_and_charged(recorded: Recorded, moment: Callable[[], Moment], bank: Bank) -> None:
    talk = Conversation(handler, moment=moment).call(city="Lisbon")
    assert talk.asked == ["consent"]
    assert talk.requests["consent"]["params"]["message"] == ASKED
    assert bank.calls == 0
    talk.accept(consent=True)
    assert talk.text == "Booked MF 106 to Lisbon: receipt 1."
    assert list(bank.charged.values()) == [420]
    recorded(talk, ["call", "consent"])


def test_a_client_that_lost_the_receipt_asks_again_and_pays_once(bank: Bank) -> None:
    talk = Conversation(handler).call(city="Lisbon").accept(consent=True)
    said = talk.text
    assert talk.retry().text == said
    assert bank.calls == 2  # nothing was recorded behind the last answer, so the step ran again
    assert list(bank.charged.values()) == [420]  # under the same key


def test_two_bookings_are_two_charges(bank: Bank) -> None:
    for number in (1, 2):
        talk = Conversation(handler).call(city="Lisbon").accept(consent=True)
        assert talk.text == f"Booked MF 106 to Lisbon: receipt {number}."
    assert list(bank.charged.values()) == [420, 420]


def test_the_flight_that_is_charged_is_the_one_that_was_confirmed(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Conversation(handler).call(city="Lisbon")
    monkeypatch.setattr(app, "reserve", dearer)
    assert talk.accept(consent=True).text == "Booked MF 106 to Lisbon: receipt 1."
    assert list(bank.charged.values()) == [420]


def test_a_user_who_refuses_pays_nothing(bank: Bank) -> None:
    talk = Conversation(handler).call(city="Lisbon").accept(consent=False)
    assert talk.text == "Nothing was booked."
    assert bank.calls == 0


def test_a_user_who_does_not_answer_pays_nothing(bank: Bank) -> None:
    declined = Conversation(handler).call(city="Lisbon").decline()
    assert (declined.text, declined.result["isError"]) == (f"The user declined to answer: {ASKED}", True)
    cancelled = Conversation(handler).call(city="Lisbon").cancel()
    assert cancelled.text == f"The user dismissed without answering: {ASKED}"
    assert bank.calls == 0


def test_an_answer_in_another_conversation_books_nothing(bank: Bank) -> None:
    agreed = {"action": "accept", "content": {"consent": True}}
    talk = Conversation(handler).call(city="Porto")
    other = Conversation(handler).call(city="Lisbon")
    other.tamper(lambda _state: talk.state)
    assert other.error["message"] == "Invalid or expired requestState"
    assert talk.answer(nobody_asked=agreed).asked == ["consent"]
    assert bank.calls == 0


def test_the_stand_ins_describe_the_services_they_replace() -> None:
    assert app.reserve("Lisbon") == Flight(number="MF 106", euros=420)
    assert app.pay(420, "0123456789abcdef") == "receipt 01234567 for 420 EUR"
