"""One kept connection, bounded in time. Nothing is ever sent twice here: what to repeat, the caller knows.

A connection that the other side has closed meanwhile shows it before anything is sent, and another is opened.
"""

from __future__ import annotations

import threading
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from select import select
from typing import TYPE_CHECKING, NamedTuple

from mcp_functions.aws.errors import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
    SSLError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from ssl import SSLContext

    from mcp_functions.aws.surroundings import Target


class Answer(NamedTuple):
    """What came back: header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@cache
def trusted() -> SSLContext:
    """Read whom this machine trusts, once: that takes longer than a handshake."""
    import ssl  # noqa: PLC0415 - only where a connection is encrypted

    return ssl.create_default_context()


class Connections:
    """Connections to one target: as many as there are calls at a time, each kept for the next call."""

    def __init__(self, target: Target, *, connect_seconds: float, read_seconds: float) -> None:
        """Remember the limits; none is opened."""
        self._lock = threading.Lock()
        self._idle: list[HTTPConnection] = []
        self._target, self._connect, self._read = target, connect_seconds, read_seconds

    def post(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Send one request and read its answer.

        Raises:
            Unanswered: there is none; its class says how far it came.

        """
        connection = self._open()
        try:
            connection.request("POST", path, body, dict(headers))
            response = connection.getresponse()
            answer = Answer(response.status, {n.lower(): v for n, v in response.getheaders()}, response.read())
        except TimeoutError:
            connection.close()
            raise ReadTimeoutError from None
        except (OSError, HTTPException):
            connection.close()
            raise ConnectionClosedError from None
        if connection.sock is not None:  # else the other side has said that this was its last answer
            with self._lock:
                self._idle.append(connection)
        return answer

    def close(self) -> None:
        """Close what is kept."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __del__(self) -> None:
        """Leave no connection open that nobody can use any more."""
        self.close()

    def _open(self) -> HTTPConnection:
        with self._lock:
            kept = self._idle.pop() if self._idle else None
        if kept and kept.sock is not None and not select([kept.sock], [], [], 0)[0]:
            return kept
        if kept:  # it has something to say before it is asked: that it is closed
            kept.close()
        return self._connected()

    def _connected(self) -> HTTPConnection:
        host, port = self._target.host, self._target.port
        connection = (
            HTTPSConnection(host, port, timeout=self._connect, context=trusted())
            if self._target.tls
            else HTTPConnection(host, port, timeout=self._connect)
        )
        try:
            connection.connect()
        except TimeoutError:
            raise ConnectTimeoutError from None
        except OSError as error:
            connection.close()
            untrusted = type(error).__module__ == "ssl"
            raise (SSLError if untrusted else EndpointConnectionError) from None
        connection.sock.settimeout(self._read)
        return connection
