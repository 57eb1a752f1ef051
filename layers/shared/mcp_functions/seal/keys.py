"""Data keys, and the cache in which a container keeps those that it knows (envelope.md §2, §3 and §6.3).

wrapping key    a key that never leaves KMS; it wraps (encrypts) data keys
data key        32 bytes that encrypt tokens; KMS generates it
wrapped key     the encrypted data key, which each token under this data key holds
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from mcp_functions.protocol.errors import TemporarilyUnavailable
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY_BYTES = 32  # the size of every data key
MAX_WRAPPED = 1024  # the most bytes that a wrapped data key may have
# This constant is part of the token format. With another value, no token that exists would open, so it never changes.
KEK_HINT_LABEL = b"ks1/kek\0"
WAIT_SECONDS = 5.0  # for another thread that calls KMS; a call with its retries takes less


class Scope(NamedTuple):
    """The functions that share keys: `service` ("<stack>/<function>" or a shared audience), `stage`, `generation`."""

    service: str
    stage: str
    generation: str


class WrappedKey(NamedTuple):
    """A data key as a token holds it, with what KMS needs to unwrap it."""

    born: int  # when the data key was generated, in unix seconds
    kek_hint: bytes  # four bytes that identify the wrapping key; see the function `kek_hint`
    encrypted: bytes  # the data key as the wrapping key encrypted it


class DataKey(NamedTuple):
    """A data key that KMS generated or unwrapped."""

    wrapped_key: WrappedKey  # each token under this key holds it
    plaintext: bytes  # 32 secret bytes

    def __repr__(self) -> str:
        """Show the key without its plaintext."""
        born, hint, encrypted = self.wrapped_key
        return f"DataKey(born={born}, kek={hint.hex()}, wrapped={key_name(encrypted)})"


def with_length(part: bytes) -> bytes:
    """Put the length of a part, in 2 bytes, before it (`lp16` in envelope.md): so ("a", "bc") is not ("ab", "c")."""
    return len(part).to_bytes(2, "big") + part


def key_name(encrypted: bytes) -> str:
    """Return a short name of an encrypted data key, for logs."""
    return hashlib.sha256(encrypted).hexdigest()[:16]


def kek_hint(key_id: str) -> bytes:
    """Return the four bytes of a token that identify a wrapping key (envelope.md §3).

    `key_id` is the key's id without the ARN.
    """
    return hashlib.sha256(KEK_HINT_LABEL + key_id.encode()).digest()[:4]


class CachedKey(NamedTuple):
    """A data key in the memory of a container."""

    key: DataKey
    caller: str | None  # whose token made this container ask KMS; None if it generated the key


class KeyCache:
    """The data keys that a container generated, or under which it opened an authentic token.

    If the cache is full, it drops a key of the caller with the most keys: the least recently used one. So a caller who
    sends tokens under a thousand keys loses some of these, and other callers' keys stay.

    If several threads need a key that the cache lacks, one thread takes the lock of this key and calls KMS. The other
    threads wait for the lock. Then each of them looks into the cache again, and usually finds the key.
    """

    def __init__(self, capacity: int) -> None:
        """Begin without keys; the cache holds at most `capacity` of them."""
        self._capacity = capacity
        self._lock = threading.Lock()  # held while the two collections below are read or changed
        self._keys: OrderedDict[WrappedKey, CachedKey] = OrderedDict()  # least recently used first
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
