"""HTTP requests to the provider and to clients' URLs: each has one deadline and one limit of bytes.

No request follows a redirect or uses a proxy.
"""

from __future__ import annotations

import json
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.aws.connection import read_response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.aws.connection import Connection, Response

USER_AGENT = "mcp-functions"


class NoAnswer(Exception):
    """No usable response arrived."""

    def __init__(self, reason: str) -> None:
        """Keep the reason, a constant."""
        super().__init__(reason)


class Request(NamedTuple):
    """An HTTP request."""

    target: str  # the path and the query
    headers: Mapping[str, str] = {}
    body: bytes | None = None  # None for a GET; otherwise the request is a POST


def exchange(connection: Connection, request: Request, limit: int) -> Response:
    """Send a request and read its response, then close the connection.

    Args:
        connection: the connection, with a deadline.
        request: the request to send.
        limit: the largest number of bytes of the response's body.

    Raises:
        NoAnswer: the response did not arrive in time, or is over the limit.
    """
    method = "GET" if request.body is None else "POST"
    headers = {"accept": "application/json", "user-agent": USER_AGENT, "connection": "close", **request.headers}
    try:
        connection.request(method, request.target, request.body, headers)
        response = read_response(connection, limit + 1)  # one byte more shows that the body is too large
    except (OSError, HTTPException, ValueError):
        raise NoAnswer(reason="no response arrived in time") from None  # the cause may quote the response
    finally:
        connection.close()
    if len(response.body) > limit:
        raise NoAnswer(reason="the response is too large")
    return response


def read_json(response: Response) -> dict[str, Any]:
    """Return the body of a response.

    Raises:
        NoAnswer: the body is not a JSON object.
    """
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    has_json_suffix = media_type.startswith("application/") and media_type.endswith("+json")
    if media_type != "application/json" and not has_json_suffix:
        raise NoAnswer(reason="the response is not JSON")
    try:
        value = json.loads(response.body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise NoAnswer(reason="the response is not a JSON object")
    return value
