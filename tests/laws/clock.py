"""A clock that only the functions' work advances, for tests of long work: minutes pass, and nobody waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.strict_kms import START

if TYPE_CHECKING:
    from mcp_functions.http.gateway import LambdaFunction
    from mcp_functions.protocol.event_types import LambdaContext


class Clock:
    """The time of a function and of the gateway before it, unix seconds.

    Attributes:
        now: the time.
        rounds: the seconds that each round took.
        parts: the parts of the work that were done, in order.
    """

    def __init__(self) -> None:
        self.now = START
        self.rounds: list[float] = []
        self.parts: list[int] = []

    def __call__(self) -> float:
        return self.now

    def work(self, part: int, seconds: float) -> int:
        """Do a part of the work, which takes some seconds; return the part."""
        self.now += seconds
        self.parts.append(part)
        return part


class TimedByClock:
    """Calls a function as Lambda does, with an event whose time comes from the clock."""

    def __init__(self, clock: Clock, function: LambdaFunction) -> None:
        self.clock = clock
        self._function = function
        self.handlers = function.handlers

    def __call__(self, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        began = self.clock.now
        event["requestContext"]["timeEpoch"] = int(began * 1000)
        try:
            return self._function(event, context)
        finally:
            self.clock.rounds.append(self.clock.now - began)
