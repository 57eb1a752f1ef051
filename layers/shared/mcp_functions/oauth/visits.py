"""A request to the sign-in front: its parameters, its cookies, and the caller whose budgets it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

from mcp_functions.http import events
from mcp_functions.oauth import errors
from mcp_functions.oauth.addresses import network
from mcp_functions.oauth.errors import OAuthError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.http.events import HttpRequest

MAX_BODY = 32 * 1024  # bytes of a form; API Gateway reads no query of this length
MAX_FIELDS = 32
WHITESPACE = " \t"
FORM = "application/x-www-form-urlencoded"


class Visit(NamedTuple):
    """A request to the front."""

    http: HttpRequest
    parameters: Mapping[str, str]  # the parameters of the query or the form; each occurs once, and none is empty
    cookies: Mapping[str, str]  # the cookies by name
    caller_id: str  # the id whose budgets are charged for forged values and for fetches


def read(event: Mapping[str, Any], http: HttpRequest) -> Visit:
    """Read a request with a query or a form.

    Raises:
        OAuthError: the request is too large, is ambiguous, or has another media type.
        McpError: the body is over the limit.
    """
    query = str(event.get("rawQueryString") or "")
    text = _form(http) if http.method == "POST" else query
    return Visit(http, read_parameters(text), _cookies(event.get("cookies")), caller_id(http))


def caller_id(http: HttpRequest) -> str:
    """Return the id whose budgets a request is charged to: the network of its address."""
    return f"oauth:{network(http.address)}"


def _form(http: HttpRequest) -> str:
    if http.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise OAuthError(errors.INVALID_REQUEST, "the body must be a form: application/x-www-form-urlencoded")
    body = events.read_body(http, MAX_BODY)
    try:
        return body if isinstance(body, str) else body.decode()
    except UnicodeDecodeError:
        raise OAuthError(errors.INVALID_REQUEST, "the form is not UTF-8") from None


def read_parameters(text: str) -> dict[str, str]:
    """Read a query or a form.

    "Request and response parameters MUST NOT be included more than once" (RFC 6749, 3.1).

    Raises:
        OAuthError: there are too many parameters, they are too long, or one is there twice.
    """
    if len(text) > MAX_BODY:
        raise OAuthError(errors.INVALID_REQUEST, "the parameters are too long")
    try:
        # "Parameters sent without a value MUST be treated as if they were omitted": parse_qsl leaves them out.
        pairs = parse_qsl(text, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError:
        raise OAuthError(errors.INVALID_REQUEST, "the parameters are too many, or not UTF-8") from None
    parameters = dict(pairs)
    if len(parameters) != len(pairs):
        raise OAuthError(errors.INVALID_REQUEST, "a parameter is there twice")
    return parameters


def _cookies(received: object) -> dict[str, str]:
    """Read cookies. A name that is there twice counts as absent: another host of the domain may have set one."""
    lines = received if isinstance(received, list) else []
    pairs = [_cookie(str(line)) for line in lines]
    names = [name for name, _ in pairs]
    return {name: value for name, value in pairs if names.count(name) == 1}


def _cookie(line: str) -> tuple[str, str]:
    """Read a cookie's name and value.

    Only spaces and tabs are removed (RFC 6265, 5.2). Other hosts may set a cookie whose name is a Unicode space and
    "__Host-…": a browser does not count it as a name with that prefix.
    """
    name, _, value = line.partition("=")
    return name.strip(WHITESPACE), value.strip(WHITESPACE)
