"""Data keys: minted about once per fifteen minutes and fleet, wrapped by KMS, found again inside every token.

A key's birth time stands in the EncryptionContext and is checked before KMS is asked: a leaked data key cannot be made
younger. Everything here may be asked from many threads, is thrown away before a snapshot, after a restore and in a
forked child, and takes its clock and its randomness as parameters.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from mcp_functions import observability
from mcp_functions.protocol.errors import Busy, InvalidRequestState, McpError, Misconfigured, TemporarilyUnavailable
from mcp_functions.seal.budgets import KeyCache, Limits, SingleFlight, UnwrapBudgets
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
    end_of,
    kek_hint,
    key_name,
    last_use,
    rank,
)
from mcp_functions.seal.kms import KmsKey, Wrapping, kms_client
from mcp_functions.seal.process_resets import register_reset

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "MAX_WRAPPED", "Choice", "DataKey", "Header", "Keyring", "KmsKey", "Limits", "Rules", "Scope", "TokenReason",
    "Wrapping", "choose_key", "kek_hint", "key_name", "kms_client", "register_reset",
]  # fmt: skip

PURPOSE = "mcp-request-state"
DEFAULT_RULES = Rules()
DEFAULT_LIMITS = Limits()
_log = logging.getLogger(__name__)


class _State:
    """Everything a container has learnt, in one place, so that forgetting it is one assignment."""

    def __init__(self, limits: Limits) -> None:
        self.lock = threading.Lock()
        self.flights = SingleFlight()
        self.budgets = UnwrapBudgets(limits)
        self.opened = KeyCache(limits.opened)  # proven: a token under it was authentic
        # KMS opened it, no token has proven it yet; and the caller that KMS was asked for
        self.fresh: OrderedDict[Header, tuple[DataKey, str]] = OrderedDict()
        self.mine: dict[int, DataKey] = {}  # epoch -> the oldest key generated here
        self.adopted: dict[int, DataKey] = {}  # epoch -> the oldest sibling's key
        self.early: tuple[int, float] = (-1, 0.0)  # epoch, seconds
        self.paused_until = 0.0  # after a failed GenerateDataKey


class Keyring:
    """The data keys of one scope, as one container sees them."""

    def __init__(  # noqa: PLR0913 - what wraps and for whom; the rest is what tests turn
        self,
        wrappings: Sequence[Wrapping],
        scope: Scope,
        *,
        now: Callable[[], float] = time.time,
        rand: Callable[[int], bytes] = os.urandom,
        rules: Rules = DEFAULT_RULES,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """Remember who wraps; no call is made.

        Args:
            wrappings: in order: the first seals, all open.
            scope: service, stage and generation: part of every EncryptionContext and every derivation.
            now: unix seconds, wall clock (a monotonic one means nothing across a snapshot).
            rand: `n` random bytes; only the roll-over jitter uses it.
            rules: the life of a key.
            limits: memory and budgets.

        Raises:
            Misconfigured: there is no wrapping key, or two that headers cannot tell apart.

        """
        self._hints = {kek_hint(wrapping.id): index for index, wrapping in enumerate(wrappings)}
        if not wrappings or len(self._hints) != len(wrappings):
            message = "MCP_KMS_KEYS must list at least one KMS key ARN, and none twice"
            raise Misconfigured(message)
        self.scope, self.rules = scope, rules
        self._wrappings, self._limits, self._now, self._rand = tuple(wrappings), limits, now, rand
        self._primary = kek_hint(wrappings[0].id)
        self._state = _State(limits)
        register_reset(self)

    def reset(self) -> None:
        """Forget every key, budget, lock and client; a call under way ends in the state it began with."""
        self._state = _State(self._limits)
        for wrapping in self._wrappings:
            forget = getattr(wrapping, "reset", None)
            if forget:
                forget()

    def key_to_seal(self) -> DataKey:
        """Return the data key to seal under now, minting one if the rules say so.

        Raises:
            TemporarilyUnavailable: KMS cannot answer, and no key is left that may stand in.
            Misconfigured: KMS will not answer until the operator acts.

        """
        state = self._state
        return self._choice(state).key or state.flights.run("seal", lambda: self._mint(state))

    def key_to_open(self, header: Header, caller: str, *, max_age: float) -> DataKey:
        """Return the data key that a token names, asking KMS only if this container does not know it.

        Args:
            header: the token's own words, authenticated by nothing yet.
            caller: who is charged if KMS has to be asked.
            max_age: seconds that what is sealed may live.

        Raises:
            InvalidRequestState: the key is not ours, too old, or not a key.
            TemporarilyUnavailable: KMS cannot answer, or the caller has no budget left: no verdict.
            Misconfigured: KMS will not answer until the operator acts.

        """
        state, now = self._state, self._now()
        if header.kek not in self._hints:
            raise InvalidRequestState(TokenReason.KEK_UNKNOWN)
        # Before KMS is asked: not from the future, and not older than anything that may still be alive under it (§6.3).
        if header.born > now + self.rules.skew:
            raise InvalidRequestState(TokenReason.BORN_FUTURE)
        if now > last_use(header.born, self.rules) + max_age + self.rules.skew:
            raise InvalidRequestState(TokenReason.BORN_PAST)
        return _recall(state, header) or self._unwrap_on_budget(state, header, caller, now)

    def confirm(self, key: DataKey) -> None:
        """Learn that a token under `key` was authentic: keep the key, and adopt it if it is wrapped as ours are."""
        state, header = self._state, key.header
        with state.lock:
            if header in state.opened:
                return
            _key, caller = state.fresh.pop(header, (key, ""))
            state.opened.add(header, key, caller)
            # "never adopt on KMS success alone; never adopt a key wrapped by a non-primary KEK"
            if key.kek == self._primary:
                _keep_oldest(state.adopted, key, self._now(), self.rules)

    def reject(self, key: DataKey, caller: str) -> None:
        """Learn that a token under `key` was not authentic; if none ever was, its unwrap was in vain."""
        state, header = self._state, key.header
        with state.lock:
            if header in state.opened:
                return
            state.fresh.pop(header, None)
        state.budgets.take_rest(caller, self._now())

    def _unwrap_on_budget(self, state: _State, header: Header, caller: str, now: float) -> DataKey:
        def admit() -> None:
            # "Over budget there is no verdict." Who only waits for another's question is not charged for it.
            if not state.budgets.take(caller, now):
                reason = "unwrap_budget"
                raise Busy(reason)

        def ask() -> DataKey:
            try:
                key = _recall(state, header) or self._unwrap(header)
            except InvalidRequestState:
                raise
            except Misconfigured:
                # A denial costs as much as an unwrap in vain, or every token would cost a call for as long as it lasts.
                observability.current().kms_failures += 1
                raise
            except Exception:
                observability.current().kms_failures += 1
                state.budgets.give_back(caller, now)  # an outage is not the caller's fault
                raise
            state.budgets.settle(caller, now)  # `reject` takes the rest if the token is a forgery
            with state.lock:
                if header not in state.opened:
                    state.fresh[header] = key, caller
                while len(state.fresh) > self._limits.opened:
                    state.fresh.popitem(last=False)
            return key

        return state.flights.run(header, ask, admit)

    def _unwrap(self, header: Header) -> DataKey:
        index = self._hints[header.kek]
        try:
            with observability.kms():
                plaintext = self._wrappings[index].unwrap(header.wrapped, self._context(header.born))
        except Misconfigured:
            if index == 0:
                raise
            raise InvalidRequestState(TokenReason.KEK_RETIRED) from None  # the flow starts again; nobody is paged
        except McpError:
            raise
        except OSError as error:
            raise _outage(error) from None
        except Exception:  # noqa: BLE001 - whatever an own wrapping raises over damaged bytes: it fails closed
            raise InvalidRequestState(TokenReason.WRAPPED_KEY) from None
        return _checked(DataKey(*header, plaintext))

    def _mint(self, state: _State) -> DataKey:
        choice, now = self._choice(state), self._now()  # another thread may have minted while this one came here
        if choice.key:
            return choice.key
        if choice.stale and now < state.paused_until:
            return choice.stale
        try:
            key = self._generate(int(now))
        except Misconfigured:
            observability.current().kms_failures += 1
            raise
        except TemporarilyUnavailable as error:
            observability.current().kms_failures += 1
            state.paused_until = now + self.rules.pause
            if not choice.stale:
                raise
            _log.warning("sealing under %r, of an earlier epoch: %s", choice.stale, error.reason)
            return choice.stale
        with state.lock:
            state.opened.add(key.header, key)
            _keep_oldest(state.mine, key, now, self.rules)
        return key

    def _generate(self, born: int) -> DataKey:
        try:
            with observability.kms():
                plaintext, wrapped = self._wrappings[0].generate(self._context(born))
        except (TemporarilyUnavailable, Misconfigured):
            raise
        except OSError as error:
            raise _outage(error) from None
        except Exception as error:  # noqa: BLE001 - of an own wrapping; nothing about minting is the client's fault
            reason = f"wrapping:{type(error).__name__}"
            raise Misconfigured(reason) from None
        return _checked(DataKey(born, self._primary, wrapped, plaintext))

    def _context(self, born: int) -> dict[str, str]:
        """Return the EncryptionContext (§5). CloudTrail shows it in clear: nothing personal is in it."""
        service, stage, generation = self.scope
        return {
            "purpose": PURPOSE, "service": service, "stage": stage, "generation": generation, "born": str(born),
        }  # fmt: skip

    def _choice(self, state: _State) -> Choice:
        now = self._now()
        with state.lock:
            mine, adopted = list(state.mine.values()), list(state.adopted.values())
        return choose_key(mine, adopted, now, self._early(state, now), self.rules)

    def _early(self, state: _State, now: float) -> float:
        """Draw Exp(grace/12) once per epoch: few containers roll over first, and the others find their key."""
        epoch = int(now // self.rules.epoch)
        if state.early[0] != epoch:
            uniform = (int.from_bytes(self._rand(7), "big") + 1) / (1 << 56)
            state.early = (epoch, -math.log(uniform) * self.rules.grace / 12)
        return state.early[1]


def _recall(state: _State, header: Header) -> DataKey | None:
    with state.lock:
        return state.opened.get(header) or state.fresh.get(header, (None, ""))[0]


def _keep_oldest(keys: dict[int, DataKey], key: DataKey, now: float, rules: Rules) -> None:
    """Keep of each epoch the key that `choose_key` would take, and no epoch that it would not look at."""
    epoch = key.born // rules.epoch
    if epoch not in keys or rank(key) < rank(keys[epoch]):
        keys[epoch] = key
    for old in [kept for kept, of in keys.items() if now >= end_of(of.born, rules) + rules.stale]:
        del keys[old]


def _checked(key: DataKey) -> DataKey:
    if len(key.plaintext) != KEY_BYTES or not 1 <= len(key.wrapped) <= MAX_WRAPPED:
        reason = "wrapping:KeyLength"
        raise Misconfigured(reason)
    return key


def _outage(error: OSError) -> TemporarilyUnavailable:
    return TemporarilyUnavailable(f"wrapping:{type(error).__name__}")
