"""What a state is bound to: one server, call and principal (envelope.md §9.2 and §9.3).

In a conversation of several requests, the client carries the state from each response to the next request. It may
return a state only with the request that the state belongs to.

Digests stand for the caller, so that no state, item or counter names a person:

    principal_digest    the owner of a state or of stored data: issuer, subject and client
    caller_id           the caller that a limit counts: issuer and subject, or the network (envelope.md §6.5)
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.constants import CALL_METHODS
from mcp_functions.protocol.errors import InvalidParams
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.seal.canonical_json import canonical_digest
from mcp_functions.seal.keys import with_length
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.messages import Principal


class Binding(NamedTuple):
    """The request that a state belongs to. Digests keep the state small, and do not name the principal."""

    audience: str  # "<service>/<stage>"
    method: str
    target: str  # the name of the tool or prompt, or the URI of the resource
    arguments: str  # their digest
    principal: str | None  # a `principal_digest`; None without authentication


def bind_request(audience: str, method: str, params: Mapping[str, Any], principal: Principal | None) -> Binding:
    """Return the binding of a state to its request.

    Args:
        audience: the server that the state is for: "<service>/<stage>".
        method: the method of the request, one of `CALL_METHODS`.
        params: the params of the request; `_meta` and `inputResponses` may change, so they do not count.
        principal: the authenticated caller; None without authentication.

    Raises:
        InvalidParams: the arguments have no canonical form: they are nested too deep, or have an invalid number.
    """
    arguments = params.get("arguments")
    if method == "resources/read" or arguments is None:  # a resource has no arguments
        arguments = {}
    try:
        digest = canonical_digest(b"ks1/args\0", arguments)
    except ValueError as error:
        raise InvalidParams(message=f"Invalid arguments: {error}") from None
    name_of_target = CALL_METHODS[method]  # "name" or "uri"
    return Binding(
        audience=audience,
        method=method,
        target=str(params.get(name_of_target, "")),
        arguments=base64url(digest),
        principal=principal_digest(principal),
    )


def principal_digest(principal: Principal | None) -> str | None:
    """Return the digest of a principal; None without authentication."""
    return None if principal is None else _digest(b"ks1/principal\0", principal.iss, principal.sub, principal.client)


def caller_id(principal: Principal | None, address: str) -> str:
    """Return the id under which a caller is counted and stopped; without authentication, the network of its address.

    The id leaves out the OAuth client, because one person may register any number of clients. It is never logged.
    """
    if principal is not None:
        return _digest(b"ks1/payer\0", principal.iss, principal.sub)
    if ":" not in address:  # an IPv4 address, or none
        return address
    from mcp_functions.seal.networks import network_of

    return network_of(address)


def _digest(label: bytes, *parts: str) -> str:
    """Return the digest of some texts."""
    digest = hashlib.sha256(label)
    for part in parts:
        digest.update(with_length(part.encode("utf-8", "surrogatepass")))
    return base64url(digest.digest())
