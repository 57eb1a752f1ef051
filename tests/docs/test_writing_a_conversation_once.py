"""The page "Writing a conversation", on single use: each round runs once."""

from __future__ import annotations

import copy
from itertools import count
from typing import TYPE_CHECKING, Any

from mcp_functions import Elicit, Step, ToolError, serve, tool
from mcp_functions_harness.testing import Conversation, MemoryTable, deployed
from tests.docs.stand_ins import YES, Clock, Ledger, Ok
from tests.support import wire

if TYPE_CHECKING:
    import pytest

    from mcp_functions_harness.testing.dynamodb import Fault

REFUSED = "Invalid or expired requestState"
LATER = "Temporarily unavailable"


def copy_of_conversation(talk: Conversation) -> Conversation:
    """Copy a conversation, for a second client that holds the same state."""
    other = copy.copy(talk)
    other.rounds = list(talk.rounds)
    return other


def start_payment(page: dict[str, Any], **options: Any) -> Conversation:  # noqa: ANN401 - of `serve`
    handler = serve(page["pay_invoice"], codec=wire.PlainCodec(), **options)
    return Conversation(handler, function="pay_invoice").call(number="7")


def test_a_repeated_request_gets_the_same_result(page: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count(1)
    monkeypatch.setitem(page, "transfer", lambda number, key: f"{number}: {next(numbers)}{key[:0]}")
    talk = start_payment(page).accept(approval=True)
    assert (talk.text, talk.retry().text, talk.retry().text) == ("7: 1", "7: 1", "7: 1")


def test_an_older_state_and_other_answers_are_refused(page: dict[str, Any]) -> None:
    @tool(single_use="replay")
    def buy(*, elicit: Elicit) -> str:
        """Ask twice."""
        elicit("one", "Yes?", Ok)
        elicit("two", "Really?", Ok)
        return "bought"

    talk = Conversation(serve(buy, codec=wire.PlainCodec())).call()
    first = copy_of_conversation(talk)
    second = copy_of_conversation(talk.accept(one=YES))
    assert talk.accept(two=YES).text == "bought"
    assert first.accept(one=YES).error["message"] == REFUSED
    assert second.decline("two").error["message"] == REFUSED
    other = start_payment(page)
    declined = copy_of_conversation(other)
    other.accept(approval=True)
    assert declined.accept(approval=False).error["message"] == REFUSED


def test_with_single_use_no_step_runs_in_a_first_round(ledger: Ledger) -> None:
    outside: list[bool] = []

    @tool(single_use="replay")
    def buy(item: str, *, elicit: Elicit, step: Step) -> str:
        """Look something up."""
        outside.append(True)
        offer = step("look-up", ledger.look_up, item)
        elicit("one", f"{offer}: yes?", Ok)
        return offer

    talk = Conversation(serve(buy, codec=wire.PlainCodec())).call(item="lamp")
    assert (talk.done, talk.asked, ledger.calls, outside) == (False, [], [], [True])
    assert talk.go_on().accept(one=YES).text == "offer for lamp"
    assert ledger.calls == ["lamp"]


class PowerCut(KeyboardInterrupt):
    """The end of a worker, and of all that it would have done."""


def test_the_lease_of_a_dead_worker_delays_a_repeated_request(
    page: dict[str, Any], monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    table, keys = MemoryTable(), list[str]()

    def transfer(number: str, key: str) -> str:
        keys.append(key)
        if len(keys) == 1:
            table.weather = lambda _operation: "unanswered"
            raise PowerCut
        return f"paid {number}"

    monkeypatch.setitem(page, "transfer", transfer)
    monkeypatch.setattr("mcp_functions.store.make_call", lambda: table)
    talk = start_payment(page, now=clock)
    try:
        talk.accept(approval=True)
    except PowerCut:
        table.weather = lambda _operation: None
    assert (talk.retry().error["message"], talk.status) == (LATER, 503)
    clock.now += 60
    assert talk.retry().text == "paid 7"
    assert len(set(keys)) == 1


def test_a_round_that_raises_an_exception_is_not_recorded(
    page: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: list[Exception | str] = [OSError(), ToolError("The bank is closed."), "paid"]

    def transfer(number: str, key: str) -> str:
        assert (number, bool(key)) == ("7", True)
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setitem(page, "transfer", transfer)
    talk = start_payment(page).accept(approval=True)
    assert "failed unexpectedly" in talk.text
    assert talk.retry().text == "The bank is closed."
    assert talk.retry().text == "The bank is closed."
    assert outcomes == ["paid"]


def test_a_test_can_make_the_table_fail(page: dict[str, Any]) -> None:
    faults: list[Fault] = []
    table = MemoryTable(weather=lambda _operation: faults.pop(0) if faults else None)
    with deployed(table):
        talk = start_payment(page)
        faults += ["denied"]
        assert talk.accept(approval=True).status == 500
        faults += [None, "lost"]
        assert talk.retry().text.startswith("transfer ")
