"""A tool that pays, for the tests of single use: its containers, its bank, its table and its clock.

A payment takes four rounds. In each, the client sends back the last state, with answers to the questions in between:

    request                  what the tool does             response
    the call                 nothing yet                    a state without a question
    the state                it looks up the price          the question "approval"
    "approval"               it has the bank transfer       the question "note"
    "note"                   nothing more                   the text "transfer 1: thanks"

A worker is one invocation of the function. A test decides when a worker crashes and when the table fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from mcp_functions import Elicit, Step, serve, tool
from mcp_functions_harness.environment import TABLE
from mcp_functions_harness.testing import MemoryTable
from tests.support import wire

if TYPE_CHECKING:
    from mcp_functions_harness.testing.dynamodb import Fault

Worker = Callable[[Mapping[str, Any], Any], Mapping[str, Any]]

TOOL = "pay"
INVOCATION_SECONDS = 29  # how long an invocation may take
ANSWER_SECONDS = 86_400  # how long the user may take for an answer
APPROVE: dict[str, Any] = {"approval": {"action": "accept", "content": {"pay": True}}}
DISAPPROVE: dict[str, Any] = {"approval": {"action": "accept", "content": {"pay": False}}}
ADD_NOTE: dict[str, Any] = {"note": {"action": "accept", "content": {"text": "thanks"}}}
INVALID_STATE_ERROR = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}
RETRY_LATER_ERROR = {"code": -32603, "message": "Temporarily unavailable", "data": {"retryable": True}}


class Approval(BaseModel):
    pay: bool


class Note(BaseModel):
    text: str


def do_nothing() -> None:
    """Let the transfer happen."""


class WorkerCrash(KeyboardInterrupt):
    """A worker ends at once: nothing catches this error, and the client gets no response."""


@dataclass
class PaymentService:
    """The tool `pay`, and what its containers share.

    Attributes:
        now: the time, in unix seconds.
        transfers: amounts in euros by idempotency key; a repeated key is the same transfer.
        transfer_calls: how often the tool called the bank.
        price_lookups: how often the tool looked up the price.
        before_transfer: called once, before the next transfer.
        after_transfer: called once, after the next transfer.
        table: the DynamoDB table that records the rounds.
        table_faults: the faults of the table's next operations, in order; None is an operation without a fault.
        codec: writes and reads the states and the table's items.
    """

    now: float = 1_785_000_000.0
    transfers: dict[str, int] = field(default_factory=dict)
    transfer_calls: int = 0
    price_lookups: int = 0
    before_transfer: Callable[[], object] = do_nothing
    after_transfer: Callable[[], object] = do_nothing
    table: MemoryTable = field(default_factory=lambda: MemoryTable(TABLE))
    table_faults: list[Fault] = field(default_factory=list)
    codec: wire.PlainCodec = field(default_factory=wire.PlainCodec)
    _crashed: bool = False  # the present invocation cannot reach the table any more

    def __post_init__(self) -> None:
        self.table.weather = self._next_fault

    def new_container(self, mode: Literal["replay", "reject"] | None = "replay") -> Worker:
        """Start a container of the function, with nothing cached."""

        @tool(name=TOOL, single_use=mode, answer_within=ANSWER_SECONDS)
        def pay(*, elicit: Elicit, step: Step) -> str:
            euros = step("look-up", self.look_up_price)
            if not elicit("approval", f"Pay {euros} EUR?", Approval).pay:
                return "Nothing was paid."
            receipt = step.keyed("transfer", self.transfer, euros)
            return f"{receipt}: {elicit('note', 'A note?', Note).text}"

        function = serve(pay, codec=self.codec, now=lambda: self.now)

        def invoke(event: Mapping[str, Any], context: Any) -> Mapping[str, Any]:  # noqa: ANN401 - Lambda's context
            self._crashed = False
            return function(event, context)

        return invoke

    def look_up_price(self) -> int:
        self.price_lookups += 1
        return 75

    def transfer(self, euros: int, key: str) -> str:
        before = self.before_transfer
        self.before_transfer = do_nothing
        before()
        self.transfer_calls += 1
        self.transfers.setdefault(key, euros)
        after = self.after_transfer
        self.after_transfer = do_nothing
        after()
        return f"transfer {list(self.transfers).index(key) + 1}"

    def crash(self) -> None:
        """Crash the worker that calls this. The table does not answer its clean-up either."""
        self._crashed = True
        raise WorkerCrash

    def _next_fault(self, _operation: str) -> Fault:
        if self._crashed:
            return "unanswered"
        return self.table_faults.pop(0) if self.table_faults else None


def send(
    worker: Worker,
    state: str | None = None,
    answers: Mapping[str, Any] | None = None,
    **options: Any,  # noqa: ANN401 - the options of wire.message
) -> wire.Reply:
    """Call the tool, or send a later round with its state and answers.

    Raises:
        WorkerCrash: the worker crashed.
    """
    members = {"requestState": state, "inputResponses": answers}
    params = {name: value for name, value in members.items() if value is not None}
    request = wire.message("tools/call", {"name": TOOL, "arguments": {}, **params}, **options)
    response = worker(wire.event(request), wire.Context(f"local_{TOOL}", INVOCATION_SECONDS * 1000))
    return wire.Reply.of(response, "tools/call")


def begin_payment(worker: Worker) -> str:
    """Begin a payment, and return the state that waits for the approval."""
    first = send(worker)
    assert first.questions == []
    second = send(worker, first.state)
    assert second.questions == ["approval"]
    return second.state
