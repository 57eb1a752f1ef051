"""Which pages in a browser may call: those of the origins that the operator lists, and by default none.

A page is no different from any client once it is allowed: it brings its own token, and never a cookie; so credentials
are not allowed, and `*` would not even cover the Authorization header. Clients that are no browsers send no Origin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.settings import AuthMode

SENT = (
    "accept", "authorization", "content-type", "last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version",
    "mcp-session-id",
)  # fmt: skip
SIGNED = ("x-amz-content-sha256", "x-amz-date", "x-amz-security-token")  # by a page that signs
READ = "mcp-session-id, retry-after, www-authenticate"
KEEP_SECONDS = 600  # a browser may remember the answer to a preflight


def granted(origin: str | None, allowed: Collection[str]) -> dict[str, str]:
    """Write the headers that every response to a page of `origin` carries (None: to no page)."""
    if not allowed:
        return {}
    shared = {"access-control-allow-origin": origin, "access-control-expose-headers": READ} if origin in allowed else {}
    return {"vary": "Origin", **{name: value for name, value in shared.items() if value is not None}}


def is_preflight(request: HttpRequest) -> bool:
    """Tell whether a browser asks if its page may send what it wants to send; it never brings a token."""
    asking = {"origin", "access-control-request-method"}
    return request.method == "OPTIONS" and asking <= request.headers.keys()


def preflight(method: str, auth_mode: AuthMode, parameters: Iterable[str]) -> dict[str, str]:
    """Answer a preflight, beside what `granted` says.

    Args:
        method: that may be sent.
        auth_mode: how callers prove who they are.
        parameters: the `Mcp-Param-*` headers of the tools here, which must be named one by one.

    """
    names = (*SENT, *(SIGNED if auth_mode == "iam" else ()), *parameters)
    return {
        "access-control-allow-methods": method,
        "access-control-allow-headers": ", ".join(sorted(names)),
        "access-control-max-age": str(KEEP_SECONDS),
    }
