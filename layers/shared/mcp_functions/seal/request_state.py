"""The state of one round, sealed for the next, and bound to its request. Specification: envelope.md §9.

A token that opens only proves that this server sealed it. Its claims name the principal, the call with its arguments,
the expiry and the open questions. `RequestStates.open` compares each of them with the request. It works over any codec,
without keys or KMS.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

from mcp_functions import observability
from mcp_functions.protocol.constants import CALLS
from mcp_functions.protocol.errors import (
    DeveloperError,
    InvalidParams,
    InvalidRequestState,
    Misconfigured,
    TemporarilyUnavailable,
)
from mcp_functions.protocol.json_reader import is_deeper
from mcp_functions.protocol.json_writer import base64url, dumps
from mcp_functions.seal.canonical_json import canonical_digest
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.messages import Principal, Request
    from mcp_functions.seal.envelope import Codec, Envelope

VERSION = 1
MAX_RECORD_DEPTH = 200  # lower than the limit of any JSON parser
FLOW_SECONDS = 3600
FLOW_FACTOR = 6  # a conversation may last as long as six answers, where an author allows a longer wait for one
SKEW_MS = 60_000
_FLOW_BYTES = 16
_CLAIMS: dict[str, set[type]] = {
    "v": {int}, "aud": {str}, "m": {str}, "t": {str}, "a": {str}, "p": {str, type(None)}, "iat": {int}, "exp": {int},
    "fx": {int}, "f": {str}, "r": {int}, "q": {dict}, "s": {dict},
}  # fmt: skip


class ClaimReason(StrEnum):
    """Why claims are refused: for the log and the metric, never on the wire (§9.5)."""

    CODEC = "codec"
    CLAIMS = "claims"
    AUDIENCE = "audience"
    PRINCIPAL = "principal"
    METHOD = "method"
    TARGET = "target"
    ARGUMENTS = "arguments"
    ISSUED_FUTURE = "issued_future"
    LIFETIME = "lifetime"
    EXPIRED = "expired"
    ROUND = "round"


BINDING_CLAIMS = {  # the field of a Binding and its claim, for each reason, in the order of §9.5
    ClaimReason.AUDIENCE: ("audience", "aud"),
    ClaimReason.PRINCIPAL: ("principal", "p"),
    ClaimReason.METHOD: ("method", "m"),
    ClaimReason.TARGET: ("target", "t"),
    ClaimReason.ARGUMENTS: ("arguments_digest", "a"),
}


class RoundBudgetExceeded(Exception):
    """The conversation has used its rounds or its time. The text may be shown to the model and the user."""


class Binding(NamedTuple):
    """The request that a state belongs to."""

    audience: str
    method: str
    target: str
    arguments_digest: str
    principal: str | None


class VerifiedState(NamedTuple):
    """The claims of a state that passed every check.

    Attributes:
        flow: the id of the conversation.
        round: number of the round that left the state, from 1.
        asked: fingerprint of each question of that round, by wire key.
        record: JSON of the rounds engine.
        issued: when it was sealed, in unix milliseconds.
        flow_deadline: when the conversation ends, in unix milliseconds.

    """

    flow: str
    round: int
    asked: dict[str, str]
    record: dict[str, Any]
    issued: int
    flow_deadline: int


class RoundStart(NamedTuple):
    """The beginning of a round: the request it is bound to, and the state that the client returned, if any."""

    binding: Binding
    flow: str
    state: VerifiedState | None

    @property
    def number(self) -> int:
        """The number of the round, from 1."""
        return self.state.round + 1 if self.state else 1


def max_flow_seconds(lifetime: int) -> int:
    """Return how many seconds a conversation may take, if one answer may take `lifetime` (§9.4)."""
    return max(FLOW_SECONDS, FLOW_FACTOR * lifetime)


def bind_request(audience: str, method: str, params: Mapping[str, Any], principal: Principal | None) -> Binding:
    """Return the binding of a state to its request (§9.2).

    Args:
        audience: "<service>/<stage>".
        method: one of `CALLS`.
        params: of the request; the target's name and `arguments` count, `_meta` and `inputResponses` may change.
        principal: the authenticated caller; None without authentication.

    Raises:
        InvalidParams: the arguments have no canonical form: they are nested too deep, or have an invalid number.

    """
    arguments = params.get("arguments") if method != "resources/read" else None
    try:
        # The handler gets no arguments in all three cases: absent, null and an empty object.
        digest = base64url(canonical_digest(b"ks1/args\0", {} if arguments is None else arguments))
    except ValueError as error:
        message = f"Invalid arguments: {error}"
        raise InvalidParams(message) from None
    return Binding(audience, method, str(params.get(CALLS[method], "")), digest, principal_digest(principal))


def start_round(audience: str, request: Request, states: RequestStates | None) -> RoundStart:
    """Verify the state that a request carries, or begin a conversation.

    Args:
        audience: "<service>/<stage>".
        request: of this round.
        states: opens the state; None if the function has no keys.

    Raises:
        InvalidParams: the arguments have no canonical form.
        InvalidRequestState: the state does not belong to this request.
        TemporarilyUnavailable, Misconfigured: the keys are not available.

    """
    binding = bind_request(audience, request.message["method"], request.params, request.principal)
    if "requestState" not in request.params:
        return RoundStart(binding, states.new_flow() if states else "", None)
    if states is None:
        reason = "function_has_no_keys"
        raise InvalidRequestState(reason)
    token = request.params["requestState"]
    if not isinstance(token, str):
        reason = "shape"
        raise InvalidRequestState(reason)
    state = states.open(token, binding, caller=caller_id(request.principal, request.address))
    return RoundStart(binding, state.flow, state)


def principal_digest(principal: Principal | None) -> str | None:
    """Return the digest of a principal for claims and logs (§9.2)."""
    return None if principal is None else _digest(b"ks1/principal\0", _joined(*principal))


def caller_id(principal: Principal | None, address: str) -> str:
    """Return the id under which a caller's failed unwraps are counted (§6.5). It is neither sealed nor logged.

    It leaves out the OAuth client, because one person may register any number of clients.

    Args:
        principal: the authenticated caller; None without authentication.
        address: of the caller; it is the id without authentication.

    """
    return address if principal is None else _digest(b"ks1/payer\0", _joined(principal.iss, principal.sub))


def read_claims(payload: bytes) -> dict[str, Any]:
    """Read the claims (§9.1). Each must be there and have exactly its type, and no other member is allowed.

    Raises:
        InvalidRequestState: the payload is not such a document.

    """
    try:
        # The JSON reader for requests would change recorded values, such as 2.0 and lone surrogates.
        document, line, kept = payload.decode("utf-8", "surrogatepass").partition("\n")
        members = json.loads(document)
        claims = {name: members[name] for name in _CLAIMS}
    except (ValueError, RecursionError, KeyError, TypeError):
        raise InvalidRequestState(ClaimReason.CLAIMS) from None
    typed = all(type(claims[name]) in types for name, types in _CLAIMS.items())
    if not typed or len(members) != len(claims) or claims["v"] != VERSION:
        raise InvalidRequestState(ClaimReason.CLAIMS)
    if not all(isinstance(fingerprint, str) for fingerprint in claims["q"].values()):
        raise InvalidRequestState(ClaimReason.CLAIMS)
    if line:
        claims["s"]["state"] = kept
    return claims


def unseal(codec: Codec, token: str, caller: str) -> bytes:
    """Open a token. An envelope charges the caller for a failed unwrap; an author's codec takes the token alone.

    Raises:
        InvalidRequestState: the token is invalid, or an author's codec raised anything at all.
        TemporarilyUnavailable, Misconfigured: no key is available.
    """
    try:
        if getattr(codec, "knows_callers", False):
            payload = cast("Envelope", codec).unseal(token, caller=caller)
        else:
            payload = codec.unseal(token)
    except (InvalidRequestState, TemporarilyUnavailable, Misconfigured):
        raise
    except Exception:  # noqa: BLE001 - an author's codec may raise anything, and its text may hold secrets
        raise InvalidRequestState(ClaimReason.CODEC) from None
    if not isinstance(payload, bytes):
        raise InvalidRequestState(ClaimReason.CODEC)
    return payload


class RequestStates:
    """Seals the state of a round, and opens it for the request that continues the conversation."""

    def __init__(  # noqa: PLR0913 - every limit of §9 is a parameter
        self,
        codec: Codec,
        *,
        now: Callable[[], float] = time.time,
        lifetime_seconds: int = 600,
        max_rounds: int = 16,
        anonymous: bool = False,
        rand: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """Set the limits.

        Args:
            codec: an `Envelope`, or an author's own codec.
            now: the clock, in unix seconds.
            lifetime_seconds: how long one answer may take.
            max_rounds: how many states one conversation may leave.
            anonymous: whether states may have no principal (a server without authentication).
            rand: returns so many random bytes, for the id of a conversation.

        Raises:
            Misconfigured: the codec cannot open a state of this lifetime.

        """
        max_age = getattr(codec, "max_age", None)
        if max_age is not None and lifetime_seconds > max_age:
            message = f"a state may live {lifetime_seconds} s, its envelope {max_age} s: raise Envelope(max_age=...)"
            raise Misconfigured(message)
        self._codec, self._now, self._rand = codec, now, rand
        self._lifetime_ms, self._flow_ms = lifetime_seconds * 1000, max_flow_seconds(lifetime_seconds) * 1000
        self._max_rounds, self._anonymous = max_rounds, anonymous

    def new_flow(self) -> str:
        """Return a random id for a new conversation."""
        return base64url(self._rand(_FLOW_BYTES))

    def seal(
        self,
        binding: Binding,
        previous: VerifiedState | None,
        *,
        asked: Mapping[str, str],
        record: Mapping[str, Any],
        flow: str = "",
    ) -> str:
        """Seal the state of a round.

        Args:
            binding: the request of this round.
            previous: the state that this round began with; None in the first round.
            asked: fingerprint of each open question, by wire key.
            record: JSON of the rounds engine.
            flow: the id of a conversation that begins here; empty for a new one.

        Raises:
            RoundBudgetExceeded: the conversation has used its rounds or its time.
            DeveloperError: the record is not JSON.
            StateTooLarge, TemporarilyUnavailable, Misconfigured: the codec cannot seal it.

        """
        self._check_principal(binding)
        issued = int(self._now() * 1000)
        number, deadline = 1, issued + self._flow_ms
        if previous:
            # This clock may be behind the one that set the deadline; a later deadline would be refused (§9.5).
            number, deadline = previous.round + 1, min(previous.flow_deadline, deadline)
        if number > self._max_rounds:
            message = f"This conversation has used its {self._max_rounds} rounds. Start again."
            raise RoundBudgetExceeded(message)
        if deadline <= issued:
            message = "This conversation has used its time. Start again."
            raise RoundBudgetExceeded(message)
        bound = dict(zip(("aud", "m", "t", "a", "p"), binding, strict=True))
        times = {"iat": issued, "exp": min(issued + self._lifetime_ms, deadline), "fx": deadline}
        flow = previous.flow if previous else flow or self.new_flow()
        claims = {"v": VERSION, **bound, **times, "f": flow, "r": number, "q": dict(asked)}
        return self._codec.seal(_encode(claims, dict(record)))

    def open(self, token: str, binding: Binding, *, caller: str = "") -> VerifiedState:
        """Open a state, and check that it belongs to a request.

        Args:
            token: that the client sent.
            binding: of the request that carries it.
            caller: who is charged for a failed unwrap (`caller_id`).

        Raises:
            InvalidRequestState: the state does not belong to this request; `reason` is for the log.
            TemporarilyUnavailable, Misconfigured: the keys are not available.

        """
        self._check_principal(binding)
        notes = observability.current()
        notes.payer = caller
        claims = read_claims(unseal(self._codec, token, caller))
        state = VerifiedState(*(claims[name] for name in ("f", "r", "q", "s", "iat", "fx")))
        notes.flow, notes.round = state.flow, state.round + 1
        _check_binding(claims, binding)
        self._check_times(claims)
        if not 1 <= state.round <= self._max_rounds:
            raise InvalidRequestState(ClaimReason.ROUND)
        return state

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        now = int(self._now() * 1000)
        issued, expires, deadline = claims["iat"], claims["exp"], claims["fx"]
        if issued > now + SKEW_MS:
            raise InvalidRequestState(ClaimReason.ISSUED_FUTURE)
        # "exp - iat is never over the lifetime that is configured now": a shorter lifetime takes effect at once.
        has_lifetime = 0 < expires - issued <= self._lifetime_ms and expires <= deadline
        # Another container may have set the deadline, so its clock may differ.
        if not has_lifetime or deadline - issued > self._flow_ms + SKEW_MS:
            raise InvalidRequestState(ClaimReason.LIFETIME)
        if now >= expires:
            raise InvalidRequestState(ClaimReason.EXPIRED)

    def _check_principal(self, binding: Binding) -> None:
        # "A missing principal is an error, unless the deployment says that it knows nobody."
        if binding.principal is None and not self._anonymous:
            message = "no principal: set RequestStates(anonymous=True) for a server without authentication"
            raise Misconfigured(message)


def _check_binding(claims: Mapping[str, Any], binding: Binding) -> None:
    """Compare every claim about the request. A state without a principal opens only without one."""
    for reason, (field, name) in BINDING_CLAIMS.items():
        if not _equal(claims[name], getattr(binding, field)):
            raise InvalidRequestState(reason)


def _equal(claim: str | None, expected: str | None) -> bool:
    if claim is None or expected is None:
        return claim is expected
    return hmac.compare_digest(claim.encode("utf-8", "surrogatepass"), expected.encode("utf-8", "surrogatepass"))


def _encode(claims: Mapping[str, Any], record: dict[str, Any]) -> bytes:
    """Write the claims as one line of JSON, followed by the text that a low-level function keeps (§9.1).

    A lone surrogate in an answer is encoded unchanged.
    """
    kept = "\n" + record.pop("state") if isinstance(record.get("state"), str) else ""
    try:
        payload = (dumps({**claims, "s": record}) + kept).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError):
        message = "the state is not JSON: keep str, int, finite float, bool, None, list and dict with str keys in it"
        raise DeveloperError(message) from None
    if is_deeper(record, MAX_RECORD_DEPTH):
        rule = "the state is nested deeper than {most}"
        raise DeveloperError(rule, most=MAX_RECORD_DEPTH)
    return payload


def _joined(*parts: str) -> bytes:
    """Join parts with a length before each, so that two lists of parts never give the same bytes."""
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return b"".join(len(part).to_bytes(2, "big") + part for part in encoded)


def _digest(label: bytes, content: bytes) -> str:
    return base64url(hashlib.sha256(label + content).digest())
