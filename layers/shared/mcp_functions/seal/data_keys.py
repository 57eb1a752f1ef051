"""The keyring of a container: the data keys that seal and open its tokens (envelope.md §6).

A data key encrypts tokens. KMS generates and wraps it: encrypts it under a key that never leaves KMS. The header of a
token is not encrypted. It holds the wrapped data key, and the second in which the data key was born.

To seal a token, `key_choice` chooses the data key. To open a token, the keyring

    1. checks that the data key is young enough;
    2. decrypts the token, if the cache has the data key;
    3. otherwise charges the caller for a failed unwrap, and has KMS unwrap the data key;
    4. decrypts the token, returns most of the charge, and caches the data key.

Anyone can send a token with a data key of their own that KMS wrapped. Only a token that decrypts in step 4 proves that
the data key is one of ours, so the keyring caches no key before. The charge limits how many forged tokens reach KMS.

The EncryptionContext of a wrapped key names the second of birth, too. So KMS refuses a token in which an attacker made
the data key younger.

Threads may share a keyring. Containers may not: Lambda (SnapStart) can start many containers from one snapshot of
memory, which then would have the same secrets. So the keyring forgets its keys before a snapshot, after a restore and
in a forked child.
"""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import Busy, InvalidRequestState, TemporarilyUnavailable
from mcp_functions.seal.budgets import TokenBuckets
from mcp_functions.seal.key_cache import KeyCache, acquire_or_raise
from mcp_functions.seal.key_choice import GRACE_RANDOM_BYTES, KeyChoice, draw_grace, last_use
from mcp_functions.seal.keys import DataKey, Header, Scope, TokenReason
from mcp_functions.seal.kms import Wrapping, WrappingKeys
from mcp_functions.seal.resets import register_for_reset

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SKEW_SECONDS = 60  # how far two clocks may differ
MAX_KEYS = 256  # how many data keys a container caches
# The budget of a caller, in units (§6.5): three failed unwraps at once, and one more every 30 seconds.
FULL_BUDGET = 60
REFILL_PER_SECOND = 20 / 30
FAILED_UNWRAP_COST = 20  # the cost of an unwrap that fails, or after which the token turns out to be forged
AUTHENTIC_UNWRAP_COST = 1  # the cost of an unwrap for an authentic token
_log = logging.getLogger(__name__)


class Keyring:
    """The data keys of one scope, as one container sees them."""

    def __init__(
        self,
        wrappings: Sequence[Wrapping],
        scope: Scope,
        *,
        now: Callable[[], float] = time.time,
        rand: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """Keep the wrapping keys, without a call to them.

        Args:
            wrappings: the wrapping keys; the first one seals, each of them opens.
            scope: the service, stage and generation, part of every EncryptionContext and every derivation.
            now: the wall clock, in unix seconds; a monotonic clock would be wrong after a snapshot.
            rand: the function that returns a number of random bytes, for the end of the grace period (`key_choice`).

        Raises:
            Misconfigured: there is no wrapping key, or two that headers cannot tell apart.
        """
        self._wrapping_keys = WrappingKeys(wrappings, scope)
        self.scope = scope
        self._now = now
        self._rand = rand
        self.reset()
        register_for_reset(self)

    def reset(self) -> None:
        """Forget every key, budget and lock, and draw a new end of the grace period (`key_choice`)."""
        self._cache = KeyCache(MAX_KEYS)
        self._budgets = TokenBuckets(FULL_BUDGET, REFILL_PER_SECOND)
        grace = draw_grace(self._rand(GRACE_RANDOM_BYTES))
        self._choice = KeyChoice(self._wrapping_keys, self._cache, now=self._now, grace=grace)

    def key_to_seal(self) -> DataKey:
        """Return the data key to seal with now.

        Raises:
            TemporarilyUnavailable: KMS is not available, and no earlier key may replace a new one.
            Misconfigured: KMS fails until the operator acts.
        """
        choice = self._choice  # read once, because a reset may replace it in the middle of this call
        try:
            return choice.choose_or_generate()
        except TemporarilyUnavailable as error:
            key = choice.previous_key()
            if key is None:
                raise
            _log.warning("sealing under %r, of an earlier epoch: %s", key, error.reason)
            return key

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
        # Read once: a reset in the middle of this call makes a new cache, which must not get the key.
        cache = self._cache
        key = cache.get(header)
        if key:
            return decrypt(key)
        with acquire_or_raise(cache.unwrap_lock(header)):
            key = cache.get(header)  # another thread may have opened a token under this key meanwhile
            if key:
                return decrypt(key)
            key = self._charge_and_unwrap(header, caller)
            payload = decrypt(key)  # raises an error for a forged token, whose caller then gets nothing back
            self._budgets.put_back(caller, FAILED_UNWRAP_COST - AUTHENTIC_UNWRAP_COST, self._now())
            cache.add(key, caller)
            return payload

    def _check_header(self, header: Header, max_age: float) -> None:
        """Check, before KMS is asked, that a token under this data key may still be valid (§6.3)."""
        now = self._now()
        if header.kek_hint not in self._wrapping_keys.by_hint:
            raise InvalidRequestState(TokenReason.KEK_UNKNOWN)
        if header.born > now + SKEW_SECONDS:
            raise InvalidRequestState(TokenReason.BORN_FUTURE)
        if now > last_use(header.born) + max_age + SKEW_SECONDS:
            raise InvalidRequestState(TokenReason.BORN_PAST)

    def _charge_and_unwrap(self, header: Header, caller: str) -> DataKey:
        """Charge the caller for a failed unwrap, and have KMS unwrap a data key (§6.5).

        An outage costs nothing, because the caller did not cause it. A denial costs as much as a forged token: while
        KMS denies a key, each token under it would cause another call.
        """
        if not self._budgets.take(caller, FAILED_UNWRAP_COST, self._now()):
            raise Busy(reason="unwrap_budget")  # "Over budget the answer is 503 and no verdict"
        try:
            return self._wrapping_keys.unwrap(header)
        except TemporarilyUnavailable:
            self._budgets.put_back(caller, FAILED_UNWRAP_COST, self._now())
            raise
