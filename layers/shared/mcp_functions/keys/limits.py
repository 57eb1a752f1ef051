"""What keeps the cost of KMS in bounds: one question at a time, and a budget for every caller (envelope.md §6.5)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Limits(NamedTuple):
    """What one container remembers, and how often one caller may make it ask KMS in vain."""

    opened: int = 256
    callers: int = 4096
    burst: int = 3
    refill_seconds: int = 30


class Flights:
    """The same question, asked by several threads at once, is asked of KMS once."""

    def __init__(self) -> None:
        """Begin with nothing under way."""
        self._lock = threading.Lock()
        self._under_way: dict[object, Future[Any]] = {}

    def run(self, name: object, call: Callable[[], T], admit: Callable[[], None] = lambda: None) -> T:
        """Return what `call` returns, or raise what it raises; who comes while it runs gets the same.

        Args:
            name: of the question.
            call: asks it.
            admit: raises if this thread may not ask; not called for one that finds the question asked.

        """
        with self._lock:
            flight = self._under_way.get(name)
            follows = flight is not None
            if flight is None:
                admit()
                flight = self._under_way[name] = Future()
        if follows:
            result: T = flight.result()
            return result
        try:
            result = call()
        except BaseException as error:
            flight.set_exception(error)
            raise
        else:
            flight.set_result(result)
            return result
        finally:
            with self._lock:
                del self._under_way[name]


class Budgets:
    """How many unwraps each caller may still waste. One bucket per caller, none in common; memory is bounded."""

    def __init__(self, limits: Limits) -> None:
        """Begin with every bucket full."""
        self._limits = limits
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # caller -> unwraps left, at unix seconds

    def take(self, caller: str, now: float) -> bool:
        """Take one unwrap from `caller`; False if none is left."""
        return self._change(caller, now, -1.0)

    def give_back(self, caller: str, now: float) -> None:
        """Give one back: the unwrap was not in vain, or its failure not the caller's fault."""
        self._change(caller, now, +1.0)

    def _change(self, caller: str, now: float, by: float) -> bool:
        with self._lock:
            left, since = self._left.pop(caller, (float(self._limits.burst), now))
            left = min(self._limits.burst, left + max(0.0, now - since) / self._limits.refill_seconds)
            allowed = left + by >= 0
            left = min(self._limits.burst, left + by) if allowed else left
            if left < self._limits.burst:  # who has a full bucket need not be remembered
                self._left[caller] = (left, now)
            while len(self._left) > self._limits.callers:
                self._left.popitem(last=False)
            return allowed
