"""The sample `pay_invoice`: each round is answered once, and a repeated request gets the stored response.

`bank` makes a transfer in every call, so its list shows a payment that was made twice. `recording` compares a
conversation with the API Gateway events in events/pay_invoice.
"""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pytest

from functions.pay_invoice import app
from functions.pay_invoice.app import handler
from mcp_functions_harness import template
from mcp_functions_harness.testing import Conversation
from tests.docs import powertools

if TYPE_CHECKING:
    from tests.support.recordings import Recording

ROOT = Path(__file__).parents[2]
ARN = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:bank-a1b2c3"


class Bank:
    """A bank without idempotency: each call makes a transfer, once a test has set `is_open`."""

    def __init__(self) -> None:
        self.transfers: list[str] = []
        self.is_called = Event()
        self.is_open = Event()
        self.is_open.set()

    def transfer(self, number: str, euros: int, key: str) -> str:
        assert key
        self.is_called.set()
        self.is_open.wait(60)
        self.transfers.append(f"{euros} EUR for {number}")
        return f"transfer {len(self.transfers)}"


@pytest.fixture
def bank(monkeypatch: pytest.MonkeyPatch) -> Bank:
    bank = Bank()
    monkeypatch.setattr(app, "transfer", bank.transfer)
    return bank


def second_client(talk: Conversation) -> Conversation:
    """Copy a conversation: two clients hold the same request state."""
    other = copy.copy(talk)
    other.rounds = list(talk.rounds)
    return other


def test_the_invoice_is_paid_when_the_user_approves(recording: Recording, bank: Bank) -> None:
    talk = Conversation(handler).call(number="2026-001")
    assert talk.requests["approval"]["params"]["message"] == "Pay invoice 2026-001, 1290 EUR?"
    talk.accept(approval={"approval": True})
    assert talk.text == "Paid: transfer 1."
    assert bank.transfers == ["1290 EUR for 2026-001"]
    recording.assert_matches(talk, steps=["call", "approval"])


def test_a_repeated_request_gets_the_first_response_and_pays_once(bank: Bank) -> None:
    talk = Conversation(handler).call(number="2026-001").accept(approval={"approval": True})
    assert talk.retry().text == "Paid: transfer 1."
    assert len(bank.transfers) == 1


def test_the_user_cannot_approve_after_answering_no(bank: Bank) -> None:
    talk = Conversation(handler).call(number="2026-001")
    other = second_client(talk)
    talk.accept(approval={"approval": False})
    other.accept(approval={"approval": True})
    assert other.status == 400
    assert other.error["message"] == "Invalid or expired requestState"
    assert bank.transfers == []


def test_the_second_of_two_simultaneous_approvals_gets_503_and_then_the_response_of_the_first(bank: Bank) -> None:
    bank.is_open.clear()
    talk = Conversation(handler).call(number="2026-001")
    other = second_client(talk)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(talk.accept, approval={"approval": True})
        assert bank.is_called.wait(60)
        assert other.accept(approval={"approval": True}).status == 503
        bank.is_open.set()
        assert first.result().text == "Paid: transfer 1."
    assert other.retry().text == "Paid: transfer 1."
    assert len(bank.transfers) == 1


def test_two_invoices_are_two_payments(bank: Bank) -> None:
    for number in ("2026-001", "2026-002"):
        Conversation(handler).call(number=number).accept(approval={"approval": True})
    assert bank.transfers == ["1290 EUR for 2026-001", "75 EUR for 2026-002"]


def test_the_template_passes_the_arn_of_the_banks_secret_to_the_function() -> None:
    resources = template.read(ROOT / "template.yaml")["Resources"]
    variables = resources["PayInvoice"]["Properties"]["Environment"]["Variables"]
    assert variables["BANK_SECRET"] == {"Ref": "BankSecret"}


def test_the_function_reads_the_banks_token_once_from_secrets_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = powertools.secrets(monkeypatch, ARN, "s3cr3t")
    monkeypatch.setenv("BANK_SECRET", ARN)
    assert app.bank_token() == "s3cr3t"
    assert app.bank_token() == "s3cr3t"
    assert reads == [ARN]


def test_the_token_is_local_without_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = powertools.secrets(monkeypatch, ARN, "s3cr3t")
    monkeypatch.setenv("BANK_SECRET", "")
    assert app.bank_token() == "local"
    assert reads == []


def test_an_invoice_that_the_user_does_not_approve_is_not_paid(bank: Bank) -> None:
    talk = Conversation(handler).call(number="2026-001").accept(approval={"approval": False})
    assert talk.text == "Invoice 2026-001 was not paid."
    assert bank.transfers == []


def test_an_unknown_invoice_is_not_paid(bank: Bank) -> None:
    assert Conversation(handler).call(number="1999-001").text == "There is no invoice 1999-001."
    assert bank.transfers == []


def test_the_samples_own_bank_returns_a_receipt_with_the_key() -> None:
    assert app.transfer("2026-002", 75, "0123456789") == "transfer 01234567 of 75 EUR for 2026-002"
