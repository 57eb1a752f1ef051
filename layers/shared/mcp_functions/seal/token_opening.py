"""Opens tokens under the data keys that their headers hold in wrapped form (envelope.md §6.3 and §6.5).

A container has KMS unwrap a data key once, and caches it after a token decrypted under it. Before that, the key may be
an attacker's: a forged token can hold any data key that KMS once wrapped.

Each forged token costs a call of KMS. So every caller has a budget for these calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import Busy, InvalidRequestState, TemporarilyUnavailable
from mcp_functions.seal.budgets import TokenBuckets
from mcp_functions.seal.key_cache import acquire_or_raise
from mcp_functions.seal.key_choice import last_use

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.seal.key_cache import KeyCache
    from mcp_functions.seal.keys import DataKey, Header
    from mcp_functions.seal.kms import WrappingKeys

SKEW_SECONDS = 60  # how far two clocks may differ
# The budget of a caller, in units (§6.5): three failed unwraps at once, and one more every 30 seconds.
FULL_BUDGET = 60
REFILL_PER_SECOND = 20 / 30
FAILED_UNWRAP_COST = 20  # the cost of an unwrap that fails, or after which the token turns out to be forged
AUTHENTIC_UNWRAP_COST = 1  # the cost of an unwrap for an authentic token


class TokenOpener:
    """Opens tokens in one container."""

    def __init__(self, wrapping_keys: WrappingKeys, cache: KeyCache, *, now: Callable[[], float]) -> None:
        """Open with the keys of a cache; `now` is the wall clock, in unix seconds."""
        self._wrapping_keys = wrapping_keys
        self._cache = cache
        self._now = now
        self._budgets = TokenBuckets(FULL_BUDGET, REFILL_PER_SECOND)

    def open(self, header: Header, decrypt: Callable[[DataKey], bytes], *, caller: str, max_age: float) -> bytes:
        """Decrypt a token under its data key, which is cached, or which KMS unwraps.

        Args:
            header: the header of the token, not authenticated yet.
            decrypt: decrypts the token with a key; raises InvalidRequestState if the token is not authentic.
            caller: the caller whose budget is charged if KMS is asked (`principals.caller_id`).
            max_age: how long a token may live after it was sealed, in seconds.

        Raises:
            InvalidRequestState: the key is of another scope, too old or damaged, or the token is not authentic.
            TemporarilyUnavailable: KMS is not available, or the caller's budget is empty.
            Misconfigured: KMS fails until the operator acts.
        """
        self._check_header(header, max_age)
        key = self._cache.get(header)
        if key:
            return decrypt(key)
        with acquire_or_raise(self._cache.unwrap_lock(header)):
            key = self._cache.get(header)  # another thread may have opened a token under this key meanwhile
            if key:
                return decrypt(key)
            key = self._charge_and_unwrap(header, caller)
            payload = decrypt(key)  # for a forged token it raises an error, and the caller has paid the full cost
            self._budgets.put_back(caller, FAILED_UNWRAP_COST - AUTHENTIC_UNWRAP_COST, self._now())
            self._cache.add(key, caller)
            return payload

    def _check_header(self, header: Header, max_age: float) -> None:
        """Check, before KMS is asked, that a token under this data key may still be valid (§6.3).

        `born` is the second in which KMS generated the data key. An attacker cannot change it: KMS unwraps the data key
        only together with this second.
        """
        now = self._now()
        if header.kek_hint not in self._wrapping_keys.by_hint:
            raise InvalidRequestState(reason="kek_unknown")
        if header.born > now + SKEW_SECONDS:
            raise InvalidRequestState(reason="born_future")
        if now > last_use(header.born) + max_age + SKEW_SECONDS:
            raise InvalidRequestState(reason="born_past")

    def _charge_and_unwrap(self, header: Header, caller: str) -> DataKey:
        """Have KMS unwrap a data key, and charge the caller as if this failed (§6.5).

        The charge comes first, so that many requests at the same time cannot cost more than the budget. `open` returns
        most of it for an authentic token. An outage costs nothing, because the caller did not cause it. A denial costs
        as much as a forged token: while KMS denies a key, each token under it would cause another call.
        """
        if not self._budgets.take(caller, FAILED_UNWRAP_COST, self._now()):
            raise Busy(reason="unwrap_budget")  # §6.5: "Over budget the answer is 503 and no verdict"
        try:
            return self._wrapping_keys.unwrap(header)
        except TemporarilyUnavailable:
            self._budgets.put_back(caller, FAILED_UNWRAP_COST, self._now())
            raise
