"""The keyring of a container: the data keys that seal and open its tokens (envelope.md §6).

    data key       encrypts tokens. KMS generates it, and returns it in the clear and wrapped (encrypted by KMS).
    wrapping key   the key in KMS that wraps data keys. It never leaves KMS.
    header         the unencrypted part of a token: the wrapped data key, when it was born, and `kek`
    kek            a hint of four bytes that says which wrapping key KMS needs; see `kek_hint`
    unwrap         a call of KMS that decrypts the wrapped data key of a token
    budget         limits how many failed unwraps one caller may cause; see `budgets`

The keyring caches the keys that it generated, and the keys under which a token was authentic. It seals with one of
these (`key_choice`). Anyone can send a token with a wrapped key that KMS unwraps, so unwrapping alone proves nothing.

A token opens only while its data key is young enough. The key's time of birth is in the token, unencrypted, and in the
EncryptionContext under which KMS wrapped the key. So KMS refuses a token in which an attacker made the key younger.

Threads may share a keyring. It forgets its keys before a snapshot, after a restore and in a forked child.
"""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import Busy, InvalidRequestState, TemporarilyUnavailable
from mcp_functions.seal.budgets import KeyCache, Limits, Turns, UnwrapBudgets
from mcp_functions.seal.key_choice import (
    DataKey,
    Header,
    Rules,
    Scope,
    TokenReason,
    choose_key,
    choose_stale_key,
    last_use,
)
from mcp_functions.seal.kms import KmsKey, Wrapping, WrappingKeys
from mcp_functions.seal.resets import register_for_reset

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["DataKey", "Header", "Keyring", "KmsKey", "Limits", "Rules", "Scope", "TokenReason", "Wrapping"]

DEFAULT_RULES = Rules()
DEFAULT_LIMITS = Limits()
_SEED_BYTES = 16
_log = logging.getLogger(__name__)


class _Memory:
    """The memory of a keyring in one object, so that one assignment resets it."""

    def __init__(self, limits: Limits, seed: bytes) -> None:
        self.keys = KeyCache(limits.opened)
        self.budgets = UnwrapBudgets(limits)
        self.turns_to_unwrap = Turns()
        self.turns_to_generate = Turns()
        self.seed = seed  # for `choose_key`
        self.paused_until = 0.0  # when GenerateDataKey may be tried again after a failure, in unix seconds


class Keyring:
    """The data keys of one scope, as one container sees them."""

    def __init__(  # noqa: PLR0913 - the wrapping keys and the scope; tests set the rest
        self,
        wrappings: Sequence[Wrapping],
        scope: Scope,
        *,
        now: Callable[[], float] = time.time,
        rand: Callable[[int], bytes] = os.urandom,
        rules: Rules = DEFAULT_RULES,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """Keep the wrapping keys, without a call to them.

        Args:
            wrappings: the wrapping keys; the first one seals, each of them opens.
            scope: the service, stage and generation, part of every EncryptionContext and every derivation.
            now: the wall clock, in unix seconds; a monotonic clock would be wrong after a snapshot.
            rand: the function that returns a number of random bytes, for the seed of `choose_key`.
            rules: the lifetime of a key.
            limits: the limits of memory and budgets.

        Raises:
            Misconfigured: there is no wrapping key, or two that headers cannot tell apart.
        """
        self._wrapping_keys = WrappingKeys(wrappings, scope)
        self.scope = scope
        self.rules = rules
        self._limits = limits
        self._now = now
        self._rand = rand
        self.reset()
        register_for_reset(self)

    def reset(self) -> None:
        """Forget every key, budget and lock."""
        # A call that runs now keeps the old `_Memory`. This is why each method reads `self._memory` only once.
        self._memory = _Memory(self._limits, self._rand(_SEED_BYTES))

    def key_to_seal(self) -> DataKey:
        """Return the data key to seal with now, and generate one if the rules require it.

        Raises:
            TemporarilyUnavailable: KMS is not available, and no earlier key may replace a new one.
            Misconfigured: KMS fails until the operator acts.
        """
        memory = self._memory
        key = self._choose(memory)
        if key:
            return key
        with memory.turns_to_generate:
            key = self._choose(memory)  # another thread may have generated a key meanwhile
            return key or self._generate(memory)

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
        with memory.turns_to_unwrap:
            key = memory.keys.get(header)  # another thread may have opened a token under this key meanwhile
            if key is None:
                return self._unwrap_and_decrypt(memory, header, decrypt, caller)
        return decrypt(key)

    def _check_header(self, header: Header, max_age: float) -> None:
        """Check, before KMS is asked, that a token under this data key may still be valid (§6.3)."""
        now = self._now()
        if not self._wrapping_keys.has(header.kek):
            raise InvalidRequestState(TokenReason.KEK_UNKNOWN)
        if header.born > now + self.rules.skew:
            raise InvalidRequestState(TokenReason.BORN_FUTURE)
        if now > last_use(header.born, self.rules) + max_age + self.rules.skew:
            raise InvalidRequestState(TokenReason.BORN_PAST)

    def _unwrap_and_decrypt(
        self, memory: _Memory, header: Header, decrypt: Callable[[DataKey], bytes], caller: str
    ) -> bytes:
        """Open a token with a call to KMS, on the caller's budget (§6.5)."""
        now = self._now()
        price = self._limits.ratio  # of an unwrap in vain; the price of one for an authentic token is 1
        if not memory.budgets.charge(caller, now, price):
            raise Busy(reason="unwrap_budget")  # "Over budget the answer is 503 and no verdict"
        # Any error but an outage keeps the price: a damaged key, a forged token, and KMS that denies the call. While it
        # denies, every token would cause a call.
        try:
            key = self._wrapping_keys.unwrap(header)
        except TemporarilyUnavailable:
            memory.budgets.refund(caller, now, price)  # the caller did not cause the outage
            raise
        payload = decrypt(key)
        memory.budgets.refund(caller, now, price - 1)
        memory.keys.add(key, caller)
        return payload

    def _choose(self, memory: _Memory) -> DataKey | None:
        return choose_key(self._keys_that_may_seal(memory), self._now(), memory.seed, self.rules)

    def _generate(self, memory: _Memory) -> DataKey:
        """Generate a key. During an outage, return a stale key if there is one."""
        now = self._now()
        stale = choose_stale_key(self._keys_that_may_seal(memory), now, self.rules)
        if stale and now < memory.paused_until:
            return stale
        try:
            key = self._wrapping_keys.generate(born=int(now))
        except TemporarilyUnavailable as error:
            memory.paused_until = now + self.rules.pause
            if stale is None:
                raise
            _log.warning("sealing under %r, of an earlier epoch: %s", stale, error.reason)
            return stale
        memory.keys.add(key, caller=None)
        return key

    def _keys_that_may_seal(self, memory: _Memory) -> list[DataKey]:
        """Return the cached keys under the first wrapping key; without adoption, only those of this container."""
        return [
            cached.key
            for cached in memory.keys.all()
            if cached.key.kek == self._wrapping_keys.first_kek and (self.rules.adopt or cached.caller is None)
        ]
