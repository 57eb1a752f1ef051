"""Reads a request to this authorization server: its parameters, its cookies, and who is limited for it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from mcp_functions.http import events
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.seal.binding import caller_id
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.http.events import HttpRequest

MAX_BODY_BYTES = 32 * 1024  # of a form; the query of API Gateway is shorter than this
MAX_PARAMETERS = 32  # of a form or a query
MAX_COOKIES = 64
MAX_COOKIE_CHARS = 8 * 1024  # of all cookies together
WHITESPACE = " \t"
FORM = "application/x-www-form-urlencoded"


class OAuthRequest(NamedTuple):
    """A request to this authorization server."""

    http: HttpRequest  # the HTTP request
    parameters: Mapping[str, str]  # of the query or the form; no value is empty
    cookies: Mapping[str, str]  # name -> value
    caller_id: str  # the caller's network, whose budgets pay for forged values and fetches


def read(http: HttpRequest) -> OAuthRequest:
    """Read a request with a query or a form."""
    text = _form(http) if http.method == "POST" else str(http.event.get("rawQueryString") or "")
    return OAuthRequest(
        http=http,
        parameters=read_parameters(text),
        cookies=_cookies(http.event.get("cookies")),
        caller_id=f"oauth:{caller_id(None, http.address)}",
    )


def _form(http: HttpRequest) -> str:
    """Return the text of a form."""
    media_type = http.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != FORM:
        raise OAuthError(
            code="invalid_request", description="the body must be a form: application/x-www-form-urlencoded"
        )
    body = events.read_body(http, MAX_BODY_BYTES)
    try:
        return body if isinstance(body, str) else body.decode()
    except UnicodeDecodeError:
        raise OAuthError(
            code="invalid_request", description="the form is not UTF-8"
        ) from None  # the cause quotes the form


def read_parameters(text: str) -> dict[str, str]:
    """Read a query or a form.

    "Request and response parameters MUST NOT be included more than once" (RFC 6749, 3.1), but `resource` may (RFC 8707,
    section 2). This server is one resource.
    """
    if len(text) > MAX_BODY_BYTES:
        raise OAuthError(code="invalid_request", description="the parameters are too long")
    try:
        # "Parameters sent without a value MUST be treated as if they were omitted": parse_qsl leaves them out.
        pairs = parse_qsl(text, errors="strict", max_num_fields=MAX_PARAMETERS)
    except ValueError:  # `from None` hides its text, which quotes the parameters
        raise OAuthError(code="invalid_request", description="the parameters are too many, or not UTF-8") from None
    parameters = dict(pairs)
    resources = [value for name, value in pairs if name == "resource"]
    if len(set(resources)) > 1:
        raise OAuthError(code="invalid_target", description="the request names several resources")
    if len(parameters) != len(pairs) - max(0, len(resources) - 1):
        raise OAuthError(code="invalid_request", description="a parameter is there twice")
    return parameters


def _cookies(received: object) -> dict[str, str]:
    """Read cookies. If a name occurs twice, neither counts: another host of the domain may have set one of them.

    Only spaces and tabs are removed (RFC 6265, 5.2). Otherwise another host could set a cookie whose name is a Unicode
    space and "__Host-…". To a browser this name has no prefix "__Host-", but after the removal it would have it.
    """
    cookies = [str(cookie) for cookie in received] if isinstance(received, list) else []
    if len(cookies) > MAX_COOKIES or sum(map(len, cookies)) > MAX_COOKIE_CHARS:
        raise OAuthError(code="invalid_request", description="the request has too many cookies, or too long ones")
    values: dict[str, list[str]] = {}
    for cookie in cookies:
        name, _separator, value = cookie.partition("=")
        values.setdefault(name.strip(WHITESPACE), []).append(value.strip(WHITESPACE))
    return {name: given[0] for name, given in values.items() if len(given) == 1}
