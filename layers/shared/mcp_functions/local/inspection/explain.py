"""Explains why a server refuses a state (`requestState`), which is a token in two parts.

    public part     which data key encrypts the rest; the data key itself is encrypted ("wrapped") by KMS
    sealed part     encrypted: the claims (for which request, user and time it is valid) and the record of the call

The deployed code (`Envelope`, `RequestStates`) decides. It runs again after each refusal, so that every reason is named
and not only the first. Answers and state are shown only on request, keys never.
"""

from __future__ import annotations

import json
from datetime import datetime
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from mcp_functions.local.inspection.key_source import FOR_EVER, unlimited_envelope
from mcp_functions.local.inspection.public_part import describe
from mcp_functions.local.inspection.reasons import MAX_ROUNDS, WHY
from mcp_functions.local.problems import stop
from mcp_functions.protocol.constants import CALLS
from mcp_functions.protocol.errors import InvalidParams, InvalidRequestState, Misconfigured, TemporarilyUnavailable
from mcp_functions.seal.binding import bind_request, principal_digest
from mcp_functions.seal.claims import BINDING_FIELDS, Claims, read_claims
from mcp_functions.seal.claims import ClaimReason as Claim
from mcp_functions.seal.codec_adapter import CodecAdapter
from mcp_functions.seal.data_keys import Keyring, Scope, TokenReason
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.keys import kek_hint
from mcp_functions.seal.request_state import RequestStates

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mcp_functions.local.inspection.key_source import KeySource
    from mcp_functions.protocol.messages import Principal
    from mcp_functions.seal.binding import Binding
    from mcp_functions.seal.data_keys import Wrapping

ON_REQUEST = "(--show-state shows it)"
UNITS = ((86_400, "days"), (3600, "h"), (60, "min"), (1, "s"))  # seconds of a unit, longest first


class Request(TypedDict, total=False):
    """The refused request, as far as the operator knows it; a part that is left out is not compared."""

    method: str  # one of `CALLS`
    target: str  # the name or URI of the call
    arguments: Any  # JSON
    principal: Principal | None  # who sent it; None on a server without authentication
    answer_within: int | None  # the handler's lifetime of a state, in seconds


class Explanation(NamedTuple):
    """The content of a token, and the reasons to refuse it."""

    lines: tuple[str, ...]  # for the terminal
    reasons: tuple[str, ...] = ()  # every reason to refuse the token
    record: dict[str, Any] | None = None  # the sealed record, if it could be opened

    def __str__(self) -> str:
        """Return all lines, with the reasons last."""
        refused = [f"refused: {reason}: {WHY.get(reason, 'see envelope.md')}" for reason in self.reasons]
        return "\n".join([*self.lines, *(refused or ["not refused, as far as it was compared"])])


def shown(token: str, *, now: float) -> Explanation:
    """Describe the public part of a token, for which no key is needed, or the reason why it is malformed."""
    try:
        seen = describe(token)
    except InvalidRequestState as refused:
        return Explanation((), (refused.reason,))
    sizes = f"{seen['chars']} characters, of which {seen['payload_bytes']} bytes are sealed"
    return Explanation(
        (
            _line("token", f"{sizes}; jti {seen['jti']}"),
            _line("data key", f"{seen['key']}, born {_when(seen['born'], now)}"),
            _line("wrapped by", f"the KMS key with kek {seen['kek']}"),
        )
    )


def explain(token: str, keyring: KeySource, request: Request, *, now: float, show_state: bool = False) -> Explanation:
    """Describe a token, and every reason to refuse it.

    Args:
        token: the token as a client sent it.
        keyring: the keys and the scopes with which it may open.
        request: the refused request, with which it is compared.
        now: the time in unix seconds.
        show_state: whether to print the answers and the state too.

    Raises:
        Problem: KMS does not allow this user to open it, or is not available.
    """
    public = shown(token, now=now)
    if public.reasons:
        return public
    outside = public.lines
    seen = describe(token)
    # The token names the KMS key that wraps its data key ("kek", key encryption key) by a hash of the key's ARN.
    wrappings = [wrapping for wrapping in keyring.wrappings if kek_hint(wrapping.id).hex() == seen["kek"]]
    if not wrappings:
        return Explanation(outside, (TokenReason.KEK_UNKNOWN,))
    wrapping = wrappings[0]
    scope, payload = _opened(token, wrapping, keyring.scopes, born=seen["born"])
    claims = _claims(payload) if isinstance(payload, bytes) else None
    allowed = claims and ceil((claims.expires - claims.issued) / 1000)
    envelope = Envelope(
        Keyring([wrapping], scope, now=lambda: now), max_age=request.get("answer_within") or allowed or FOR_EVER
    )
    today = _unseal(envelope, token)  # with the server's own limits: it may be too long, or its data key too old
    early = [today] if isinstance(today, str) else []
    if payload != TokenReason.WRAPPED_KEY:
        elsewhere = keyring.expected not in (None, scope)
        early += [TokenReason.WRAPPED_KEY] if elsewhere else []
        outside = (*outside, _line("scope", f"{_named(scope)}{', not that of the request' if elsewhere else ''}"))
    if not isinstance(payload, bytes) or claims is None:
        last = payload if isinstance(payload, str) else Claim.CLAIMS
        return Explanation(outside, tuple(dict.fromkeys([*early, last])))
    bound = _bound(f"{scope.service}/{scope.stage}", request, claims)
    differing = _refusals(payload, bound, claims, now=now, lifetime=int(envelope.max_age))
    inside = _inside(claims, request, set(differing), now)
    state = (json.dumps(claims.record, indent=2, ensure_ascii=False),) if show_state else ()
    return Explanation((*outside, *inside, *state), (*early, *differing), claims.record)


