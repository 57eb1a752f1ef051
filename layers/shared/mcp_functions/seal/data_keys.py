"""The keyring of a container: the data keys that seal and open its tokens (envelope.md §6).

    data key       encrypts tokens. KMS generates it, and returns it in the clear and wrapped (encrypted by KMS).
    wrapping key   the key in KMS that wraps data keys. It never leaves KMS.
    header         the unencrypted part of a token: the wrapped data key, when it was born, and `kek`
    kek            a hint of four bytes that says which wrapping key KMS needs; see `kek_hint`
    unwrap         a call of KMS that decrypts the wrapped data key of a token
    budget         limits how many failed unwraps one caller may cause: a token bucket (`budgets`)

Anyone can send a token with a wrapped key that KMS unwraps, so unwrapping alone proves nothing. Therefore the keyring
caches only the keys that it generated, and the keys under which a token was authentic. It seals with one of these
(`key_choice`).

A token opens only while its data key is young enough. The key's time of birth is in the token, unencrypted, and in the
EncryptionContext under which KMS wrapped the key. So KMS refuses a token in which an attacker made the key younger.

Threads may share a keyring. Containers may not: Lambda (SnapStart) can start many from one snapshot of memory, and all
would have the same secrets. So the keyring forgets its keys before a snapshot and after a restore. It does the same in
a forked child.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from mcp_functions.protocol.errors import Busy, InvalidRequestState, TemporarilyUnavailable
from mcp_functions.seal.budgets import TokenBuckets
from mcp_functions.seal.key_cache import KeyCache
from mcp_functions.seal.key_choice import GRACE_RANDOM_BYTES, choose_key, draw_grace, epoch_of, last_use, oldest_key
from mcp_functions.seal.keys import DataKey, Header, Scope, TokenReason
from mcp_functions.seal.kms import Wrapping, WrappingKeys
from mcp_functions.seal.resets import register_for_reset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SKEW_SECONDS = 60  # how far two clocks may differ
PAUSE_SECONDS = 5  # after a failed GenerateDataKey: how long a container uses an earlier key without another try
MAX_KEYS = 256  # how many data keys a container caches
WAIT_SECONDS = 5.0  # how long a thread waits while another calls KMS; a call with its retries takes less
# The budget of a caller, in units (§6.5): three failed unwraps at once, and one more every 30 seconds.
FULL_BUDGET = 60
REFILL_PER_SECOND = 20 / 30
FAILED_UNWRAP = 20  # the price of an unwrap that fails, or under whose key the token is not authentic
AUTHENTIC_UNWRAP = 1  # the price of an unwrap for an authentic token
_log = logging.getLogger(__name__)


class _Memory:
    """The memory of a keyring in one object, so that one assignment resets it."""

    def __init__(self, max_keys: int, grace: float) -> None:
        self.keys = KeyCache(max_keys)
        self.budgets = TokenBuckets(FULL_BUDGET, REFILL_PER_SECOND)
        self.generating = threading.Lock()  # held by the one thread that asks KMS to generate a key
        self._lock = threading.Lock()
        # One lock for each wrapped key that KMS unwraps now, so that a slow call stops only the threads that need the
        # same key. A lock is dropped when no thread uses it.
        self._unwrapping: WeakValueDictionary[Header, threading.Lock] = WeakValueDictionary()
        self.grace = grace  # the length of this container's grace period in seconds; see `key_choice`
        self.paused_until = 0.0  # when GenerateDataKey may be tried again after a failure, in unix seconds

    def unwrapping(self, header: Header) -> threading.Lock:
        """Return the lock that is held by the one thread that asks KMS to unwrap this key."""
        with self._lock:
            return self._unwrapping.setdefault(header, threading.Lock())


class Keyring:
    """The data keys of one scope, as one container sees them."""

    def __init__(
        self,
        wrappings: Sequence[Wrapping],
        scope: Scope,
        *,
        now: Callable[[], float] = time.time,
        rand: Callable[[int], bytes] = os.urandom,
        max_keys: int = MAX_KEYS,
    ) -> None:
        """Keep the wrapping keys, without a call to them.

        Args:
            wrappings: the wrapping keys; the first one seals, each of them opens.
            scope: the service, stage and generation, part of every EncryptionContext and every derivation.
            now: the wall clock, in unix seconds; a monotonic clock would be wrong after a snapshot.
            rand: the function that returns a number of random bytes, to draw the end of the grace period.
            max_keys: how many data keys are cached.

        Raises:
            Misconfigured: there is no wrapping key, or two that headers cannot tell apart.
        """
        self._wrapping_keys = WrappingKeys(wrappings, scope)
        self.scope = scope
        self._max_keys = max_keys
        self._now = now
        self._rand = rand
        self.reset()
        register_for_reset(self)

    def reset(self) -> None:
        """Forget every key, budget and lock."""
        # A call that runs now keeps the old `_Memory`. This is why each method reads `self._memory` only once.
        self._memory = _Memory(self._max_keys, draw_grace(self._rand(GRACE_RANDOM_BYTES)))

    def key_to_seal(self) -> DataKey:
        """Return the data key to seal with now, and generate one if no cached key may seal.

        Raises:
            TemporarilyUnavailable: KMS is not available, and no earlier key may replace a new one.
            Misconfigured: KMS fails until the operator acts.
        """
        memory = self._memory
        key = self._choose(memory)
        if key:
            return key
        try:
            with _one_thread(memory.generating):
                key = self._choose(memory)  # another thread may have generated a key meanwhile
                return key or self._generate(memory)
        except TemporarilyUnavailable as error:
            previous = self._previous_key(memory)
            if previous is None:
                raise
            _log.warning("sealing under %r, of an earlier epoch: %s", previous, error.reason)
            return previous

    def open(self, header: Header, decrypt: Callable[[DataKey], bytes], *, caller: str, max_age: float) -> bytes:
        """Decrypt a token under its data key, which is cached, or which KMS unwraps.

        Args:
            header: the header of the token, not authenticated yet.
            decrypt: decrypts the token with a key; raises InvalidRequestState if the token is not authentic.
            caller: the caller whose budget is charged if KMS is asked (`binding.caller_id`).
            max_age: how long a token may live after it was sealed, in seconds.

        Raises:
            InvalidRequestState: the key is of another scope, too old or damaged, or the token is not authentic.
            TemporarilyUnavailable: KMS is not available, or the caller's budget is empty.
            Misconfigured: KMS fails until the operator acts.
        """
        self._check_header(header, max_age)
        memory = self._memory
        key = memory.keys.get(header)
        if key:
            return decrypt(key)
        with _one_thread(memory.unwrapping(header)):
            key = memory.keys.get(header)  # another thread may have opened a token under this key meanwhile
            if key is None:
                return self._unwrap_and_decrypt(memory, header, decrypt, caller)
        return decrypt(key)

    def _check_header(self, header: Header, max_age: float) -> None:
        """Check, before KMS is asked, that a token under this data key may still be valid (§6.3)."""
        now = self._now()
        if not self._wrapping_keys.has(header.kek):
            raise InvalidRequestState(TokenReason.KEK_UNKNOWN)
        if header.born > now + SKEW_SECONDS:
            raise InvalidRequestState(TokenReason.BORN_FUTURE)
        if now > last_use(header.born) + max_age + SKEW_SECONDS:
            raise InvalidRequestState(TokenReason.BORN_PAST)

    def _unwrap_and_decrypt(
        self, memory: _Memory, header: Header, decrypt: Callable[[DataKey], bytes], caller: str
    ) -> bytes:
        """Open a token with a call to KMS, on the caller's budget (§6.5)."""
        # The full price first, because nobody knows yet whether the token is authentic.
        if not memory.budgets.take(caller, FAILED_UNWRAP, self._now()):
            raise Busy(reason="unwrap_budget")  # "Over budget the answer is 503 and no verdict"
        # Any error but an outage keeps the price: a damaged key, a forged token, and KMS that denies the call. While it
        # denies, every token would cause a call.
        try:
            key = self._wrapping_keys.unwrap(header)
        except TemporarilyUnavailable:
            memory.budgets.put_back(caller, FAILED_UNWRAP, self._now())  # the caller did not cause the outage
            raise
        payload = decrypt(key)
        memory.budgets.put_back(caller, FAILED_UNWRAP - AUTHENTIC_UNWRAP, self._now())
        memory.keys.add(key, caller)
        return payload

    def _choose(self, memory: _Memory) -> DataKey | None:
        return choose_key(self._keys_that_may_seal(memory), self._now(), memory.grace)

    def _previous_key(self, memory: _Memory) -> DataKey | None:
        """Return the key of the previous epoch, which may seal while KMS generates no key."""
        return oldest_key(self._keys_that_may_seal(memory), epoch_of(self._now()) - 1)

    def _generate(self, memory: _Memory) -> DataKey:
        """Generate a key. In the pause after a failure, return a key of the previous epoch if there is one."""
        now = self._now()
        previous = self._previous_key(memory)
        if previous and now < memory.paused_until:
            return previous
        try:
            key = self._wrapping_keys.generate(born=int(now))
        except TemporarilyUnavailable:
            memory.paused_until = now + PAUSE_SECONDS
            raise
        memory.keys.add(key, caller=None)
        return key

    def _keys_that_may_seal(self, memory: _Memory) -> list[DataKey]:
        """Return the cached keys under the first wrapping key: the operator has chosen it to seal."""
        return [key for key in memory.keys.all() if key.kek == self._wrapping_keys.first_kek]


@contextmanager
def _one_thread(lock: threading.Lock) -> Iterator[None]:
    """Let one thread at a time call KMS for a key. The next one then often finds the key in the cache.

    While KMS does not answer, the threads must not queue up. So each gives up after a few seconds.

    Raises:
        TemporarilyUnavailable: another thread has called KMS for `WAIT_SECONDS`.
    """
    if not lock.acquire(timeout=WAIT_SECONDS):
        raise TemporarilyUnavailable(reason="kms:NoTurn")
    try:
        yield
    finally:
        lock.release()
