"""The HTTP responses of the authorization server.

    the metadata of the server    JSON, which may be cached
    an error of a page            a page without details, because the user reads it
    any other error               an error of OAuth as JSON, because the client reads it
    any other response            JSON, a redirect or a page, which no cache stores

No other site can show a response in a frame.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from mcp_functions.http import responses
from mcp_functions.oauth import pages
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.protocol.json_writer import dumps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.protocol.errors import McpError
    from mcp_functions.protocol.event_types import Response

HEADERS = {
    **responses.SECURITY_HEADERS,
    "pragma": "no-cache",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
}
# Clients that are web pages call the endpoints that return JSON. These read no cookie, so every page may call them.
CORS_HEADERS = {"access-control-allow-origin": "*"}
PREFLIGHT_HEADERS = {
    **CORS_HEADERS,
    "access-control-allow-methods": "GET, POST",
    "access-control-allow-headers": (
        "authorization, content-type, mcp-protocol-version, traceparent, tracestate, baggage"
    ),
    "access-control-max-age": "600",
}
METADATA_HEADERS = {"cache-control": "public, max-age=300"}  # the metadata may be cached
PAGE_PATHS = ("/authorize", "/callback")  # a browser shows the responses of these endpoints
# HTTP status -> the error; any other status from 400 on means that the request cannot be read.
SERVER_ERRORS = {
    500: OAuthError(code="server_error", description="the server failed"),
    503: OAuthError(code="temporarily_unavailable", description="try again in a moment"),
}
UNREADABLE = OAuthError(code="invalid_request", description="the request cannot be read")


def make_json(status: int, content: object, headers: Mapping[str, str] | None = None) -> Response:
    """Make a response whose body is JSON."""
    json_headers = {"content-type": "application/json", **CORS_HEADERS, **(headers or {})}
    return _make_response(status, dumps(content), json_headers)


def make_empty(status: int, headers: Mapping[str, str] | None = None) -> Response:
    """Make a response without a body."""
    return _make_response(status, "", headers or {})


def make_redirect(status: int, location: str, cookies: Sequence[str] = ()) -> Response:
    """Make a redirect."""
    return _make_response(status, "", {"location": location}, cookies)


def make_page(status: int, html: str, cookies: Sequence[str] = (), referrer_policy: str = "no-referrer") -> Response:
    """Make the response with a page."""
    headers = {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": pages.content_security_policy(),
        "referrer-policy": referrer_policy,
    }
    return _make_response(status, html, headers, cookies)


def is_page_path(path: str) -> bool:
    """Check whether a browser shows the responses of a path. The URL of this server may have a path before it."""
    return path.endswith(PAGE_PATHS)


def make_oauth_error(error: OAuthError, http: HttpRequest) -> Response:
    """Make the response of a request that this server refuses."""
    if is_page_path(http.path):
        # With 401 a browser would ask for a password.
        status = 400 if error.status == HTTPStatus.UNAUTHORIZED else error.status
        return make_page(status, pages.last_page("stopped.html"))
    headers = {}
    # RFC 6749, 5.2: the response names the scheme of the Authorization header that did not authenticate the client.
    if error.status == HTTPStatus.UNAUTHORIZED and "authorization" in http.headers:
        headers["www-authenticate"] = 'Basic realm="token"'
    return make_json(error.status, error.parameters(), headers)


def make_server_error(error: McpError, http: HttpRequest) -> Response:
    """Make the response of a request that this server could not read, or could not answer."""
    # An McpError may have the status 200: MCP clients read the error in the body.
    status = 500 if error.status < HTTPStatus.BAD_REQUEST else error.status
    if is_page_path(http.path):
        response = make_page(status, pages.last_page("stopped.html"))
    else:
        response = make_json(status, SERVER_ERRORS.get(status, UNREADABLE).parameters())
    response["headers"].update(error.headers)
    return response


def _make_response(status: int, body: str, headers: Mapping[str, str], cookies: Sequence[str] = ()) -> Response:
    response = responses.response(status, {**HEADERS, **headers}, body)
    if cookies:
        response["cookies"] = list(cookies)
    return response
