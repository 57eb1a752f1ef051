"""Says why a state is refused, to who holds the key: what everybody can read, then what is sealed, claim by claim.

The verdict is that of the shipped code (`Envelope`, `RequestStates`), asked again after each refusal, so that every
reason is named and not just the first. Answers and state are shown only if that is asked for, keys never.
"""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.local import environment, keyfile
from mcp_functions.local.kms import MAX_REQUEST, KmsApi
from mcp_functions.local.loopback import Loopback
from mcp_functions.local.problems import Problem
from mcp_functions.protocol.constants import CALLS
from mcp_functions.protocol.errors import InvalidParams, InvalidRequestState, Misconfigured, TemporarilyUnavailable
from mcp_functions.seal.data_keys import Keyring, KmsKey, Scope, TokenReason, kek_hint
from mcp_functions.seal.envelope import CEILING, MAX_CHARS, Envelope, describe
from mcp_functions.seal.request_state import (
    BINDING_CLAIMS,
    Binding,
    RequestStates,
    bind_request,
    principal_digest,
    read_claims,
)
from mcp_functions.seal.request_state import ClaimReason as Claim

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from mcp_functions.protocol.messages import Principal
    from mcp_functions.seal.data_keys import Wrapping
    from mcp_functions.seal.request_state import Binding

UNKNOWN: Any = object()  # of a request: not known, so not compared
MAX_ROUNDS = 16
FOR_EVER = 100 * 366 * 86_400  # seconds: a token of any age is taken apart, and called too old afterwards
UNITS = ((86_400, "days"), (3600, "h"), (60, "min"), (1, "s"))
ARN_PARTS = 6

WHY: dict[str, str] = {
    TokenReason.PREFIX: "it does not begin with ks1.: no state of this toolkit, or one of another codec",
    TokenReason.LENGTH: f"it has more than {MAX_CHARS} characters (unless MCP_MAX_STATE_CHARS is higher)",
    TokenReason.ENCODING: "a character was changed, added or lost on its way: it is not canonical base64url",
    TokenReason.TRUNCATED: "it was cut",
    TokenReason.SUITE: "it is of a format that this version does not know",
    TokenReason.KEY_KIND: "its data key is kept in a way that this version does not know",
    TokenReason.KEK_UNKNOWN: "its data key is wrapped under another KMS key than those listed here",
    TokenReason.BORN_FUTURE: "its data key claims to be from the future: clocks differ, or it is forged",
    TokenReason.BORN_PAST: "its data key is older than anything that may still be answered",
    TokenReason.WRAPPED_KEY: (
        "KMS does not open its data key for this function, stage and generation: it was sealed for another, or before"
        " the generation was raised, or its first part was changed"
    ),
    TokenReason.COMMITMENT: "it was changed on its way: its data key is good, but the rest does not belong to it",
    TokenReason.TAG: "it was changed on its way: the sealed part is damaged",
    Claim.CLAIMS: "its claims are not those of this version",
    Claim.AUDIENCE: "it was left by another function or stage",
    Claim.PRINCIPAL: "it was left for another principal",
    Claim.METHOD: "it was left for another method",
    Claim.TARGET: "it was left for another tool, prompt or resource",
    Claim.ARGUMENTS: "the arguments are not those that it was left for: a client repeats them unchanged",
    Claim.ISSUED_FUTURE: "it was sealed later than now: clocks differ by more than a minute",
    Claim.LIFETIME: "it lives longer than the function allows now: answer_within was shortened",
    Claim.EXPIRED: "the answer came too late",
    Claim.ROUND: f"the conversation is over its budget of {MAX_ROUNDS} rounds",
}


@dataclass(frozen=True)
class Request:
    """What the refused request said, as far as the operator knows it.

    Attributes:
        method: one of `CALLS`.
        target: the name or URI that it called.
        arguments: JSON.
        principal: who sent it; None: nobody, on a server without authentication.
        answer_within: the handler's lifetime of a state, in seconds.

    """

    method: str = UNKNOWN
    target: str = UNKNOWN
    arguments: Any = UNKNOWN
    principal: Principal | None = UNKNOWN
    answer_within: int | None = None


class Holder(NamedTuple):
    """Who can open: keys that unwrap, scopes to try, and the one it should be of, if that is known."""

    wrappings: Sequence[Wrapping]
    scopes: Sequence[Scope]
    expected: Scope | None


