"""CORS: the web pages that may call this server. They are those of `AllowedOrigins`, by default none.

A browser sends the page's address as `Origin`. Before a request that a plain form could not send,
it asks with a preflight (an OPTIONS request) whether the page may send it. Clients that are no browsers do neither.

An allowed page is a client like any other: it sends its own access token, and never a cookie. So credentials are not
allowed. Every request header is listed, because `Access-Control-Allow-Headers: *` does not include Authorization
(Fetch standard, "CORS non-wildcard request-header name").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.settings import AuthMode

# The headers that a page may send, and those of a response that it may read.
REQUEST_HEADERS = (
    "accept", "authorization", "baggage", "content-type", "last-event-id", "mcp-method", "mcp-name",
    "mcp-protocol-version", "mcp-session-id", "traceparent", "tracestate",
)  # fmt: skip
SIGNATURE_HEADERS = ("x-amz-content-sha256", "x-amz-date", "x-amz-security-token")  # AWS Signature Version 4
RESPONSE_HEADERS = "mcp-session-id, retry-after, www-authenticate"
PREFLIGHT_HEADERS = {"origin", "access-control-request-method"}  # a browser sends both with each preflight
MAX_AGE = 600  # seconds for which a browser may cache a preflight response


def response_headers(origin: str | None, allowed: Collection[str]) -> dict[str, str]:
    """Return the CORS headers of a response.

    Args:
        origin: the Origin of the request; None if no web page sent it.
        allowed: the origins of the pages that may call this server.
    """
    headers = {"vary": "Origin"}
    if origin is not None and origin in allowed:
        headers["access-control-allow-origin"] = origin
        headers["access-control-expose-headers"] = RESPONSE_HEADERS
    return headers


def is_preflight(request: HttpRequest) -> bool:
    """Check whether a browser asks if its page may send a request. A preflight never has a token."""
    return request.method == "OPTIONS" and PREFLIGHT_HEADERS.issubset(request.headers)


def preflight(methods: str, auth_mode: AuthMode, parameters: Iterable[str]) -> dict[str, str]:
    """Return the headers of a preflight response, in addition to `response_headers`.

    Args:
        methods: the HTTP methods of the path, separated by commas.
        auth_mode: how callers authenticate.
        parameters: the `Mcp-Param-*` headers that the tools read.
    """
    headers = [*REQUEST_HEADERS, *parameters]
    if auth_mode == "iam":
        headers += SIGNATURE_HEADERS
    return {
        "access-control-allow-methods": methods,
        "access-control-allow-headers": ", ".join(sorted(headers)),
        "access-control-max-age": str(MAX_AGE),
    }
