"""HTTP requests to the provider and to clients' URLs: each has one deadline and one limit of bytes.

No request follows a redirect or uses a proxy.
"""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.aws.connection import open_connection, tls_context

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.aws.connection import Deadline

USER_AGENT = "mcp-functions"
CONNECT_SECONDS = 2.0  # the time limit for a connection to one address, and for the TLS handshake
TLS_PORT = 443


class NoAnswer(Exception):
    """No usable response arrived."""

    def __init__(self, reason: str) -> None:
        """Keep the reason, a constant."""
        super().__init__(reason)


class Answer(NamedTuple):
    """An HTTP response; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        """Return the body.

        Raises:
            NoAnswer: the body is not a JSON object.
        """
        media_type = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        has_json_suffix = media_type.startswith("application/") and media_type.endswith("+json")
        if media_type != "application/json" and not has_json_suffix:
            raise NoAnswer(reason="the response is not JSON")
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise NoAnswer(reason="the response is not a JSON object")
        return value


class Request(NamedTuple):
    """An HTTP request."""

    target: str  # the path and the query
    headers: Mapping[str, str] = {}
    body: bytes | None = None  # None for a GET; otherwise the request is a POST


def connect(scheme: str, host: str, port: int, deadline: Deadline) -> HTTPConnection:
    """Open a connection to a host of the configuration.

    Raises:
        OSError: the host does not accept it.
    """
    context = tls_context() if scheme == "https" else None
    connection = open_connection(host, port, context, CONNECT_SECONDS, deadline)
    if context:
        connection.default_port = TLS_PORT  # without this, http.client would write the port into the Host header
    return connection


def exchange(connection: HTTPConnection, request: Request, limit: int) -> Answer:
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
        response = connection.getresponse()
        body = response.read(limit + 1)  # one byte more shows that the body is too large
    except (OSError, HTTPException, ValueError):
        raise NoAnswer(reason="no response arrived in time") from None  # the cause may quote the response
    finally:
        connection.close()
    if len(body) > limit:
        raise NoAnswer(reason="the response is too large")
    received = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, received, body)
