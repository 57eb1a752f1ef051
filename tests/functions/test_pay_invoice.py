"""A payment, and a bank that makes a transfer whenever it is asked to."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pytest

from functions.pay_invoice import app
from functions.pay_invoice.app import handler
from mcp_functions.local import template
from mcp_functions.testing import Conversation
from tests.docs import powertools

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.local.api_gateway.events import Moment

    Recorded = Callable[[Conversation, list[str]], None]

ROOT = Path(__file__).parents[2]
ASKED = "Pay invoice 2026-001, 1290 EUR?"
YES = True


class Bank:
    """It makes a transfer whenever it is called, whatever key it is given."""

    def __init__(self) -> None:
        self.transfers: list[str] = []
        self.hold = Event()
        self.hold.set()
        self.reached = Event()

    def transfer(self, number: str, euros: int, key: str) -> str:
        assert key
        self.reached.set()
        self.hold.wait(10)
        self.transfers.append(f"{euros} EUR for {number}")
        return f"transfer {len(self.transfers)}"


@pytest.fixture
def bank(monkeypatch: pytest.MonkeyPatch) -> Bank:
    bank = Bank()
    monkeypatch.setattr(app, "transfer", bank.transfer)
    return bank


def twin(talk: Conversation) -> Conversation:
    """Copy a conversation, for a second client that holds the same state."""
    other = copy.copy(talk)
    other.rounds = list(talk.rounds)
    return other


def test_an_invoice_is_paid_when_the_user_approves(
    recorded: Recorded, moment: Callable[[], Moment], bank: Bank
) -> None:
    talk = Conversation(handler, moment=moment).call(number="2026-001")
    assert talk.requests["approval"]["params"]["message"] == ASKED
    talk.accept(approval=YES)
    assert talk.text == "Paid: transfer 1."
    assert bank.transfers == ["1290 EUR for 2026-001"]
    recorded(talk, ["call", "approval"])


def test_a_client_that_lost_the_receipt_repeats_the_request_and_gets_it(bank: Bank) -> None:
    talk = Conversation(handler).call(number="2026-001").accept(approval=YES)
    for _ in range(3):
        assert talk.retry().text == "Paid: transfer 1."
    assert len(bank.transfers) == 1


@pytest.mark.parametrize("first", [True, False])
def test_a_decision_cannot_be_changed_by_going_back(bank: Bank, *, first: bool) -> None:
    talk = Conversation(handler).call(number="2026-001")
    rewound = twin(talk)
    said = talk.accept(approval=first).text
    assert rewound.accept(approval=not first).error["message"] == "Invalid or expired requestState"
    assert rewound.status == 400
    assert talk.retry().text == said
    assert len(bank.transfers) == first


def test_one_of_two_simultaneous_approvals_pays_and_the_other_gets_its_result(bank: Bank) -> None:
    bank.hold.clear()
    talk = Conversation(handler).call(number="2026-001")
    rival = twin(talk)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(talk.accept, approval=YES)
        assert bank.reached.wait(10)
        assert rival.accept(approval=YES).error == {
            "code": -32603,
            "message": "Temporarily unavailable",
            "data": {"retryable": True},
        }
        assert (rival.status, rival.rounds[-1][1]["headers"]["retry-after"]) == (503, "1")
        bank.hold.set()
        assert first.result().text == "Paid: transfer 1."
    assert rival.retry().text == "Paid: transfer 1."
    assert len(bank.transfers) == 1


def test_two_invoices_are_two_payments(bank: Bank) -> None:
    for number in ("2026-001", "2026-002"):
        Conversation(handler).call(number=number).accept(approval=YES)
    assert bank.transfers == ["1290 EUR for 2026-001", "75 EUR for 2026-002"]


def test_the_banks_token_is_the_secret_that_the_template_names(monkeypatch: pytest.MonkeyPatch) -> None:
    block = template.read(ROOT / "template.yaml")["Resources"]["PayInvoice"]["Properties"]
    assert block["Environment"]["Variables"]["BANK_SECRET"] == {"Ref": "BankSecret"}
    arn = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:bank-a1b2c3"
    asked = powertools.secrets(monkeypatch, arn, "s3cr3t")
    monkeypatch.setenv("BANK_SECRET", "")
    assert (app.bank_token(), asked) == ("local", [])
    monkeypatch.setenv("BANK_SECRET", arn)
    assert [app.bank_token() for _ in range(2)] == ["s3cr3t", "s3cr3t"]
    assert asked == [arn]
    talk = Conversation(handler).call(number="2026-002").accept(approval=YES)
    assert talk.text.endswith("of 75 EUR for 2026-002.")
    assert "s3cr3t" not in talk.text


def test_without_approval_and_without_an_invoice_nothing_is_paid(bank: Bank) -> None:
    assert Conversation(handler).call(number="2026-001").accept(approval=False).text == (
        "Invoice 2026-001 was not paid."
    )
    assert Conversation(handler).call(number="1999-001").text == "There is no invoice 1999-001."
    assert bank.transfers == []


def test_the_stand_in_describes_the_service_it_replaces() -> None:
    assert app.transfer("2026-002", 75, "0123456789") == "transfer 01234567 of 75 EUR for 2026-002"
