"""What this package reads and sets inside the libraries `mcp` and `fastmcp`: their low-level server, and the context.

The context of a request is what a server reads beside its params: the transport and the caller.
"""

from __future__ import annotations

import hashlib
import json
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_functions.protocol.messages import Principal, Request
    from mcp_functions.rounds.round import RoundRequest

# The private attributes in which MCPServer and FastMCP keep their low-level server. They have no public one.
LOW_LEVEL_ATTRIBUTES = ("_lowlevel_server", "_mcp_server")


def find_low_level(server: object) -> Server[Any]:
    """Find the low-level server inside another one: it has the handlers.

    Raises:
        TypeError: `server` is neither an MCPServer nor a low-level Server nor a FastMCP.
    """
    found = server
    for attribute in LOW_LEVEL_ATTRIBUTES:
        found = getattr(found, attribute, found)
    if not isinstance(found, Server):
        kinds = "mcp.server.mcpserver.MCPServer, mcp.server.Server or fastmcp.FastMCP (4 or newer)"
        message = f"adopt takes one server: {kinds}, and not {type(server).__module__}.{type(server).__name__}"
        raise TypeError(message)
    return found


def find_outermost(server: Any) -> object:  # noqa: ANN401 - of three libraries
    """Find the FastMCP or MCPServer around a low-level server: it has the options that its author set."""
    if hasattr(server, "fastmcp"):  # the low-level server of a FastMCP
        outer: object = server.fastmcp
        return outer
    entry = server.get_request_handler("tools/list") if isinstance(server, Server) else None
    owner: object = getattr(entry and entry.handler, "__self__", None)
    return owner if getattr(owner, "_lowlevel_server", None) is server else server


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


# Whether the handler that runs may ask in the middle of its work, as its author accepts with `adopt(replay=…)`.
_may_ask: ContextVar[bool] = ContextVar("may_ask", default=False)


@contextmanager
def asking_at_2026(*, allowed: bool) -> Iterator[None]:
    """Let `ctx.elicit` of FastMCP ask at 2026-07-28, where FastMCP itself refuses it, if that is allowed.

    The server still sees a client of 2026-07-28. A tool that asks in the way of this revision is not led past it.
    """
    module: Any = sys.modules.get("fastmcp.server.context")
    if module and not hasattr(module.Context, "asks_as_adopted"):
        # it has no public name
        is_modern: Callable[[object], bool] = module.Context._is_modern_protocol  # noqa: SLF001
        module.Context.asks_as_adopted = True
        module.Context._is_modern_protocol = lambda context: is_modern(context) and not _may_ask.get()  # noqa: SLF001
    before = _may_ask.set(allowed)
    try:
        yield
    finally:
        _may_ask.reset(before)


@contextmanager
def as_caller(request: RoundRequest | Request) -> Iterator[None]:
    """Tell the server who the caller is, as API Gateway says.

    The caller's access token is not passed on. A fingerprint takes its place, because FastMCP keeps cached results
    apart by the text of the token.
    """
    principal = request.principal
    user = None
    if principal:
        token = AccessToken(
            token=_fingerprint(principal, request.scopes),
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


def _fingerprint(principal: Principal, scopes: frozenset[str]) -> str:
    """Return a text that is different for each caller and for each set of scopes, and that opens nothing."""
    return f"caller-{hashlib.sha256(json.dumps([*principal, *sorted(scopes)]).encode()).hexdigest()}"
