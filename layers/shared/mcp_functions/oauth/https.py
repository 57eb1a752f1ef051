"""HTTP requests to the provider and to clients' URLs, and the JSON in their responses.

Each request has one deadline and one limit of bytes. It follows no redirect, and uses no proxy.
"""

from __future__ import annotations

from http import HTTPStatus
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

from mcp_functions.aws.connection import read_response
from mcp_functions.protocol import json_reader
from mcp_functions.protocol.errors import ParseError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.aws.connection import Connection, Response


class NoAnswer(Exception):
    """No usable response arrived, so a later request may succeed. It has no text, which could quote the response."""


class WrongAnswer(NoAnswer):
    """A response arrived, and it is not what was asked for: another media type, too large, or no JSON object."""


def exchange(
    connection: Connection, target: str, limit: int, headers: Mapping[str, str] | None = None, body: bytes | None = None
) -> Response:
    """Send a POST, or a GET without a body; read the response and close the connection, which has the deadline.

    `target` is the path and the query of the URL, "/token?v=1". The response's body has at most `limit` bytes.

    Raises:
        NoAnswer: the response did not arrive in time.
        WrongAnswer: the response is over the limit.
    """
    method = "GET" if body is None else "POST"
    sent = {"accept": "application/json", "user-agent": "mcp-functions", "connection": "close", **(headers or {})}
    try:
        connection.request(method, target, body, sent)
        response = read_response(connection, limit + 1)  # one byte more: the body is too large
    except (OSError, HTTPException, ValueError):
        raise NoAnswer from None
    finally:
        connection.close()
    if len(response.body) > limit:
        raise WrongAnswer
    return response


def read_json(response: Response) -> dict[str, Any]:
    """Return the JSON object in a response."""
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    has_json_suffix = media_type.startswith("application/") and media_type.endswith("+json")
    if media_type != "application/json" and not has_json_suffix:
        raise WrongAnswer
    try:
        value = json_reader.loads(response.body)
    except ParseError:
        raise WrongAnswer from None
    if not isinstance(value, dict):
        raise WrongAnswer
    return value


def may_succeed_later(status: int) -> bool:
    """Check whether an HTTP status means that the server is in trouble or too busy, and not that the request is wrong.

    408, 425 and 429 ask for the same request again, later (RFC 9110, 15.5.9; RFC 8470, 5.2; RFC 6585, 4).
    """
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in {
        HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS,
    }  # fmt: skip
