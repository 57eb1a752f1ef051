"""A payment in four rounds, its bank, and the clients that hold its states, for the tests of single use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from mcp_functions import Elicit, Step, serve, tool
from mcp_functions.local.environment import TABLE
from mcp_functions.testing import MemoryTable
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.http.gateway import LambdaFunction
    from mcp_functions.testing.dynamodb import Fault

NAME = "pay"
SECONDS = 29  # that an invocation may take
YES: dict[str, Any] = {"approval": {"action": "accept", "content": {"pay": True}}}
NO: dict[str, Any] = {"approval": {"action": "accept", "content": {"pay": False}}}
NOTE: dict[str, Any] = {"note": {"action": "accept", "content": {"text": "thanks"}}}
REFUSED = {"code": -32602, "message": "Invalid or expired requestState", "data": {"reason": "invalid_request_state"}}
LATER = {"code": -32603, "message": "Temporarily unavailable", "data": {"retryable": True}}


class Approval(BaseModel):
    pay: bool


class Note(BaseModel):
    text: str


class Killed(KeyboardInterrupt):
    """The end of a worker: nothing that it might still do happens."""


@dataclass
class World:
    """A bank that knows transfers by their keys, a clock, a table, and what becomes of workers.

    Attributes:
        now: unix seconds.
        transfers: by key; who asks twice for one gets the same receipt.
        calls: how often the bank was asked.
        looked_up: how often the price was.
        kill: "before" or "after" a transfer, the next worker that makes one is gone.
        table: where it is written down.
        faults: what goes wrong with the next calls of the table, in order.

    """

    now: float = 1_785_000_000.0
    transfers: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    looked_up: int = 0
    kill: str | None = None
    dead: bool = False
    table: MemoryTable = field(default_factory=lambda: MemoryTable(TABLE))
    faults: list[Fault] = field(default_factory=list)
    boxes: wire.Boxes = field(default_factory=wire.Boxes)

    def __post_init__(self) -> None:
        self.table.weather = self._weather

    def transfer(self, euros: int, key: str) -> str:
        self._end("before")
        self.calls += 1
        self.transfers.setdefault(key, euros)
        self._end("after")
        return f"transfer {list(self.transfers).index(key) + 1}"

    def look_up(self) -> int:
        self.looked_up += 1
        return 75

    def container(self, mode: Any = "replay") -> LambdaFunction:  # noqa: ANN401 - one of two words
        @tool(name=NAME, single_use=mode, answer_within=86_400)
        def pay(*, elicit: Elicit, step: Step) -> str:
            euros = step("look-up", self.look_up)
            if not elicit("approval", f"Pay {euros} EUR?", Approval).pay:
                return "Nothing was paid."
            receipt = step.keyed("transfer", self.transfer, euros)
            return f"{receipt}: {elicit('note', 'A note?', Note).text}"

        return serve(pay, codec=self.boxes, now=lambda: self.now)

    def ask(
        self,
        to: LambdaFunction,
        state: str | None = None,
        answers: Mapping[str, Any] | None = None,
        **options: Any,  # noqa: ANN401
    ) -> dict[str, Any] | None:
        """Send one round; None: the worker died over it."""
        more: dict[str, Any] = {} if state is None else {"requestState": state}
        more |= {} if answers is None else {"inputResponses": dict(answers)}
        sent = wire.event(wire.message("tools/call", {"name": NAME, "arguments": {}, **more}, **options))
        try:
            response = to(sent, wire.Context(f"local-{NAME}", SECONDS * 1000))
        except Killed:
            return None
        finally:
            self.dead = False
        return wire.read(response, "tools/call")

    def _end(self, when: str) -> None:
        if self.kill == when:
            self.kill, self.dead = None, True
            raise Killed

    def _weather(self, _operation: str) -> Fault:
        if self.dead:
            return "unanswered"
        return self.faults.pop(0) if self.faults else None


def said(body: dict[str, Any] | None) -> Any:  # noqa: ANN401 - text, keys of questions, or an error
    """Say what an answer comes to: the text, the questions, or the error."""
    match body:
        case {"error": error}:
            return error
        case {"result": {"resultType": "input_required", "inputRequests": asked}}:
            return sorted(asked)
        case {"result": {"content": [{"text": text}]}}:
            return text
    return body


def state_of(body: dict[str, Any] | None) -> str:
    assert body
    return str(body["result"]["requestState"])
