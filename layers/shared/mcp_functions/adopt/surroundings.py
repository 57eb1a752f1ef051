"""What a server reads beside the params of its request: the transport, the caller, and whether it may ask.

FastMCP is another library than `mcp`, and imported only by its own servers.
"""

# ruff: noqa: SLF001 - the libraries have no public name for what is set here

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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_functions.protocol.messages import Principal, Request
    from mcp_functions.protocol.wire_types import ResultObject
    from mcp_functions.rounds.round import RoundRequest


def _fastmcp_context() -> Any:  # noqa: ANN401 - a module of FastMCP
    """Return the module with FastMCP's context; None if FastMCP is not loaded."""
    return sys.modules.get("fastmcp.server.context")


@contextmanager
def over_transport(kind: str) -> Iterator[None]:
    """Tell FastMCP over which transport a request came, if FastMCP is loaded: some of its features depend on it."""
    context = _fastmcp_context()
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
    module = _fastmcp_context()
    if module and not hasattr(module.Context, "asks_as_adopted"):
        is_modern: Callable[[object], bool] = module.Context._is_modern_protocol
        module.Context.asks_as_adopted = True
        module.Context._is_modern_protocol = lambda context: is_modern(context) and not _may_ask.get()
    before = _may_ask.set(allowed)
    try:
        yield
    finally:
        _may_ask.reset(before)


def is_refusal_to_ask(result: ResultObject) -> bool:
    """Tell whether a result says that FastMCP itself refused `ctx.elicit`.

    The refusal is a ToolError without a code, so it is known by the constant of FastMCP that it says. A contract test
    on FastMCP is in tests/adopt/test_replay.py.
    """
    refusal: str = getattr(_fastmcp_context(), "_ELICIT_MODERN_ERROR", "")
    return bool(refusal and result.get("isError")) and refusal in str(result["content"])


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
