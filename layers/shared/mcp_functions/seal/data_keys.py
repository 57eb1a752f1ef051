"""The keyring of a container: it generates data keys, unwraps those of tokens, and forgets them (envelope.md §6).

    data key       encrypts tokens. KMS generates it, and returns it in the clear and wrapped (encrypted by KMS).
    wrapping key   the key in KMS that wraps data keys. It never leaves KMS.
    header         the unencrypted part of a token: the wrapped data key, when it was born, and `kek`
    kek            a hint of four bytes that says which wrapping key KMS needs; see `kek_hint`
    unwrap         a call of KMS that decrypts the wrapped data key of a token. The result is cached.
    epoch          a quarter of an hour. About once in each, the fleet changes the data key; see `key_choice`.
    proven         the state of a key that this container generated, or under which a token was authentic
    budget         limits how many failed unwraps one caller may cause; see `budgets`

A token opens only while its data key is young enough. The key's time of birth is in the token, unencrypted, and in the
EncryptionContext under which KMS wrapped the key. So KMS refuses a token in which an attacker made the key younger.

Threads may share a keyring. It forgets its keys before a snapshot, after a restore and in a forked child.
"""

from __future__ import annotations

import logging
import math
import os
import time
from typing import TYPE_CHECKING

from mcp_functions import observability
from mcp_functions.protocol.errors import Busy, InvalidRequestState, Misconfigured, TemporarilyUnavailable
from mcp_functions.seal.budgets import CachedKey, KeyCache, Limits, SingleFlight, UnwrapBudgets
from mcp_functions.seal.key_choice import (
    KEY_BYTES,
    MAX_WRAPPED,
    Choice,
    DataKey,
    Header,
    Rules,
    Scope,
    TokenReason,
    choose_key,
    kek_hint,
    last_use,
)
from mcp_functions.seal.kms import KmsKey, Wrapping
from mcp_functions.seal.resets import register_for_reset

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "MAX_WRAPPED", "DataKey", "Header", "Keyring", "KmsKey", "Limits", "Rules", "Scope", "TokenReason", "Wrapping",
    "kek_hint",
]  # fmt: skip

PURPOSE = "mcp-request-state"  # part of every EncryptionContext
DEFAULT_RULES = Rules()
DEFAULT_LIMITS = Limits()
_log = logging.getLogger(__name__)