def _opened(token: str, wrapping: Wrapping, scopes: Sequence[Scope], *, born: int) -> tuple[Scope, bytes | str]:
    """Open a token with the first scope that KMS accepts, at the time when its data key was made."""
    for scope in scopes:
        opened = _unseal(unlimited_envelope(wrapping, scope, now=lambda: born), token)
        if opened != TokenReason.WRAPPED_KEY:  # KMS accepts the scope, so no other is right
            return scope, opened
    return scopes[0], TokenReason.WRAPPED_KEY


def _unseal(envelope: Envelope, token: str) -> bytes | str:
    """Return the sealed bytes, or the reason for a refusal."""
    try:
        return envelope.unseal(token)
    except InvalidRequestState as refused:
        return str(refused.reason)
    except TemporarilyUnavailable as error:
        stop(
            f"KMS does not answer ({error.reason}): try again, and look at the network, the Region and the proxy",
            after=error,
        )
    except Misconfigured as error:
        stop(
            f"KMS does not open it for you ({error.reason}): the key must be enabled, and your credentials need"
            " kms:Decrypt on it for this service and stage",
            after=error,
        )


class _Payload:
    """A codec for a payload that is open already."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def seal(self, payload: bytes, /) -> str:
        return payload.decode()

    def unseal(self, _token: str, /) -> bytes:
        return self._payload


def _claims(payload: bytes) -> Claims | None:
    """Return the claims, or None if the deployed code finds them malformed."""
    try:
        claims = read_claims(payload)
    except InvalidRequestState:
        return None
    kept = claims.record.get("state")
    if isinstance(kept, str):
        claims.record["state"] = json.loads(kept)
    return claims


def _bound(audience: str, request: Request, claims: Claims) -> Binding:
    """Make the binding of the request; its unknown parts come from the token."""
    known = claims.binding
    method, target = request.get("method", known.method), request.get("target", known.target)
    bound = known._replace(audience=audience, method=method, target=target)
    if "principal" in request:
        bound = bound._replace(principal=principal_digest(request["principal"]))
    if "arguments" not in request:
        return bound
    params = {CALLS.get(method, "name"): target, "arguments": request["arguments"]}
    try:
        return bound._replace(arguments_digest=bind_request(audience, method, params, None).arguments_digest)
    except InvalidParams as error:
        stop(f"--arguments: {error.message}", after=error)


def _refusals(payload: bytes, bound: Binding, claims: Claims, *, now: float, lifetime: int) -> tuple[str, ...]:
    """Return every reason to refuse a request: after each one, replace its value by the claim's and check again."""
    reasons: list[str] = []
    opened = CodecAdapter(_Payload(payload), b"")
    states = RequestStates(opened, now=lambda: now, lifetime_seconds=lifetime, max_rounds=MAX_ROUNDS, anonymous=True)
    while True:
        try:
            states.open("", bound)
        except InvalidRequestState as refused:
            reasons.append(refused.reason)
            if refused.reason not in BINDING_FIELDS:
                return tuple(reasons)
            field = BINDING_FIELDS[Claim(refused.reason)]
            bound = bound._replace(**{field: getattr(claims.binding, field)})
        else:
            return tuple(reasons)


def _inside(claims: Claims, request: Request, differing: set[str], now: float) -> Iterator[str]:
    """Yield the lines about the sealed part."""

    def compared(name: Claim) -> str:
        if name not in request:
            return "not compared"
        return "other than the request's" if name in differing else "as in the request"

    binding = claims.binding
    principal = "nobody" if binding.principal is None else binding.principal
    yield _line("audience", binding.audience)
    yield _line("method", f"{binding.method} ({compared(Claim.METHOD)})")
    yield _line("target", f"{binding.target} ({compared(Claim.TARGET)})")
    yield _line("arguments", f"digest {binding.arguments_digest} ({compared(Claim.ARGUMENTS)})")
    yield _line("principal", f"{principal} ({compared(Claim.PRINCIPAL)})")
    yield _line("sealed", _when(claims.issued / 1000, now))
    yield _line("expires", _when(claims.expires / 1000, now))
    yield _line("conversation", f"{claims.flow}, ends {_when(claims.flow_deadline / 1000, now)}")
    yield _line("round", f"{claims.round} of {MAX_ROUNDS}")
    yield _line("asked", ", ".join(sorted(claims.asked)) or "nothing")
    for name, kept in sorted(claims.record.items()):
        yield _line(name, ", ".join(sorted(kept)) if isinstance(kept, dict) else ON_REQUEST)


def _named(scope: Scope) -> str:
    return f"{scope.service}, stage {scope.stage}, generation {scope.generation}"


def _line(label: str, text: str) -> str:
    return f"{label:<13} {text}"


def _when(at: float, now: float) -> str:
    """Return a time in the user's time zone, and its distance from now."""
    away = abs(at - now)
    fitting = [(length, unit) for length, unit in UNITS if away >= length]
    length, unit = fitting[0] if fitting else UNITS[-1]
    distance = f"{away / length:.0f} {unit}"
    relative = f"in {distance}" if at > now else f"{distance} ago"
    local = datetime.fromtimestamp(at).astimezone()
    return f"{local:%Y-%m-%d %H:%M:%S %Z}, {relative}"
