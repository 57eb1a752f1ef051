"""What a server reads from the context of a request, and not from its params: the transport and the caller."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.rounds.round import RoundRequest


@contextmanager
def over_transport(kind: str) -> Iterator[None]:
    """Tell FastMCP over which transport a request came, if FastMCP is loaded: some of its features depend on it."""
    context: Any = sys.modules.get("fastmcp.server.context")
    before = context and context.set_transport(kind)
    try:
        yield
    finally:
        if context:
            context.reset_transport(before)


@contextmanager
def as_caller(request: RoundRequest) -> Iterator[None]:
    """Tell the server who the caller is, as API Gateway says. The caller's access token is not passed on."""
    principal = request.principal
    user = None
    if principal:
        token = AccessToken(
            token="",
            client_id=principal.client,
            scopes=sorted(request.scopes),
            subject=principal.sub,
            claims={"iss": principal.iss, "sub": principal.sub},
        )
        user = AuthenticatedUser(token)
    before = auth_context_var.set(user)
    try:
        yield
    finally:
        auth_context_var.reset(before)
