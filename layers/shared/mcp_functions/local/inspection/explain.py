"""Explains why a server refuses a `requestState`, a token in two parts.

    public part     the data key that encrypts the rest; KMS has encrypted ("wrapped") this data key for a scope: a
                    service, a stage and a generation
    sealed part     encrypted: the claims (for which request, user and time the token is valid), and the record of the
                    call, with its user's answers

A server stops at the first reason to refuse a token. Here the server's code (`Envelope`, `RequestStates`) runs again
after each reason, so that all of them are named. Keys are never shown, answers only on request.
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
from mcp_functions.protocol.constants import CALL_METHODS
from mcp_functions.protocol.errors import InvalidParams, InvalidRequestState, Misconfigured, TemporarilyUnavailable
from mcp_functions.seal.binding import bind_request, principal_digest
from mcp_functions.seal.claims import BINDING_FIELDS, ClaimReason, Claims, read_claims
from mcp_functions.seal.codec_adapter import CodecAdapter
from mcp_functions.seal.data_keys import Keyring
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.keys import Scope, TokenReason, kek_hint
from mcp_functions.seal.request_state import RequestStates

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mcp_functions.local.inspection.key_source import KeySource
    from mcp_functions.protocol.messages import Principal
    from mcp_functions.seal.binding import Binding
    from mcp_functions.seal.kms import Wrapping

ON_REQUEST = "(--show-state shows it)"  # in place of a part of the record
UNITS = ((86_400, "days"), (3600, "h"), (60, "min"), (1, "s"))  # seconds of a unit, longest first


class Request(TypedDict, total=False):
    """The refused request, as far as the operator knows it. A part that is missing is not compared."""

    method: str  # one of `CALL_METHODS`
    target: str  # the name or URI in the call
    arguments: Any  # `params.arguments`
    principal: Principal | None  # who sent it; None on a server without authentication
    answer_within: int | None  # the handler's lifetime of a state, in seconds


class Explanation(NamedTuple):
    """The content of a token, and the reasons to refuse it."""

    lines: tuple[str, ...]  # for the terminal
    reasons: tuple[str, ...] = ()  # every reason to refuse the token
    record: dict[str, Any] | None = None  # the record of the call; None if the token does not open

    def __str__(self) -> str:
        """Return all lines, with the reasons last."""
        refused = [f"refused: {reason}: {WHY.get(reason, 'see envelope.md')}" for reason in self.reasons]
        return "\n".join([*self.lines, *(refused or ["not refused, as far as it was compared"])])


class _Opened(NamedTuple):
    """The result of opening a token."""

    scope: Scope | None  # the scope that KMS has accepted, if any
    payload: bytes | None  # the content of the sealed part; None if it does not open
    reason: str  # why it does not open; "" if it does


def explain_public_part(token: str, *, now: float) -> Explanation:
    """Describe the public part of a token, for which no key is needed; if it is malformed, the reason.

    Args:
        token: the token as a client sent it.
        now: the time in unix seconds.
    """
    try:
        public = describe(token)
    except InvalidRequestState as refusal:
        return Explanation((), (refusal.reason,))
    sizes = f"{public['chars']} characters, of which {public['payload_bytes']} bytes are sealed"
    return Explanation(
        (
            _line("token", f"{sizes}; jti {public['jti']}"),
            _line("data key", f"{public['key']}, born {_when(public['born'], now)}"),
            _line("wrapped by", f"the KMS key with kek {public['kek']}"),
        )
    )


def explain(token: str, keyring: KeySource, request: Request, *, now: float, show_state: bool = False) -> Explanation:
    """Describe a token, and every reason to refuse it.

    Args:
        token: the token as a client sent it.
        keyring: the keys and the scopes with which it may open.
        request: the refused request.
        now: the time in unix seconds.
        show_state: whether the lines have the record too, with the user's answers.

    Raises:
        Problem: KMS does not allow this user to open it, or is not available.
    """
    public = explain_public_part(token, now=now)
    if public.reasons:
        return public
    lines = list(public.lines)
    reasons: list[str] = []
    # 1. Find the KMS key. The token names it by a hash of its ARN ("kek", key encryption key).
    header = describe(token)
    wrapping = next((key for key in keyring.wrappings if kek_hint(key.id).hex() == header["kek"]), None)
    if wrapping is None:
        return Explanation(public.lines, (TokenReason.KEK_UNKNOWN,))
    # 2. Open the token without limits of size and age.
    opened = _open(token, wrapping, keyring.scopes, born=header["born"])
    claims = _read_claims(opened.payload)
    # 3. Open it again with the server's limits.
    max_age = _max_age(request, claims)
    server_keyring = Keyring([wrapping], opened.scope or keyring.scopes[0], now=lambda: now)
    _payload, reason = _unseal(Envelope(server_keyring, max_age=max_age), token)
    if reason:
        reasons.append(reason)
    # 4. Compare the scope.
    if opened.scope is not None:
        is_expected = keyring.expected is None or keyring.expected == opened.scope
        remark = "" if is_expected else ", not that of the request"
        lines.append(_line("scope", f"{_name(opened.scope)}{remark}"))
        if not is_expected:
            reasons.append(TokenReason.WRAPPED_KEY)
    if opened.scope is None or opened.payload is None or claims is None:
        reasons.append(opened.reason or ClaimReason.CLAIMS)
        return Explanation(tuple(lines), tuple(dict.fromkeys(reasons)))  # each reason once
    # 5. Compare the claims.
    binding = _bind(f"{opened.scope.service}/{opened.scope.stage}", request, claims)
    claim_reasons = _claim_reasons(opened.payload, binding, claims, now=now, lifetime=int(max_age))
    lines += _claim_lines(claims, request, set(claim_reasons), now)
    if show_state:
        lines.append(json.dumps(claims.record, indent=2, ensure_ascii=False))
    return Explanation(tuple(lines), (*reasons, *claim_reasons), claims.record)


def _open(token: str, wrapping: Wrapping, scopes: Sequence[Scope], *, born: int) -> _Opened:
    """Open a token with the first scope that KMS accepts.

    Args:
        token: the token.
        wrapping: the KMS key that wraps its data key.
        scopes: the scopes to try.
        born: when its data key was made, in unix seconds. With this as the clock, the token is not too old.
    """
    for scope in scopes:
        payload, reason = _unseal(unlimited_envelope(wrapping, scope, now=lambda: born), token)
        if reason != TokenReason.WRAPPED_KEY:  # KMS has accepted the scope, even if the token does not open
            return _Opened(scope, payload, reason)
    return _Opened(None, None, TokenReason.WRAPPED_KEY)


def _unseal(envelope: Envelope, token: str) -> tuple[bytes | None, str]:
    """Return the content of the sealed part and "", or None and the reason why it does not open.

    Raises:
        Problem: KMS does not answer, or does not allow this user to open it.
    """
    try:
        return envelope.unseal(token), ""
    except InvalidRequestState as refusal:
        return None, str(refusal.reason)
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


def _max_age(request: Request, claims: Claims | None) -> float:
    """Return how long a state lives, in seconds: as the operator says, or else as the claims say."""
    lifetime = request.get("answer_within")
    if not lifetime and claims:
        lifetime = ceil((claims.expires - claims.issued) / 1000)
    return lifetime or FOR_EVER


class _OpenPayload:
    """A codec for `RequestStates` that returns a payload which is open already, whatever the token is."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def seal(self, payload: bytes, /) -> str:
        return payload.decode()

    def unseal(self, _token: str, /) -> bytes:
        return self._payload