class Explained(NamedTuple):
    """Lines for the terminal, and every reason for which a server would refuse the token."""

    lines: tuple[str, ...]
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Write everything, the verdict last."""
        refused = [f"refused: {reason}: {WHY.get(reason, 'see envelope.md')}" for reason in self.reasons]
        return "\n".join([*self.lines, *(refused or ["not refused, as far as it was compared"])])


@contextmanager
def local_key(state_dir: Path, scopes: Sequence[Scope], expected: Scope | None) -> Iterator[Holder]:
    """Hold the harness's key while the block runs.

    Raises:
        Problem: there is none in `state_dir`, or it is damaged.

    """
    file = state_dir / keyfile.FILE
    if not file.exists():
        missing = f"there is no {file}: start where the harness ran, or name the keys with --key"
        raise Problem(missing)
    with ExitStack() as stack:
        kms = stack.enter_context(Loopback(max_body=MAX_REQUEST))
        api = KmsApi(keyfile.load(state_dir))
        kms.start(api.answer)
        pointed = environment.endpoints(kms=kms.url, invoke=kms.url)
        stack.enter_context(environment.applied(environment.CREDENTIALS | pointed))
        yield Holder([KmsKey(api.arn)], scopes, expected)


def aws_keys(arns: Sequence[str], scope: Scope) -> Holder:
    """Hold KMS keys with the user's own credentials, each in its Region.

    Raises:
        Problem: one is not the ARN of a key.

    """
    for arn in arns:
        if len(arn.split(":")) != ARN_PARTS or ":key/" not in arn:
            wrong = f"--key {arn}: give the ARN of a key, as MCP_KMS_KEYS has it (arn:aws:kms:...:key/...)"
            raise Problem(wrong)
    return Holder([KmsKey(arn, _client_of(arn)) for arn in arns], [scope], scope)


def shown(token: str, *, now: float) -> Explained:
    """Say what a token shows to everybody, or that it has not even the shape of one. No key is needed."""
    try:
        seen = describe(token)
    except InvalidRequestState as refused:
        return Explained((), (refused.reason,))
    sizes = f"{seen['chars']} characters, of which {seen['payload_bytes']} bytes are sealed"
    return Explained(
        (
            _line("token", f"{sizes}; jti {seen['jti']}"),
            _line("data key", f"{seen['key']}, born {_when(seen['born'], now)}"),
            _line("wrapped by", f"the KMS key with kek {seen['kek']}"),
        )
    )


def explain(token: str, holder: Holder, request: Request, *, now: float, show_state: bool = False) -> Explained:
    """Say what a token says, and why it would be refused.

    Args:
        token: as a client sent it.
        holder: the keys and scopes to open it with.
        request: what to compare it with.
        now: unix seconds.
        show_state: print the answers and the state too.

    Raises:
        Problem: KMS does not let this user open it, or cannot answer now.

    """
    outside, reasons = shown(token, now=now)
    if reasons:
        return Explained(outside, reasons)
    seen = describe(token)
    wrapping = next((one for one in holder.wrappings if kek_hint(one.id).hex() == seen["kek"]), None)
    if wrapping is None:
        return Explained(outside, (TokenReason.KEK_UNKNOWN,))
    scope, payload = _opened(token, wrapping, holder.scopes, born=seen["born"])
    claims = _claims(payload) if isinstance(payload, bytes) else None
    allowed = claims and ceil((claims["exp"] - claims["iat"]) / 1000)
    envelope = Envelope(
        Keyring([wrapping], scope, now=lambda: now), max_age=request.answer_within or allowed or FOR_EVER
    )
    today = _unseal(envelope, token)  # with the server's own limits: it may be too long, or its data key too old
    early = [today] if isinstance(today, str) else []
    if payload != TokenReason.WRAPPED_KEY:
        elsewhere = holder.expected not in (None, scope)
        early += [TokenReason.WRAPPED_KEY] if elsewhere else []
        outside = (*outside, _line("scope", f"{_named(scope)}{', not that of the request' if elsewhere else ''}"))
    if not isinstance(payload, bytes) or claims is None:
        last = payload if isinstance(payload, str) else Claim.CLAIMS
        return Explained(outside, tuple(dict.fromkeys([*early, last])))
    bound = _bound(f"{scope.service}/{scope.stage}", request, claims)
    differing = _refusals(payload, bound, claims, now=now, lifetime=int(envelope.max_age))
    inside = _inside(claims, request, set(differing), now)
    state = (json.dumps(claims["s"], indent=2, ensure_ascii=False),) if show_state else ()
    return Explained((*outside, *inside, *state), (*early, *differing))


def _opened(token: str, wrapping: Wrapping, scopes: Sequence[Scope], *, born: int) -> tuple[Scope, bytes | str]:
    """Take a token apart as a container did when its data key was young; or say which scope refuses it, and why."""
    tried: list[tuple[Scope, bytes | str]] = []
    for scope in scopes:
        keys = Keyring([wrapping], scope, now=lambda: born)
        tried.append((scope, _unseal(Envelope(keys, max_chars=CEILING, max_age=FOR_EVER), token)))
        if tried[-1][1] != TokenReason.WRAPPED_KEY:  # KMS knows the scope: no other can be right
            return tried[-1]
    return tried[0]


def _unseal(envelope: Envelope, token: str) -> bytes | str:
    """Return what is sealed, or the reason for a refusal."""
    try:
        return envelope.unseal(token)
    except InvalidRequestState as refused:
        return str(refused.reason)
    except TemporarilyUnavailable as error:
        late = f"KMS does not answer ({error.reason}): try again, and look at the network, the Region and the proxy"
        raise Problem(late) from error
    except Misconfigured as error:
        denied = (
            f"KMS does not open it for you ({error.reason}): the key must be enabled, and your credentials need"
            " kms:Decrypt on it for this service and stage"
        )
        raise Problem(denied) from error


class _Payload:
    """A codec for what is open already."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def seal(self, payload: bytes, /) -> str:
        return payload.decode()

    def unseal(self, _token: str, /) -> bytes:
        return self._payload


