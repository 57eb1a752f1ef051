"""The cache of data keys in one container, and the locks of threads that need a key which it lacks (envelope.md §6.3).

Of several threads that need the same key, one calls KMS, and the others wait for its lock. Then each of these looks
into the cache again, and mostly finds the key.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from mcp_functions.protocol.errors import TemporarilyUnavailable
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.seal.keys import DataKey, Header

WAIT_SECONDS = 5.0  # how long a thread waits while another calls KMS; a call with its retries takes less


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
        """Begin without keys; the cache holds at most `capacity` of them."""
        self._capacity = capacity
        self._lock = threading.Lock()  # held while the two collections below are read or changed
        self._keys: OrderedDict[Header, CachedKey] = OrderedDict()  # the least recently used one is first
        # The dictionary drops a lock when no thread uses it.
        self._unwrap_locks: WeakValueDictionary[Header, threading.Lock] = WeakValueDictionary()

    def all(self) -> list[DataKey]:
        """Return the keys."""
        with self._lock:
            return [cached.key for cached in self._keys.values()]

    def get(self, header: Header) -> DataKey | None:
        """Return a key, and count this as a use."""
        with self._lock:
            cached = self._keys.get(header)
            if cached is None:
                return None
            self._keys.move_to_end(header)
            return cached.key

    def add(self, key: DataKey, caller: str | None) -> None:
        """Add a key as the most recently used one, and drop another if the cache is full."""
        with self._lock:
            self._keys[key.header] = CachedKey(key, caller)
            self._keys.move_to_end(key.header)
            if len(self._keys) > self._capacity:
                self._drop_one()

    def unwrap_lock(self, header: Header) -> threading.Lock:
        """Return the lock of the one thread that has KMS unwrap this key. A thread that needs another key goes on."""
        with self._lock:
            return self._unwrap_locks.setdefault(header, threading.Lock())

    def _drop_one(self) -> None:
        """Drop the first key of a caller with the most keys."""
        counts = Counter(cached.caller for cached in self._keys.values())
        largest_count = max(counts.values())
        for header, cached in self._keys.items():
            if counts[cached.caller] == largest_count:
                del self._keys[header]
                return


@contextmanager
def acquire_or_raise(lock: threading.Lock) -> Iterator[None]:
    """Hold a lock in the `with` block. While KMS does not answer, threads must not queue up, so the wait has a limit.

    Raises:
        TemporarilyUnavailable: another thread has held the lock for `WAIT_SECONDS`.
    """
    if not lock.acquire(timeout=WAIT_SECONDS):
        raise TemporarilyUnavailable(reason="kms:NoTurn")
    try:
        yield
    finally:
        lock.release()
