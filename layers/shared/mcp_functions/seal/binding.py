"""What a state is bound to: one server, call and principal (envelope.md §9.2 and §9.3).

In a conversation of several requests, the client carries the state from each response to the next request. It may
return a state only with the request that the state belongs to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.constants import CALL_METHODS
from mcp_functions.protocol.errors import InvalidParams
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.seal.canonical_json import canonical_digest
from mcp_functions.seal.principals import principal_digest
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.messages import Principal


class Binding(NamedTuple):
    """The request that a state belongs to. Digests keep the state small, and do not name the principal."""

    audience: str  # "<service>/<stage>"
    method: str
    target: str  # the name of the tool or prompt, or the URI of the resource
    arguments_digest: str
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
    name_of_target = CALL_METHODS[method]  # "name" or "uri"
    return Binding(
        audience=audience,
        method=method,
        target=str(params.get(name_of_target, "")),
        arguments_digest=_digest_arguments(method, params.get("arguments")),
        principal=principal_digest(principal),
    )


def _digest_arguments(method: str, arguments: object) -> str:
    if method == "resources/read":  # a resource has no arguments
        arguments = None
    if arguments is None:  # a call without arguments is the same as one with {}
        arguments = {}
    try:
        digest = canonical_digest(b"ks1/args\0", arguments)
    except ValueError as error:
        raise InvalidParams(message=f"Invalid arguments: {error}") from None
    return base64url(digest)
