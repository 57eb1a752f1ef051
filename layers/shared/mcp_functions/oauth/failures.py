"""Exceptions as responses: a page that tells nothing where a browser shows it, else an error of OAuth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions.oauth import answers
from mcp_functions.oauth.errors import (
    BAD_REQUEST,
    INVALID_REQUEST,
    SERVER_ERROR,
    TEMPORARILY_UNAVAILABLE,
    UNAUTHORIZED,
    OAuthError,
)

if TYPE_CHECKING:
    from mcp_functions.http.events import HttpRequest, Response
    from mcp_functions.protocol.errors import McpError

PAGES = ("/authorize", "/callback")  # a browser shows what they answer
SERVER_FAULT = 500
UNAVAILABLE = 503
CODES = {SERVER_FAULT: SERVER_ERROR, UNAVAILABLE: TEMPORARILY_UNAVAILABLE}
SENTENCES = {
    INVALID_REQUEST: "the request cannot be read",
    SERVER_ERROR: "the server failed",
    TEMPORARILY_UNAVAILABLE: "try again in a moment",
}


def refused(error: OAuthError, http: HttpRequest) -> Response:
    """Make the response of a request that was refused."""
    if http.path.endswith(PAGES):
        return answers.error_page(BAD_REQUEST if error.status == UNAUTHORIZED else error.status)
    used_basic = error.status == UNAUTHORIZED and "authorization" in http.headers
    return answers.failure(error, with_basic=used_basic)


def failed(error: McpError, http: HttpRequest) -> Response:
    """Make the response of a request that this server could not answer, or not read."""
    status = error.status if error.status >= BAD_REQUEST else SERVER_FAULT
    if http.path.endswith(PAGES):
        response = answers.error_page(status)
    else:
        code = CODES.get(status, INVALID_REQUEST)
        response = answers.failure(OAuthError(code, SENTENCES[code], status))
    return {**response, "headers": {**response["headers"], **error.headers}}
