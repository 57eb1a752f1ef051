"""Bounds on the cost of KMS: a cache of opened keys, and a budget for each caller (envelope.md §6.3, §6.5)."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.seal.key_choice import DataKey, Header

T = TypeVar("T")


class Limits(NamedTuple):
    """The memory of one container, and the budget of one caller."""

    opened: int = 256  # how many data keys the cache holds
    callers: int = 4096  # how many budgets are in memory
    burst: int = 3  # how many failed unwraps a caller may cause at once
    refill_seconds: int = 30  # how long it takes until a caller may cause one more
    ratio: int = 20  # how many successful unwraps cost as much as a failed one


class SingleFlight:
    """Runs a call once for all threads that make it at the same time."""

    def __init__(self) -> None:
        """Begin without calls."""
        self._lock = threading.Lock()
        self._futures: dict[object, Future[Any]] = {}

    def run(self, name: object, call: Callable[[], T], admit: Callable[[], None] = lambda: None) -> T:
        """Return the result of `call`, or raise its exception. Other threads wait for the same outcome.

        Args:
            name: the name of the call, by which threads share it.
            call: the function to run once.
            admit: a check that raises if this thread may not call; threads that only wait do not run it.
        """
        with self._lock:
            flight = self._futures.get(name)
            follows = flight is not None
            if flight is None:
                admit()
                flight = self._futures[name] = Future()
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
                del self._futures[name]


class KeyCache:
    """The data keys that a container has opened. It needs a lock if threads share it.

    A full cache drops a key of the caller with the most keys, the least recently used one. So a caller with a thousand
    keys drops its own, and the keys of others stay.
    """

    def __init__(self, most: int) -> None:
        """Set the maximal number of keys."""
        self._most = most
        self._keys: OrderedDict[Header, tuple[DataKey, str]] = OrderedDict()  # each key with the caller of `add`

    def __len__(self) -> int:
        """Count the keys."""
        return len(self._keys)

    def __contains__(self, header: Header) -> bool:
        """Check whether the cache has a key."""
        return header in self._keys

    def get(self, header: Header) -> DataKey | None:
        """Return a key, and count this as a use."""
        if header not in self._keys:
            return None
        self._keys.move_to_end(header)
        return self._keys[header][0]

    def add(self, header: Header, key: DataKey, caller: str = "") -> None:
        """Add a key.

        Args:
            header: the key's part of a token.
            key: the key that was opened, or generated here.
            caller: the caller whose token made this container ask KMS; "" for a key that was generated here.
        """
        self._keys[header] = key, caller
        while len(self._keys) > self._most:
            del self._keys[self._next_to_drop()]

    def _next_to_drop(self) -> Header:
        counts = Counter(caller for _key, caller in self._keys.values())
        most = max(counts.values())
        return next(header for header, (_key, caller) in self._keys.items() if counts[caller] == most)


class UnwrapBudgets:
    """Limits how often each caller may make a container ask KMS: a token bucket for each caller.

    The unit is the price of a successful unwrap. A failed one costs `Limits.ratio` units, which are charged before KMS
    is asked, because its result is not known yet. The memory is bounded.
    """

    def __init__(self, limits: Limits) -> None:
        """Begin with every bucket full."""
        self._limits = limits
        self._full = float(limits.burst * limits.ratio)
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # caller -> units left, at unix seconds

    def charge(self, caller: str, now: float, units: float) -> bool:
        """Charge a caller; return False, and charge nothing, if the bucket has fewer units."""
        return self._add(caller, now, -units)

    def refund(self, caller: str, now: float, units: float) -> None:
        """Return units to a caller's bucket."""
        self._add(caller, now, units)

    def _add(self, caller: str, now: float, units: float) -> bool:
        with self._lock:
            left, since = self._buckets.pop(caller, (self._full, now))
            refilled = max(0.0, now - since) * self._limits.ratio / self._limits.refill_seconds
            left = min(self._full, left + refilled)
            allowed = left + units >= 0
            if allowed:
                left = min(self._full, left + units)
            if left < self._full:  # a full bucket needs no memory
                self._buckets[caller] = (left, now)
            while len(self._buckets) > self._limits.callers:
                self._buckets.popitem(last=False)
            return allowed
