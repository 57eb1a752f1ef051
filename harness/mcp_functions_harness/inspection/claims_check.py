"""Compares the claims of a token with a refused request.

The claims are the encrypted part of a `requestState` that says for which request, user and time it is valid. A server
compares them with the request's own values, its "binding", and stops at the first difference.
"""

import json
from collections.abc import Iterator
from typing import Any, TypedDict

from mcp_functions.observability.lines import digest
from mcp_functions.protocol.constants import CALL_METHODS
from mcp_functions.protocol.errors import InvalidParams, InvalidRequestState
from mcp_functions.protocol.messages import Principal
from mcp_functions.seal.binding import Binding, bind_request, principal_digest
from mcp_functions.seal.claims import BINDING_FIELDS, Claims, read_claims
from mcp_functions.seal.codec_adapter import CodecAdapter
from mcp_functions.seal.request_state import MAX_ROUNDS, RequestStates
from mcp_functions_harness.inspection.texts import line, when
from mcp_functions_harness.problems import Problem

ON_REQUEST = "(--show-state shows it)"  # in place of a part of the record


class RefusedRequest(TypedDict, total=False):
    """The refused request, as far as the operator knows it. A part that is missing is not compared."""

    method: str  # one of `CALL_METHODS`
    target: str  # the name or URI in the call
    arguments: Any  # `params.arguments`
    principal: Principal | None  # who sent it; None on a server without authentication
    answer_within: int | None  # the handler's lifetime of a state, in seconds


def read(payload: bytes | None) -> Claims | None:
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


def bind(audience: str, request: RefusedRequest, claims: Claims) -> Binding:
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
        return binding._replace(arguments=bind_request(audience, method, params, None).arguments)
    except InvalidParams as error:
        raise Problem(f"--arguments: {error.message}") from error


def find_reasons(payload: bytes, binding: Binding, claims: Claims, *, now: float, lifetime: int) -> tuple[str, ...]:
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
    states = RequestStates(opened, now=lambda: now, lifetime_seconds=lifetime, anonymous=True)
    while True:
        try:
            states.open("", binding)
        except InvalidRequestState as refusal:
            reasons.append(refusal.reason)
            if refusal.reason not in BINDING_FIELDS:
                return tuple(reasons)
            field = refusal.reason
            binding = binding._replace(**{field: getattr(claims.binding, field)})
        else:
            return tuple(reasons)


class _OpenPayload:
    """A codec for `RequestStates` that returns a payload which is open already, whatever the token is."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def seal(self, payload: bytes, /) -> str:
        return payload.decode()

    def unseal(self, _token: str, /) -> bytes:
        return self._payload


def lines(claims: Claims, request: RefusedRequest, reasons: set[str], now: float) -> Iterator[str]:
    """Yield the lines about the claims and the record."""

    def comparison(name: str) -> str:
        if name not in request:
            return "not compared"
        return "other than the request's" if name in reasons else "as in the request"

    binding = claims.binding
    principal = "nobody" if binding.principal is None else binding.principal
    yield line("audience", binding.audience)
    yield line("method", f"{binding.method} ({comparison('method')})")
    yield line("target", f"{binding.target} ({comparison('target')})")
    yield line("arguments", f"digest {binding.arguments} ({comparison('arguments')})")
    yield line("principal", f"{principal} ({comparison('principal')})")
    yield line("sealed", when(claims.issued / 1000, now))
    yield line("expires", when(claims.expires / 1000, now))
    yield line("conversation", f"flow {digest(claims.flow)} in the log, ends {when(claims.flow_deadline / 1000, now)}")
    yield line("round", f"{claims.round} of {MAX_ROUNDS}")
    yield line("asked", ", ".join(sorted(claims.asked)) or "nothing")
    for name, part in sorted(claims.record.items()):
        yield line(name, ", ".join(sorted(part)) if isinstance(part, dict) else ON_REQUEST)
