"""Limits on the calls of one container to KMS: a cache of data keys, turns, and budgets (envelope.md §6.3, §6.5)."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import TemporarilyUnavailable
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from mcp_functions.seal.key_choice import DataKey, Header

WAIT_SECONDS = 5.0  # how long a thread waits for its turn; a call to KMS with its retries takes less


class Limits(NamedTuple):
    """The memory of one container, and the budget of one caller."""

    opened: int = 256  # how many data keys the cache holds
    callers: int = 4096  # how many budgets are in memory
    burst: int = 3  # how many failed unwraps a caller may cause at once
    refill_seconds: int = 30  # how long it takes until a caller may cause one more
    ratio: int = 20  # how many successful unwraps cost as much as a failed one


class Turns:
    """Lets one thread at a time call KMS. The next thread often finds the key that it needs in the cache.

    While KMS does not answer, the threads must not queue up. So each gives up after a few seconds.
    """

    def __init__(self) -> None:
        """Make the lock."""
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        """Wait for the turn.

        Raises:
            TemporarilyUnavailable: another thread has waited for KMS all the time.
        """
        if not self._lock.acquire(timeout=WAIT_SECONDS):
            raise TemporarilyUnavailable(reason="kms:NoTurn")

    def __exit__(self, *_error: object) -> None:
        """Give the turn to the next thread."""
        self._lock.release()


class CachedKey(NamedTuple):
    """A data key in the memory of a container."""

    key: DataKey
    caller: str | None  # the caller whose token made this container ask KMS; None if this container generated the key


class KeyCache:
    """The data keys that a container generated, or under which it opened an authentic token.

    If the cache is full, it drops a key of the caller with the most keys: the least recently used one. So a caller who
    sends tokens under a thousand keys loses some of these, and other callers' keys stay.
    """

    def __init__(self, capacity: int) -> None:
        """Set the maximal number of keys."""
        self._capacity = capacity
        self._lock = threading.Lock()
        self._keys: dict[Header, CachedKey] = {}  # the least recently used one is first

    def all(self) -> list[CachedKey]:
        """Return the keys, the least recently used one first."""
        with self._lock:
            return list(self._keys.values())

    def get(self, header: Header) -> DataKey | None:
        """Return a key, and count this as a use."""
        with self._lock:
            cached = self._keys.pop(header, None)
            if cached is None:
                return None
            self._keys[header] = cached  # at the end, as the most recently used one
            return cached.key

    def add(self, key: DataKey, caller: str | None) -> None:
        """Add a key, and drop another if the cache is full."""
        with self._lock:
            self._keys[key.header] = CachedKey(key, caller)
            if len(self._keys) > self._capacity:
                self._drop_one()

    def _drop_one(self) -> None:
        """Drop the first key of a caller with the most keys."""
        counts = Counter(cached.caller for cached in self._keys.values())
        largest_count = max(counts.values())
        for header, cached in self._keys.items():
            if counts[cached.caller] == largest_count:
                del self._keys[header]
                return


class UnwrapBudgets:
    """Limits how often each caller may make a container ask KMS: a token bucket for each caller.

    The unit is the price of a successful unwrap. A failed one costs `Limits.ratio` units, which are charged before KMS
    is asked, because its result is not known yet. The memory is bounded.
    """

    def __init__(self, limits: Limits) -> None:
        """Begin without entries. A caller without an entry has a full bucket."""
        self._limits = limits
        self._full = float(limits.burst * limits.ratio)
        self._units_per_second = limits.ratio / limits.refill_seconds
        self._lock = threading.Lock()
        # By caller: how many units were left, and when (unix seconds). The least recently changed bucket is first.
        self._buckets: dict[str, tuple[float, float]] = {}

    def charge(self, caller: str, now: float, units: float) -> bool:
        """Charge a caller; return False, and charge nothing, if the bucket has fewer units."""
        with self._lock:
            left = self._units_left(caller, now)
            if left < units:
                return False
            self._store(caller, left - units, now)
            return True

    def refund(self, caller: str, now: float, units: float) -> None:
        """Return units to a caller's bucket."""
        with self._lock:
            self._store(caller, self._units_left(caller, now) + units, now)

    def _units_left(self, caller: str, now: float) -> float:
        left, since = self._buckets.get(caller, (self._full, now))
        seconds = max(0.0, now - since)  # a clock may be set back
        return min(self._full, left + seconds * self._units_per_second)

    def _store(self, caller: str, left: float, now: float) -> None:
        self._buckets.pop(caller, None)
        if left >= self._full:
            return  # a full bucket needs no memory
        self._buckets[caller] = (left, now)
        if len(self._buckets) > self._limits.callers:
            least_recently_changed = next(iter(self._buckets))
            del self._buckets[least_recently_changed]
