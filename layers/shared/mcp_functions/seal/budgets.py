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
        """Make the lock and the table of the calls that run."""
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
            is_first = flight is None
            if flight is None:
                admit()
                flight = self._futures[name] = Future()
        if is_first:
            try:
                flight.set_result(call())
            except BaseException as error:
                flight.set_exception(error)
                raise
            finally:
                with self._lock:
                    del self._futures[name]
        result: T = flight.result()
        return result


class CachedKey(NamedTuple):
    """A data key in the memory of a container."""

    key: DataKey
    caller: str | None  # the caller whose token made this container ask KMS; None if this container generated the key
    is_proven: bool  # True if this container generated the key, or if a token under it was authentic


class KeyCache:
    """The data keys that a container has opened.

    If the cache is full, it drops a key of the caller with the most keys: the least recently used one. So a caller who
    sends tokens under a thousand keys loses some of these, and other callers' keys stay.
    """

    def __init__(self, most: int) -> None:
        """Set the maximal number of keys."""
        self._most = most
        self._lock = threading.RLock()
        self._keys: OrderedDict[Header, CachedKey] = OrderedDict()

    def all(self) -> list[CachedKey]:
        """Return the keys, the least recently used one first."""
        with self._lock:
            return list(self._keys.values())

    def get(self, header: Header) -> DataKey | None:
        """Return a key, and count this as a use."""
        with self._lock:
            if header not in self._keys:
                return None
            self._keys.move_to_end(header)
            return self._keys[header].key

    def add(self, cached: CachedKey) -> None:
        """Add a key, if the cache does not have it."""
        with self._lock:
            self._keys.setdefault(cached.key.header, cached)
            while len(self._keys) > self._most:
                counts = Counter(each.caller for each in self._keys.values())
                most = max(counts.values())
                candidates = (header for header, each in self._keys.items() if counts[each.caller] == most)
                del self._keys[next(candidates)]  # the least recently used one is first

    def prove(self, key: DataKey) -> None:
        """Mark a key as proven: a token under it was authentic."""
        with self._lock:
            cached = self._keys.pop(key.header, CachedKey(key, "", is_proven=False))
            self.add(cached._replace(is_proven=True))

    def drop_unproven(self, header: Header) -> bool:
        """Drop a key, unless it is proven; return whether it is not proven."""
        with self._lock:
            if header in self._keys and self._keys[header].is_proven:
                return False
            self._keys.pop(header, None)
            return True


class UnwrapBudgets:
    """Limits how often each caller may make a container ask KMS: a token bucket for each caller.

    The unit is the price of a successful unwrap. A failed one costs `Limits.ratio` units, which are charged before KMS
    is asked, because its result is not known yet. The memory is bounded.
    """

    def __init__(self, limits: Limits) -> None:
        """Take the limits. A caller without an entry has a full bucket."""
        self._limits = limits
        self._full = float(limits.burst * limits.ratio)
        self._lock = threading.Lock()
        # By caller: how many units were left, and when (unix seconds). The least recently charged caller is first.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def charge(self, caller: str, now: float, units: float) -> bool:
        """Charge a caller; return False, and charge nothing, if the bucket has fewer units."""
        with self._lock:
            left, since = self._buckets.pop(caller, (self._full, now))
            refilled = max(0.0, now - since) * self._limits.ratio / self._limits.refill_seconds
            left = min(self._full, left + refilled)
            allowed = units <= left
            if allowed:
                left = min(self._full, left - units)
            if left < self._full:  # a full bucket needs no memory
                self._buckets[caller] = (left, now)
            while len(self._buckets) > self._limits.callers:
                self._buckets.popitem(last=False)
            return allowed

    def refund(self, caller: str, now: float, units: float) -> None:
        """Return units to a caller's bucket."""
        self.charge(caller, now, -units)