def _claims(payload: bytes) -> dict[str, Any] | None:
    """Read the claims, if they are well formed; what a function of the low level kept is shown as the rest is."""
    try:
        claims = read_claims(payload)
    except InvalidRequestState:
        return None
    if isinstance(kept := claims["s"].get("state"), str):
        claims["s"]["state"] = json.loads(kept)
    return claims


def _bound(audience: str, request: Request, claims: dict[str, Any]) -> Binding:
    """Bind what is known of the request; what is not known is as the token says it."""
    method = claims["m"] if request.method is UNKNOWN else request.method
    target = claims["t"] if request.target is UNKNOWN else request.target
    params = {CALLS.get(method, "name"): target, "arguments": request.arguments}
    try:
        bound = bind_request(audience, method, params if request.arguments is not UNKNOWN else {}, None)
    except InvalidParams as error:
        unfit = f"--arguments: {error.message}"
        raise Problem(unfit) from error
    return bound._replace(
        target=target,
        arguments_digest=claims["a"] if request.arguments is UNKNOWN else bound.arguments_digest,
        principal=claims["p"] if request.principal is UNKNOWN else principal_digest(request.principal),
    )


def _refusals(payload: bytes, bound: Binding, claims: dict[str, Any], *, now: float, lifetime: int) -> tuple[str, ...]:
    """Name every reason: after each one, ask again as if the request had said what the claim says."""
    reasons: list[str] = []
    states = RequestStates(
        _Payload(payload), now=lambda: now, lifetime_seconds=lifetime, max_rounds=MAX_ROUNDS, anonymous=True
    )
    while True:
        try:
            states.open("", bound)
        except InvalidRequestState as refused:
            reasons.append(refused.reason)
            if refused.reason not in BINDING_CLAIMS:
                return tuple(reasons)
            name, claim = BINDING_CLAIMS[Claim(refused.reason)]
            bound = bound._replace(**{name: claims[claim]})
        else:
            return tuple(reasons)


def _inside(claims: dict[str, Any], request: Request, differing: set[str], now: float) -> Iterator[str]:
    def compared(name: str, known: object) -> str:
        if known is UNKNOWN:
            return "not compared"
        return "other than the request's" if name in differing else "as in the request"

    principal = "nobody" if claims["p"] is None else claims["p"]
    yield _line("audience", claims["aud"])
    yield _line("method", f"{claims['m']} ({compared(Claim.METHOD, request.method)})")
    yield _line("target", f"{claims['t']} ({compared(Claim.TARGET, request.target)})")
    yield _line("arguments", f"digest {claims['a']} ({compared(Claim.ARGUMENTS, request.arguments)})")
    yield _line("principal", f"{principal} ({compared(Claim.PRINCIPAL, request.principal)})")
    yield _line("sealed", _when(claims["iat"] / 1000, now))
    yield _line("expires", _when(claims["exp"] / 1000, now))
    yield _line("conversation", f"{claims['f']}, ends {_when(claims['fx'] / 1000, now)}")
    yield _line("round", f"{claims['r']} of {MAX_ROUNDS}")
    yield _line("asked", ", ".join(sorted(claims["q"])) or "nothing")
    for name, kept in sorted(claims["s"].items()):
        yield _line(name, ", ".join(sorted(kept)) if isinstance(kept, dict) else "(--show-state shows it)")


def _named(scope: Scope) -> str:
    return f"{scope.service}, stage {scope.stage}, generation {scope.generation}"


def _line(label: str, text: str) -> str:
    return f"{label:<13} {text}"


def _when(at: float, now: float) -> str:
    """Write a time as the user's clock shows it, and how far away it is."""
    away = abs(at - now)
    length, unit = next(((length, unit) for length, unit in UNITS if away >= length), UNITS[-1])
    distance = f"{away / length:.0f} {unit}"
    local = datetime.fromtimestamp(at).astimezone()
    return f"{local:%Y-%m-%d %H:%M:%S %Z}, {f'in {distance}' if at > now else f'{distance} ago'}"


def _client_of(arn: str) -> Callable[[], Any]:
    def make() -> Any:  # noqa: ANN401 - boto3 builds its clients at run time
        from mcp_functions.aws import by_boto3  # noqa: PLC0415 - only who asks AWS needs it

        return by_boto3.client("kms", connect_seconds=2, read_seconds=5, attempts=2, region=arn.split(":")[3])

    return make
