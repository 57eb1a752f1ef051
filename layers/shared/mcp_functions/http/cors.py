"""CORS: which web pages may call this server: those of the parameter `AllowedOrigins`, by default none.

A browser sends the origin of its page as `Origin`, for example "https://host.example". Before a request that a plain
form could not send, the browser asks with a preflight (an OPTIONS request) whether the page may send the request.
Clients that are no browsers send no preflight, and no `Origin`.

A page sends its access token itself, and no cookie. So no response has `Access-Control-Allow-Credentials`, which
lets a browser add cookies.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.settings import Settings

# The headers that a page may send. They are listed, because "*" would not include Authorization (Fetch standard, "CORS
# non-wildcard request-header name").
REQUEST_HEADERS = (
    "accept", "authorization", "baggage", "content-type", "last-event-id", "mcp-method", "mcp-name",
    "mcp-protocol-version", "mcp-session-id", "traceparent", "tracestate",
)  # fmt: skip
SIGNATURE_HEADERS = ("x-amz-content-sha256", "x-amz-date", "x-amz-security-token")  # of SigV4
PARAMETER_HEADER = r"mcp-param-[a-z0-9_-]{1,64}"
RESPONSE_HEADERS = "mcp-session-id, retry-after, www-authenticate"  # that a page may read
REQUIRED_IN_PREFLIGHT = {"origin", "access-control-request-method"}
MAX_AGE_SECONDS = 600  # a browser may cache the response of a preflight for so long


def response_headers(http: HttpRequest, settings: Settings) -> dict[str, str]:
    """Return the CORS headers of a response; none if no web page may call this server."""
    if not settings.allowed_origins:
        return {}
    headers = {"vary": "Origin"}  # a cache keeps one response for each origin
    origin = http.headers.get("origin")
    if origin is not None and origin in settings.allowed_origins:
        headers["access-control-allow-origin"] = origin
        headers["access-control-expose-headers"] = RESPONSE_HEADERS
    return headers


def is_preflight(http: HttpRequest) -> bool:
    """Check whether a request is a preflight. A preflight never has a token, so it is answered without one."""
    return http.method == "OPTIONS" and REQUIRED_IN_PREFLIGHT.issubset(http.headers)


def requested_parameters(http: HttpRequest) -> list[str]:
    """Return the `Mcp-Param-*` headers that a preflight asks for."""
    requested = http.headers.get("access-control-request-headers", "").lower().split(",")
    return [name.strip() for name in requested if re.fullmatch(PARAMETER_HEADER, name.strip())]


def preflight_headers(methods: str, settings: Settings, parameter_headers: Sequence[str]) -> dict[str, str]:
    """Return the headers of a preflight response, in addition to `response_headers`.

    The path has the HTTP methods in `methods`, and the tools read these `Mcp-Param-*` headers.
    """
    headers = [*REQUEST_HEADERS, *parameter_headers]
    if settings.auth_mode == "iam":
        headers += SIGNATURE_HEADERS
    return {
        "access-control-allow-methods": methods,
        "access-control-allow-headers": ", ".join(sorted(headers)),
        "access-control-max-age": str(MAX_AGE_SECONDS),
    }
