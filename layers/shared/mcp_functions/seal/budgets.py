"""Token buckets: they limit how often each caller may make a container do costly work (envelope.md §6.5).

    buckets = TokenBuckets(capacity=3, refill_per_second=0.1)
    buckets.take("alice", 1, now)       True, three times; then False
    buckets.take("alice", 1, now + 10)  True: one unit was refilled

Usually a bucket holds tokens. In this package a token is a sealed text, so a bucket holds units.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from mcp_functions.tuples import NamedTuple

MAX_CALLERS = 4096  # how many buckets are in memory


class Bucket(NamedTuple):
    """The bucket of one caller."""

    units: float  # the units that it held after its last change
    changed: float  # the time of that change, in unix seconds


class TokenBuckets:
    """One bucket for each caller. A caller who is not in memory has a full bucket."""

    def __init__(self, capacity: float, refill_per_second: float) -> None:
        """Give each caller a full bucket, of `capacity` units."""
        self._capacity = capacity
        self._refill_per_second = refill_per_second
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()  # the least recently changed first

    def take(self, caller: str, units: float, now: float) -> bool:
        """Take units from a caller's bucket; return False, and take nothing, if it has fewer."""
        with self._lock:
            held = self._refilled(caller, now)
            if held < units:
                return False
            self._store(caller, held - units, now)
            return True

    def put_back(self, caller: str, units: float, now: float) -> None:
        """Put units back into a caller's bucket."""
        with self._lock:
            self._store(caller, self._refilled(caller, now) + units, now)

    def _refilled(self, caller: str, now: float) -> float:
        """Return the units that a bucket holds now."""
        bucket = self._buckets.get(caller)
        if bucket is None:
            return self._capacity
        seconds = max(0.0, now - bucket.changed)  # a clock may be set back
        return min(self._capacity, bucket.units + seconds * self._refill_per_second)

    def _store(self, caller: str, units: float, now: float) -> None:
        if units >= self._capacity:  # a caller who is not in memory has a full bucket
            self._buckets.pop(caller, None)
            return
        self._buckets[caller] = Bucket(units, now)
        self._buckets.move_to_end(caller)
        if len(self._buckets) > MAX_CALLERS:
            self._buckets.popitem(last=False)
