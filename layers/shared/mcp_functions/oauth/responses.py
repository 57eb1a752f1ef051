"""The HTTP responses of the sign-in front, this package's OAuth authorization server.

    a public document           JSON, which may be cached
    an error of a page          a page without details, because the user reads it
    any other error             an error of OAuth as JSON, because the client reads it
    any other response          JSON, a redirect or a page, which no cache stores

No other site can show a response in a frame.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape
from http import HTTPStatus
from typing import TYPE_CHECKING

from mcp_functions.http import responses
from mcp_functions.oauth.errors import ErrorCode, OAuthError
from mcp_functions.protocol.json_writer import dumps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.http.events import HttpRequest, Response
    from mcp_functions.protocol.errors import McpError

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
    "access-control-allow-headers": "authorization, content-type, mcp-protocol-version",
    "access-control-max-age": "600",
}
PUBLIC_SECONDS = 300  # how long a public document may be cached
# `overflow` hides the parts of a client's name that leave its line, so that no part covers the text of the page.
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem}"
    "h1{font-size:1.3rem}dd{margin:0 0 .8rem;overflow-wrap:anywhere;overflow:hidden}"
    "button{font:inherit;padding:.5rem 1.2rem}"
)
ERROR_PAGE = "<p>This sign-in cannot go on. Close this page and start again in your application.</p>"
# A browser shows the responses of these endpoints.
PAGE_PATHS = ("/authorize", "/callback")
# HTTP status -> error code of OAuth, and its description. Any other status from 400 on has UNREADABLE.
SERVER_ERRORS = {
    500: (ErrorCode.SERVER_ERROR, "the server failed"),
    503: (ErrorCode.TEMPORARILY_UNAVAILABLE, "try again in a moment"),
}
UNREADABLE = (ErrorCode.INVALID_REQUEST, "the request cannot be read")


def make_json(status: int, value: object, headers: Mapping[str, str] | None = None) -> Response:
    """Make a response whose body is JSON."""
    return _make_response(status, dumps(value), {"content-type": "application/json", **CORS_HEADERS, **(headers or {})})


def make_empty(status: int, headers: Mapping[str, str] | None = None) -> Response:
    """Make a response without a body."""
    return _make_response(status, "", headers or {})


def make_public_json(value: object) -> Response:
    """Make the response of a public document: JSON that may be cached."""
    return make_json(200, value, {"cache-control": f"public, max-age={PUBLIC_SECONDS}"})


def make_redirect(status: int, location: str, cookies: Sequence[str] = ()) -> Response:
    """Make a redirect."""
    return _make_response(status, "", {"location": location}, cookies)


def is_page_path(path: str) -> bool:
    """Check whether a browser shows the responses of a path. The front's own URL may have a path before it."""
    return path.endswith(PAGE_PATHS)


def make_page(status: int, title: str, content: str, cookies: Sequence[str] = ()) -> Response:
    """Make a page. `title` is plain text, `content` is HTML in which every text of a client is escaped."""
    body = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1>{content}</body></html>"
    )
    headers = {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": _page_policy(),
        # With no-referrer, a browser would send `Origin: null` with the page's own form.
        "referrer-policy": "same-origin",
    }
    return _make_response(status, body, headers, cookies)


def _page_policy() -> str:
    """Return the Content-Security-Policy of a page: the browser applies the page's own style, and loads nothing.

    It has no form-action: browsers would apply it to every redirect after a form, to the provider and to the client.
    """
    style_hash = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{style_hash}'; base-uri 'none'; frame-ancestors 'none'"


def make_oauth_error(error: OAuthError, http: HttpRequest) -> Response:
    """Make the response of a request that this server refuses."""
    if is_page_path(http.path):
        # With 401 a browser would ask for a password.
        status = 400 if error.status == HTTPStatus.UNAUTHORIZED else error.status
        return _make_error_page(status)
    headers = {}
    # RFC 6749, 5.2: the response names the scheme of the Authorization header that did not authenticate the client.
    if error.status == HTTPStatus.UNAUTHORIZED and "authorization" in http.headers:
        headers["www-authenticate"] = 'Basic realm="token"'
    return make_json(error.status, error.parameters(), headers)


def make_server_error(error: McpError, http: HttpRequest) -> Response:
    """Make the response of a request that this server could not read, or could not answer."""
    status = error.status
    if status < HTTPStatus.BAD_REQUEST:  # an McpError may have the status 200: MCP clients read the error in the body
        status = 500
    if is_page_path(http.path):
        response = _make_error_page(status)
    else:
        code, description = SERVER_ERRORS.get(status, UNREADABLE)
        response = make_json(status, OAuthError(code, description).parameters())
    response["headers"].update(error.headers)
    return response


def _make_error_page(status: int) -> Response:
    """Make the page of a sign-in that cannot go on. Its text never changes: an attacker may have led the user here."""
    response = make_page(status, "Sign-in stopped", ERROR_PAGE)
    response["headers"]["referrer-policy"] = "no-referrer"
    return response


def _make_response(status: int, body: str, headers: Mapping[str, str], cookies: Sequence[str] = ()) -> Response:
    response = responses.response(status, {**HEADERS, **headers}, body)
    if cookies:
        response["cookies"] = list(cookies)
    return response