def _read_claims(payload: bytes | None) -> Claims | None:
    """Return the claims; None if there is no payload, or if its claims are malformed."""
    if payload is None:
        return None
    try:
        claims = read_claims(payload)
    except InvalidRequestState:
        return None
    state = claims.record.get("state")
    if isinstance(state, str):  # JSON as text, which is easier to read as a value
        claims.record["state"] = json.loads(state)
    return claims


def _bind(audience: str, request: Request, claims: Claims) -> Binding:
    """Make the binding of the request, with which a server compares the claims. Unknown parts are the token's own."""
    method = request.get("method", claims.binding.method)
    target = request.get("target", claims.binding.target)
    binding = claims.binding._replace(audience=audience, method=method, target=target)
    if "principal" in request:
        binding = binding._replace(principal=principal_digest(request["principal"]))
    if "arguments" not in request:
        return binding
    params = {CALL_METHODS.get(method, "name"): target, "arguments": request["arguments"]}
    try:
        return binding._replace(arguments_digest=bind_request(audience, method, params, None).arguments_digest)
    except InvalidParams as error:
        stop(f"--arguments: {error.message}", after=error)


def _claim_reasons(payload: bytes, binding: Binding, claims: Claims, *, now: float, lifetime: int) -> tuple[str, ...]:
    """Return every reason for which the claims are refused.

    After each refusal, the part of the binding that differs is replaced by the claims', and the server's code checks
    the rest.

    Args:
        payload: the content of the sealed part.
        binding: the binding of the request.
        claims: the claims in the payload.
        now: the time in unix seconds.
        lifetime: how long a state lives, in seconds.
    """
    reasons: list[str] = []
    opened = CodecAdapter(_OpenPayload(payload), b"")
    states = RequestStates(opened, now=lambda: now, lifetime_seconds=lifetime, max_rounds=MAX_ROUNDS, anonymous=True)
    while True:
        try:
            states.open("", binding)
        except InvalidRequestState as refusal:
            reasons.append(refusal.reason)
            if refusal.reason not in BINDING_FIELDS:
                return tuple(reasons)
            field = BINDING_FIELDS[ClaimReason(refusal.reason)]
            binding = binding._replace(**{field: getattr(claims.binding, field)})
        else:
            return tuple(reasons)