class _State:
    """The memory of a keyring in one object, so that one assignment resets it."""

    def __init__(self, limits: Limits) -> None:
        self.calls = SingleFlight()  # threads that need the same key share one call of KMS
        self.budgets = UnwrapBudgets(limits)
        self.opened = KeyCache(limits.opened)
        # The random seconds by which this container leaves the grace period before the others, so that not all of them
        # generate a key at once. They are drawn once for each epoch.
        self.early_seconds = 0.0
        self.early_epoch = -1  # the number of the epoch for which they were drawn; -1 before the first draw
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
            rand: the function that returns a number of random bytes, from which `early` of `choose_key` is drawn.
            rules: the lifetime of a key.
            limits: the limits of memory and budgets.

        Raises:
            Misconfigured: there is no wrapping key, or two that headers cannot tell apart.
        """
        self._wrappings = {kek_hint(wrapping.id): wrapping for wrapping in wrappings}
        if not wrappings or len(self._wrappings) != len(wrappings):
            raise Misconfigured(reason="MCP_KMS_KEYS must list at least one KMS key ARN, and none twice")
        self.scope = scope
        self.rules = rules
        self._limits = limits
        self._now = now
        self._rand = rand
        self._primary = kek_hint(wrappings[0].id)
        self._state = _State(limits)
        register_for_reset(self)

    def reset(self) -> None:
        """Forget every key, budget and lock."""
        # A call that runs now keeps the old `_State`. This is why each method reads `self._state` only once.
        self._state = _State(self._limits)

    def key_to_seal(self) -> DataKey:
        """Return the data key to seal with now, and generate one if the rules require it.

        Raises:
            TemporarilyUnavailable: KMS is not available, and no earlier key may replace a new one.
            Misconfigured: KMS fails until the operator acts.
        """
        state = self._state
        choice = self._choice(state)
        if choice.key:
            return choice.key
        # Threads that need a new key at the same time share one call.
        return state.calls.run("seal", lambda: self._choose_or_generate(state))

    def key_to_open(self, header: Header, caller: str, *, max_age: float) -> DataKey:
        """Return the data key of a token, from the cache or from KMS.

        Args:
            header: the header of the token, not authenticated yet.
            caller: the caller whose budget is charged if KMS is asked (`binding.caller_id`).
            max_age: how long a token may live, in seconds.

        Raises:
            InvalidRequestState: the key is of another scope, too old, or damaged.
            TemporarilyUnavailable: KMS is not available, or the caller's budget is empty.
            Misconfigured: KMS fails until the operator acts.
        """
        state = self._state
        now = self._now()
        if header.kek not in self._wrappings:
            raise InvalidRequestState(TokenReason.KEK_UNKNOWN)
        # §6.3, before KMS is asked: the key is not from the future, and a token under it may still be valid.
        if header.born > now + self.rules.skew:
            raise InvalidRequestState(TokenReason.BORN_FUTURE)
        if now > last_use(header.born, self.rules) + max_age + self.rules.skew:
            raise InvalidRequestState(TokenReason.BORN_PAST)
        cached = state.opened.get(header)
        if cached:
            return cached
        return self._unwrap_on_budget(state, header, caller, now)

    def confirm(self, key: DataKey) -> None:
        """Mark a key as proven after a token under it was authentic: this container may seal with it, too."""
        self._state.opened.prove(key)

    def reject(self, key: DataKey, caller: str) -> None:
        """Charge a failed unwrap after a token was not authentic, unless another token has proven the key."""
        state = self._state
        if state.opened.drop_unproven(key.header):
            state.budgets.charge(caller, self._now(), self._limits.ratio - 1)

    def _unwrap_on_budget(self, state: _State, header: Header, caller: str, now: float) -> DataKey:
        ratio = self._limits.ratio

        def admit() -> None:
            # "Over budget the answer is 503 and no verdict" (§6.5). A thread that only waits is not charged.
            if not state.budgets.charge(caller, now, ratio):
                raise Busy(reason="unwrap_budget")

        def ask() -> DataKey:
            # If KMS denies the call, nothing is refunded: while it denies, every token would cause a call.
            try:
                # The cache comes first: another thread may have opened the key meanwhile.
                key = state.opened.get(header) or self._unwrap(header)
            except TemporarilyUnavailable:
                state.budgets.refund(caller, now, ratio)  # the caller did not cause the outage
                raise
            state.budgets.refund(caller, now, ratio - 1)  # `reject` charges it again for a forged token
            state.opened.add(CachedKey(key, caller, is_proven=False))
            return key

        return state.calls.run(header, ask, admit)

    def _unwrap(self, header: Header) -> DataKey:
        with observability.KmsTimer():
            try:
                plaintext = self._wrappings[header.kek].unwrap(header.wrapped, self._context(header.born))
            except Misconfigured:
                if header.kek == self._primary:
                    raise
                # The operator disabled a key that no longer seals. Its conversations start again, without an alarm.
                raise InvalidRequestState(TokenReason.KEK_RETIRED) from None
            except (InvalidRequestState, TemporarilyUnavailable):
                raise
            except OSError as error:
                raise _outage(error) from None
            except Exception:  # noqa: BLE001 - an author's wrapping may raise anything for damaged bytes: it fails closed
                raise InvalidRequestState(TokenReason.WRAPPED_KEY) from None
            return _checked(DataKey(header.born, header.kek, header.wrapped, plaintext))

    def _choose_or_generate(self, state: _State) -> DataKey:
        """Return the key that the rules choose. If there is none, generate one; during an outage, use the fallback."""
        choice = self._choice(state)  # another thread may have generated a key meanwhile
        now = self._now()
        if choice.key:
            return choice.key
        if choice.fallback and now < state.paused_until:
            return choice.fallback
        try:
            key = self._generate(int(now))
        except TemporarilyUnavailable as error:
            state.paused_until = now + self.rules.pause
            if not choice.fallback:
                raise
            _log.warning("sealing under %r, of an earlier epoch: %s", choice.fallback, error.reason)
            return choice.fallback
        state.opened.add(CachedKey(key, None, is_proven=True))
        return key

    def _generate(self, born: int) -> DataKey:
        with observability.KmsTimer():
            try:
                plaintext, wrapped = self._wrappings[self._primary].generate(self._context(born))
            except (TemporarilyUnavailable, Misconfigured):
                raise
            except OSError as error:
                raise _outage(error) from None
            except Exception as error:  # noqa: BLE001 - an author's wrapping may raise anything; it is no client's fault
                raise Misconfigured(reason=f"wrapping:{type(error).__name__}") from None
            return _checked(DataKey(born, self._primary, wrapped, plaintext))

    def _context(self, born: int) -> dict[str, str]:
        """Return the EncryptionContext (§5). CloudTrail shows it in clear, so it holds nothing personal."""
        service, stage, generation = self.scope
        return {
            "purpose": PURPOSE, "service": service, "stage": stage, "generation": generation, "born": str(born),
        }  # fmt: skip

    def _choice(self, state: _State) -> Choice:
        now = self._now()
        keys = [cached.key for cached in state.opened.all() if self._may_seal(cached)]
        return choose_key(keys, now, self._early_seconds(state, now), self.rules)

    def _may_seal(self, cached: CachedKey) -> bool:
        # §6.2: it "never adopts a key that KMS has opened but no token has proven, nor a key under another wrapping key
        # than the first listed".
        is_allowed = self.rules.adopt or cached.caller is None
        return is_allowed and cached.is_proven and cached.key.kek == self._primary

    def _early_seconds(self, state: _State, now: float) -> float:
        """Return by how many seconds this container leaves the grace period early, drawn once for each epoch.

        The distribution is exponential with a mean of grace/12. So a few containers generate a key, and the others have
        time to adopt it.
        """
        epoch = int(now // self.rules.epoch)
        if state.early_epoch != epoch:
            uniform = (int.from_bytes(self._rand(7), "big") + 1) / (1 << 56)  # above 0 and at most 1: log(0) fails
            state.early_seconds = -math.log(uniform) * self.rules.grace / 12
            state.early_epoch = epoch
        return state.early_seconds


def _checked(key: DataKey) -> DataKey:
    if len(key.plaintext) != KEY_BYTES or not 1 <= len(key.wrapped) <= MAX_WRAPPED:
        raise Misconfigured(reason="wrapping:KeyLength")
    return key


def _outage(error: OSError) -> TemporarilyUnavailable:
    return TemporarilyUnavailable(reason=f"wrapping:{type(error).__name__}")
