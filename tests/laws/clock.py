"""A clock that only work moves, for functions that the harness serves: nothing waits, and minutes pass."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_functions.http.events import LambdaContext
    from mcp_functions.http.gateway import LambdaFunction


class Clock:
    """The time of a function and of the gateway before it, unix seconds.

    Attributes:
        rounds: seconds that each round took.
        parts: what was worked on, in this order.

    """

    def __init__(self) -> None:
        self.now = time.time()
        self.rounds: list[float] = []
        self.parts: list[int] = []

    def __call__(self) -> float:
        return self.now

    def work(self, part: int, seconds: float) -> int:
        self.now += seconds
        self.parts.append(part)
        return part


class OnTheClock:
    """The function as Lambda calls it, with an event whose time comes from the clock."""

    def __init__(self, clock: Clock, function: LambdaFunction) -> None:
        self.clock, self._function = clock, function
        self.handlers = function.handlers

    def __call__(self, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        began = self.clock.now
        event["requestContext"]["timeEpoch"] = int(began * 1000)
        try:
            return self._function(event, context)
        finally:
            self.clock.rounds.append(self.clock.now - began)