def _claim_lines(claims: Claims, request: Request, reasons: set[str], now: float) -> Iterator[str]:
    """Yield the lines about the claims and the record."""

    def comparison(name: ClaimReason) -> str:
        if name not in request:
            return "not compared"
        return "other than the request's" if name in reasons else "as in the request"

    binding = claims.binding
    principal = "nobody" if binding.principal is None else binding.principal
    yield _line("audience", binding.audience)
    yield _line("method", f"{binding.method} ({comparison(ClaimReason.METHOD)})")
    yield _line("target", f"{binding.target} ({comparison(ClaimReason.TARGET)})")
    yield _line("arguments", f"digest {binding.arguments_digest} ({comparison(ClaimReason.ARGUMENTS)})")
    yield _line("principal", f"{principal} ({comparison(ClaimReason.PRINCIPAL)})")
    yield _line("sealed", _when(claims.issued / 1000, now))
    yield _line("expires", _when(claims.expires / 1000, now))
    yield _line("conversation", f"{claims.flow}, ends {_when(claims.flow_deadline / 1000, now)}")
    yield _line("round", f"{claims.round} of {MAX_ROUNDS}")
    yield _line("asked", ", ".join(sorted(claims.asked)) or "nothing")
    for name, part in sorted(claims.record.items()):
        yield _line(name, ", ".join(sorted(part)) if isinstance(part, dict) else ON_REQUEST)


def _name(scope: Scope) -> str:
    return f"{scope.service}, stage {scope.stage}, generation {scope.generation}"


def _line(label: str, text: str) -> str:
    return f"{label:<13} {text}"


def _when(time: float, now: float) -> str:
    """Return a time in the user's time zone, and its distance from now."""
    seconds = abs(time - now)
    fitting = [(length, unit) for length, unit in UNITS if seconds >= length]
    length, unit = fitting[0] if fitting else UNITS[-1]
    distance = f"{seconds / length:.0f} {unit}"
    relative = f"in {distance}" if time > now else f"{distance} ago"
    local = datetime.fromtimestamp(time).astimezone()
    return f"{local:%Y-%m-%d %H:%M:%S %Z}, {relative}"
