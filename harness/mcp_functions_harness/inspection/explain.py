"""Explains why a server refuses a `requestState`, a token in two parts.

    public part     the data key that encrypts the rest; KMS has encrypted ("wrapped") this data key for a scope: a
                    service, a stage and a generation
    sealed part     encrypted: the claims (for which request, user and time the token is valid), and the record of the
                    call, with its user's answers

A server stops at the first reason to refuse a token. Here the server's code runs again after each reason, so that all
of them are named. Keys are never shown, answers only on request.
"""

import json
from collections.abc import Sequence
from math import ceil
from typing import Any, NamedTuple

from mcp_functions.protocol.errors import InvalidRequestState, Misconfigured, TemporarilyUnavailable
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.seal.chunked_encryption import SEALED_CHUNK_BYTES, TAG_BYTES, split
from mcp_functions.seal.claims import Claims
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.keyring import Keyring
from mcp_functions.seal.keys import Scope, kek_hint, key_name
from mcp_functions.seal.kms import Wrapping
from mcp_functions.seal.token_format import MAX_TOKEN_CHARS, parse
from mcp_functions_harness.inspection import claims_check
from mcp_functions_harness.inspection.claims_check import RefusedRequest
from mcp_functions_harness.inspection.key_source import FOR_EVER, KeySource, unlimited_envelope
from mcp_functions_harness.inspection.texts import WHY, line, when
from mcp_functions_harness.problems import Problem


class Explanation(NamedTuple):
    """The content of a token, and the reasons to refuse it."""

    lines: tuple[str, ...]  # for the terminal
    reasons: tuple[str, ...] = ()  # every reason to refuse the token
    record: dict[str, Any] | None = None  # the record of the call; None if the token does not open

    def __str__(self) -> str:
        """Return all lines, with the reasons last."""
        refused = [f"refused: {reason}: {WHY.get(reason, 'see envelope.md')}" for reason in self.reasons]
        return "\n".join([*self.lines, *(refused or ["not refused, as far as it was compared"])])


def describe(token: str) -> dict[str, Any]:
    """Return the public part of a token, for which no key is needed, by the names in envelope.md (§2).

    Raises:
        InvalidRequestState: the text is not a token.
    """
    parsed = parse(token, MAX_TOKEN_CHARS)
    _salt, _commitment, chunks = split(parsed.message)  # each chunk ends with a tag
    return {
        "born": parsed.wrapped_key.born,  # when the data key was made, in unix seconds
        "kek": parsed.wrapped_key.kek_hint.hex(),  # of the KMS key that wraps it: a hash of its ARN
        "key": key_name(parsed.wrapped_key.encrypted),  # the name of the data key
        "payload_bytes": len(chunks) - ceil(len(chunks) / SEALED_CHUNK_BYTES) * TAG_BYTES,
        "chars": len(token),
        "jti": base64url(parsed.id),  # the token's id
    }


def explain_public_part(token: str, *, now: float) -> Explanation:
    """Explain the public part of a token; if it is malformed, the reason."""
    try:
        public = describe(token)
    except InvalidRequestState as refusal:
        return Explanation((), (refusal.reason,))
    sizes = f"{public['chars']} characters, of which {public['payload_bytes']} bytes are sealed"
    return Explanation(
        (
            line("token", f"{sizes}; jti {public['jti']}"),
            line("data key", f"{public['key']}, born {when(public['born'], now)}"),
            line("wrapped by", f"the KMS key with kek {public['kek']}"),
        )
    )


def explain(
    token: str, keys: KeySource, request: RefusedRequest, *, now: float, show_state: bool = False
) -> Explanation:
    """Describe a token, and every reason to refuse the request that had it. The time `now` is in unix seconds.

    With `show_state`, the lines have the record too, with the user's answers.

    Raises:
        Problem: KMS does not allow this user to open it, or is not available.
    """
    public = explain_public_part(token, now=now)
    if public.reasons:
        return public
    # 1. Find the KMS key. The token names it by a hash of its ARN ("kek", key encryption key).
    header = describe(token)
    wrapping = next((key for key in keys.wrappings if kek_hint(key.id).hex() == header["kek"]), None)
    if wrapping is None:
        return Explanation(public.lines, ("kek_unknown",))
    # 2. Open the token without limits of size and age.
    scope, payload, reason = _open(token, wrapping, keys.scopes, born=header["born"])
    claims = claims_check.read(payload)
    # 3. Open it again with the server's limits, and compare the scope.
    max_age = _lifetime(request, claims)
    server_keyring = Keyring([wrapping], scope or keys.scopes[0], now=lambda: now)
    reasons = [_unseal(Envelope(server_keyring, max_age=max_age), token)[1], _compare_scope(scope, keys)]
    lines = [*public.lines, *_scope_lines(scope, keys)]
    if scope is None or payload is None or claims is None:
        each_once = dict.fromkeys(filter(None, [*reasons, reason or "claims"]))
        return Explanation(tuple(lines), tuple(each_once))
    # 4. Compare the claims.
    binding = claims_check.bind(f"{scope.service}/{scope.stage}", request, claims)
    claim_reasons = claims_check.find_reasons(payload, binding, claims, now=now, lifetime=max_age)
    lines += claims_check.lines(claims, request, set(claim_reasons), now)
    lines += [json.dumps(claims.record, indent=2, ensure_ascii=False)] if show_state else []
    return Explanation(tuple(lines), (*filter(None, reasons), *claim_reasons), claims.record)


def _lifetime(request: RefusedRequest, claims: Claims | None) -> int:
    """Return the seconds for which a state lives: the handler's, or else the token's own."""
    of_token = ceil((claims.expires - claims.issued) / 1000) if claims else 0
    return request.get("answer_within") or of_token or FOR_EVER


def _compare_scope(scope: Scope | None, keys: KeySource) -> str:
    """Return "wrapped_key" if the scope is not that of the request; "" if it is, or if one of them is unknown."""
    return "" if scope is None or keys.expected in {None, scope} else "wrapped_key"


def _scope_lines(scope: Scope | None, keys: KeySource) -> list[str]:
    if scope is None:
        return []
    name = f"{scope.service}, stage {scope.stage}, generation {scope.generation}"
    return [line("scope", f"{name}, not that of the request" if _compare_scope(scope, keys) else name)]


def _open(
    token: str, wrapping: Wrapping, scopes: Sequence[Scope], *, born: int
) -> tuple[Scope | None, bytes | None, str]:
    """Open a token with the first scope that KMS accepts. The clock is `born`, so the token is not too old.

    Returns:
        The scope that KMS has accepted, if any; the content of the sealed part, if it opens; or else why it does not.
    """
    for scope in scopes:
        payload, reason = _unseal(unlimited_envelope(wrapping, scope, now=lambda: born), token)
        if reason != "wrapped_key":  # KMS has accepted the scope, even if the token does not open
            return scope, payload, reason
    return None, None, "wrapped_key"


def _unseal(envelope: Envelope, token: str) -> tuple[bytes | None, str]:
    """Return the content of the sealed part and "", or None and the reason why it does not open."""
    try:
        return envelope.unseal(token), ""
    except InvalidRequestState as refusal:
        return None, str(refusal.reason)
    except TemporarilyUnavailable as error:
        remedy = "try again, and look at the network, the Region and the proxy"
        raise Problem(f"KMS does not answer ({error.reason}): {remedy}") from error
    except Misconfigured as error:
        remedy = "the key must be enabled, and your credentials need kms:Decrypt on it for this service and stage"
        raise Problem(f"KMS does not open it for you ({error.reason}): {remedy}") from error
