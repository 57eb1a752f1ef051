"""The binding of a state to one request: server, call, arguments and principal (envelope.md §9.2 and §9.3).

A client may return a state only with the request that the state belongs to. The binding holds digests of the arguments
and the principal, so that the state stays small and does not name the principal.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.constants import CALL_METHODS
from mcp_functions.protocol.errors import InvalidParams
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.seal.canonical_json import canonical_digest
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.messages import Principal


class Binding(NamedTuple):
    """The request that a state belongs to."""

    audience: str  # "<service>/<stage>"
    method: str
    target: str  # the name of the tool or prompt, or the URI of the resource
    arguments_digest: str
    principal: str | None  # a digest; None without authentication


def bind_request(audience: str, method: str, params: Mapping[str, Any], principal: Principal | None) -> Binding:
    """Return the binding of a state to its request.

    Args:
        audience: the server that the state is for: "<service>/<stage>".
        method: the method of the request, one of `CALL_METHODS`.
        params: the params of the request; the target and `arguments` count, `_meta` and `inputResponses` may change.
        principal: the authenticated caller; None without authentication.

    Raises:
        InvalidParams: the arguments have no canonical form: they are nested too deep, or have an invalid number.
    """
    arguments = params.get("arguments")
    if arguments is None or method == "resources/read":  # absent, null and {} are the same; a resource has no arguments
        arguments = {}
    try:
        digest = canonical_digest(b"ks1/args\0", arguments)
    except ValueError as error:
        raise InvalidParams(message=f"Invalid arguments: {error}") from None
    return Binding(
        audience=audience,
        method=method,
        target=str(params.get(CALL_METHODS[method], "")),  # the name of the param: "name" or "uri"
        arguments_digest=base64url(digest),
        principal=principal_digest(principal),
    )


def principal_digest(principal: Principal | None) -> str | None:
    """Return the digest of a principal for claims and logs; None without authentication."""
    return None if principal is None else _digest(b"ks1/principal\0", principal.iss, principal.sub, principal.client)


def caller_id(principal: Principal | None, address: str) -> str:
    """Return the id under which a caller's failed unwraps are counted (§6.5). The id is neither sealed nor logged.

    The id leaves out the OAuth client, because one person may register any number of clients.

    Args:
        principal: the authenticated caller; None without authentication.
        address: the IP address of the caller, which is the id without authentication.
    """
    return address if principal is None else _digest(b"ks1/payer\0", principal.iss, principal.sub)


def _digest(label: bytes, *parts: str) -> str:
    """Return the digest of some texts. Each has its length before it, so that ("a", "bc") is not ("ab", "c")."""
    digest = hashlib.sha256(label)
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(2, "big") + encoded)
    return base64url(digest.digest())
