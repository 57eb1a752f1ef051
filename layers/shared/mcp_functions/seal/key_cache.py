"""The cache of the data keys that a container knows, and the locks of its threads (envelope.md §6.3).

If several threads need a key that the cache lacks, one thread takes the lock of this key and calls KMS. The other
threads wait for the lock. Then each of them looks into the cache again, and usually finds the key.
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

    from mcp_functions.seal.keys import DataKey, WrappedKey

WAIT_SECONDS = 5.0  # how long a thread waits while another one calls KMS; a call with its retries takes less


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
        self._keys: OrderedDict[WrappedKey, CachedKey] = OrderedDict()  # the least recently used one is first
        # The dictionary is weak: it keeps the lock of a key only while a thread holds the lock or waits for it.
        self._unwrap_locks: WeakValueDictionary[WrappedKey, threading.Lock] = WeakValueDictionary()

    def known_keys(self) -> list[DataKey]:
        """Return all keys. This counts as no use."""
        with self._lock:
            return [cached.key for cached in self._keys.values()]

    def get(self, wrapped_key: WrappedKey) -> DataKey | None:
        """Return the key of a wrapped key, and count this as a use; None if the cache lacks the key."""
        with self._lock:
            cached = self._keys.get(wrapped_key)
            if cached is None:
                return None
            self._keys.move_to_end(wrapped_key)
            return cached.key

    def add(self, key: DataKey, caller: str | None) -> None:
        """Add a key as the most recently used one, and drop another if the cache is full."""
        with self._lock:
            self._keys[key.wrapped_key] = CachedKey(key, caller)
            self._keys.move_to_end(key.wrapped_key)
            if len(self._keys) > self._capacity:
                self._drop_one()

    def unwrap_lock(self, wrapped_key: WrappedKey) -> threading.Lock:
        """Return the lock that a thread must hold while KMS unwraps this key. Each key has a lock of its own."""
        with self._lock:
            return self._unwrap_locks.setdefault(wrapped_key, threading.Lock())

    def _drop_one(self) -> None:
        """Drop the first key of a caller with the most keys."""
        counts = Counter(cached.caller for cached in self._keys.values())
        largest_count = max(counts.values())
        for wrapped_key, cached in self._keys.items():
            if counts[cached.caller] == largest_count:
                del self._keys[wrapped_key]
                return


@contextmanager
def acquire_or_raise(lock: threading.Lock) -> Iterator[None]:
    """Hold a lock in the `with` block. The wait has a limit: else, while KMS does not answer, all threads would wait.

    Raises:
        TemporarilyUnavailable: another thread has held the lock for `WAIT_SECONDS`.
    """
    if not lock.acquire(timeout=WAIT_SECONDS):
        raise TemporarilyUnavailable(reason="kms:LockTimeout")
    try:
        yield
    finally:
        lock.release()
