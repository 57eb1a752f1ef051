"""The keyring of a container: the data keys that seal and open its tokens (envelope.md §6).

    to seal    `key_choice` chooses a data key that the container knows; if none is recent enough, KMS generates one
    to open    the container knows the data key of the token, or KMS unwraps it

A container knows the keys in its cache: those that KMS generated for it, and those under which it opened an authentic
token. An unwrapped key alone proves nothing: a forged token can hold any data key that KMS once wrapped. Each forged
token costs a call of KMS, so every caller has a budget for these calls (§6.5).

Threads may share a keyring. Containers may not: Lambda (SnapStart) can start many containers from one snapshot of
memory, which then would have the same secrets. So the keyring forgets its keys before a snapshot, after a restore and
in a forked child.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import Busy, InvalidRequestState, TemporarilyUnavailable
from mcp_functions.seal.budgets import TokenBuckets
from mcp_functions.seal.key_choice import GRACE_RANDOM_BYTES, choose_key, draw_grace, find_key_for_outage, last_use
from mcp_functions.seal.keys import KeyCache, acquire_or_raise
from mcp_functions.seal.kms import Wrapping, WrappingKeys
from mcp_functions.seal.resets import register_for_reset

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_functions.seal.keys import DataKey, Scope, WrappedKey

MAX_KEYS = 256  # how many data keys a container caches
PAUSE_SECONDS = 5  # after KMS failed, a container seals with the previous key for so long
SKEW_SECONDS = 60  # how far two clocks may differ
# The budget of a caller, in units (§6.5): three failed unwraps at once, and one more every 30 seconds.
FULL_BUDGET = 60
REFILL_PER_SECOND = 20 / 30
# What a token costs whose data key KMS has to unwrap:
#   it is authentic                             AUTHENTIC_UNWRAP_COST
#   it is forged, or KMS refuses its data key   FAILED_UNWRAP_COST
#   KMS is not available                        nothing, because the caller did not cause it
# A denial counts as a refusal: while KMS denies a key, each token under it would cause another call.
FAILED_UNWRAP_COST = 20
AUTHENTIC_UNWRAP_COST = 1

_log = logging.getLogger("mcp_functions.seal.key_choice")  # docs/runbooks.md names it


class Keyring:
    """The data keys of one scope, as one container sees them."""

    def __init__(self, wrappings: Sequence[Wrapping], scope: Scope, *, now: Callable[[], float] = time.time) -> None:
        """Keep the wrapping keys, without a call to them; the first one seals, each of them opens.

        `now` is the wall clock: a monotonic one would be wrong after a snapshot.
        """
        self._wrapping_keys = WrappingKeys(wrappings, scope)
        self.scope = scope
        self._now = now
        self.reset()
        register_for_reset(self)

    def reset(self) -> None:
        """Forget every key, budget and lock. No request is under way when this runs (envelope.md §6.6)."""
        self._cache = KeyCache(MAX_KEYS)
        self._budgets = TokenBuckets(FULL_BUDGET, REFILL_PER_SECOND)
        self._grace = draw_grace(os.urandom(GRACE_RANDOM_BYTES))  # in seconds
        self._generate_lock = threading.Lock()  # of the one thread that has KMS generate a key
        self._pause_ends = 0.0  # when KMS may be asked again after a failure, in unix seconds

    def key_to_seal(self) -> DataKey:
        """Return the data key to seal with now."""
        key = self._find_known_key()
        if key:
            return key
        try:
            return self._generate_key()
        except TemporarilyUnavailable as error:
            key = find_key_for_outage(self._keys_that_may_seal(), self._now())
            if key is None:
                raise
            _log.warning("sealing under %r, of an earlier epoch: %s", key, error.reason)
            return key

    def open(
        self, wrapped_key: WrappedKey, decrypt: Callable[[DataKey], bytes], *, caller: str, max_age: float
    ) -> bytes:
        """Decrypt a token with its data key. If KMS is asked, the budget of `caller` is charged (`binding.caller_id`).

        Args:
            wrapped_key: the data key in the token, not authenticated yet.
            decrypt: decrypts the token. An exception means that the token is forged.
            caller: who sent the token.
            max_age: how long a token may live after it was sealed, in seconds.
        """
        self._check_wrapped_key(wrapped_key, max_age)
        key = self._cache.get(wrapped_key)
        if key:
            return decrypt(key)
        with acquire_or_raise(self._cache.unwrap_lock(wrapped_key)):
            key = self._cache.get(wrapped_key)  # another thread may have opened a token meanwhile
            if not key:
                return self._unwrap_and_decrypt(wrapped_key, decrypt, caller)
        return decrypt(key)

    def _find_known_key(self) -> DataKey | None:
        """Find a known key to seal with; None if the container needs a new one."""
        now = self._now()
        keys = self._keys_that_may_seal()
        if now < self._pause_ends:
            return find_key_for_outage(keys, now)
        return choose_key(keys, now, self._grace)

    def _generate_key(self) -> DataKey:
        """Have KMS generate a key. If KMS is not available, the pause begins."""
        with acquire_or_raise(self._generate_lock):
            key = self._find_known_key()  # another thread may have generated a key meanwhile
            if key:
                return key
            now = self._now()
            try:
                key = self._wrapping_keys.generate(born=int(now))
            except TemporarilyUnavailable:
                self._pause_ends = now + PAUSE_SECONDS
                raise
            self._cache.add(key, caller=None)
            return key

    def _keys_that_may_seal(self) -> list[DataKey]:
        """Return the known data keys that the first wrapping key wrapped. `kek_hint` identifies a wrapping key."""
        return [key for key in self._cache.known_keys() if key.wrapped_key.kek_hint == self._wrapping_keys.first_hint]

    def _check_wrapped_key(self, wrapped_key: WrappedKey, max_age: float) -> None:
        """Check, before KMS is asked, that a token under this data key may still be valid (§6.3).

        `born` is the second in which KMS generated the data key. An attacker cannot change it: KMS unwraps the data key
        only together with this second.
        """
        now = self._now()
        if wrapped_key.kek_hint not in self._wrapping_keys.by_hint:
            raise InvalidRequestState(reason="kek_unknown")
        if wrapped_key.born > now + SKEW_SECONDS:
            raise InvalidRequestState(reason="born_future")
        if now > last_use(wrapped_key.born) + max_age + SKEW_SECONDS:
            raise InvalidRequestState(reason="born_past")

    def _unwrap_and_decrypt(self, wrapped_key: WrappedKey, decrypt: Callable[[DataKey], bytes], caller: str) -> bytes:
        """Have KMS unwrap the data key of a token, and learn the key if it decrypts the token (§6.5).

        The full cost is charged first, so that many requests at the same time cannot cost more than the budget.
        """
        if not self._budgets.take(caller, FAILED_UNWRAP_COST, self._now()):
            # §6.5: "Over budget the answer is 503 and no verdict"
            raise Busy(reason="unwrap_budget")
        try:
            key = self._wrapping_keys.unwrap(wrapped_key)
        except TemporarilyUnavailable:
            self._budgets.put_back(caller, FAILED_UNWRAP_COST, self._now())
            raise
        payload = decrypt(key)
        self._budgets.put_back(caller, FAILED_UNWRAP_COST - AUTHENTIC_UNWRAP_COST, self._now())
        self._cache.add(key, caller)
        return payload
