"""The claims of a state: what they say, what they are bound to, and their bytes (envelope.md §9.1 to §9.3)."""

from __future__ import annotations

import hashlib
import hmac
import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.constants import CALLS
from mcp_functions.protocol.errors import DeveloperError, InvalidParams, InvalidRequestState
from mcp_functions.protocol.json_reader import is_deeper
from mcp_functions.protocol.json_writer import base64url, dumps
from mcp_functions.seal.canonical_json import canonical_digest
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.messages import Principal

VERSION = 1
MAX_RECORD_DEPTH = 200  # lower than the limit of any JSON parser
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


class Binding(NamedTuple):
    """The request that a state belongs to."""

    audience: str
    method: str
    target: str
    arguments_digest: str
    principal: str | None


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
        raise InvalidParams(message=f"Invalid arguments: {error}") from None
    return Binding(audience, method, str(params.get(CALLS[method], "")), digest, principal_digest(principal))


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


def check_binding(claims: Mapping[str, Any], binding: Binding) -> None:
    """Compare every claim about the request. A state without a principal opens only without one.

    Raises:
        InvalidRequestState: one of them differs.

    """
    for reason, (field, name) in BINDING_CLAIMS.items():
        if not _equal(claims[name], getattr(binding, field)):
            raise InvalidRequestState(reason)


def _equal(claim: str | None, expected: str | None) -> bool:
    if claim is None or expected is None:
        return claim is expected
    return hmac.compare_digest(claim.encode("utf-8", "surrogatepass"), expected.encode("utf-8", "surrogatepass"))


def encode_claims(claims: Mapping[str, Any], record: dict[str, Any]) -> bytes:
    """Write the claims as one line of JSON, followed by the text that a low-level function keeps (§9.1).

    A lone surrogate in an answer is encoded unchanged.

    Raises:
        DeveloperError: the record is not JSON, or is nested too deep.

    """
    kept = "\n" + record.pop("state") if isinstance(record.get("state"), str) else ""
    try:
        payload = (dumps({**claims, "s": record}) + kept).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError):
        message = "the state is not JSON: keep str, int, finite float, bool, None, list and dict with str keys in it"
        raise DeveloperError(message) from None
    if is_deeper(record, MAX_RECORD_DEPTH):
        raise DeveloperError(rule="the state is nested deeper than {most}", most=MAX_RECORD_DEPTH)
    return payload


def _joined(*parts: str) -> bytes:
    """Join parts with a length before each, so that two lists of parts never give the same bytes."""
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return b"".join(len(part).to_bytes(2, "big") + part for part in encoded)


def _digest(label: bytes, content: bytes) -> str:
    return base64url(hashlib.sha256(label + content).digest())
