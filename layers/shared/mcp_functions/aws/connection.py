"""HTTP connections with deadlines, kept for later requests. A request is never sent twice here.

A kept connection that the server has closed is readable before a request is sent; then another is opened.
"""

from __future__ import annotations

import socket
import threading
import time
from functools import cache
from http.client import HTTPConnection, HTTPException
from io import BufferedReader, RawIOBase
from select import select
from typing import TYPE_CHECKING, Any, cast

from mcp_functions.aws.errors import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
    SSLError,
)
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from ssl import SSLContext

    from _typeshed import WriteableBuffer


class Response(NamedTuple):
    """An HTTP response; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@cache
def tls_context() -> SSLContext:
    """Read the certificates that this machine trusts, once: that takes longer than a handshake."""
    import ssl  # noqa: PLC0415 - only for encrypted connections

    return ssl.create_default_context()


class Deadline(NamedTuple):
    """The time at which a call must end, in seconds of its clock."""

    ends: float
    clock: Callable[[], float]

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> Deadline:
        """Return the deadline that is `seconds` away."""
        return cls(clock() + seconds, clock)

    def within(self, seconds: float) -> Deadline:
        """Return the earlier of this deadline and the one that is `seconds` away."""
        return self._replace(ends=min(self.ends, self.clock() + seconds))

    def remaining(self) -> float:
        """Return the seconds until the deadline.

        Raises:
            TimeoutError: the deadline has passed.

        """
        seconds = self.ends - self.clock()
        if seconds <= 0:
            raise TimeoutError
        return seconds


class DeadlineSocket:
    """A connected socket with the methods that http.client calls. All reads and writes together end at one deadline.

    A socket's own timeout starts again with every byte, so a server that sends slowly could hold it open for ever.
    """

    def __init__(self, connected: socket.socket, deadline: Deadline) -> None:
        """Wrap a connected socket."""
        self._socket, self.deadline = connected, deadline

    def sendall(self, content: bytes) -> None:
        """Send all bytes."""
        rest = memoryview(content)
        while rest:
            self.set_timeout()
            rest = rest[self._socket.send(rest) :]

    def makefile(self, _mode: str) -> BufferedReader:
        """Return a buffered reader."""
        return BufferedReader(_Reader(self, self._socket.makefile("rb", buffering=0)))

    def set_timeout(self) -> None:
        """Give the next operation the time until the deadline.

        Raises:
            TimeoutError: the deadline has passed.

        """
        self._socket.settimeout(self.deadline.remaining())

    def fileno(self) -> int:
        """Return the file descriptor, for `select`."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket, once its reader is closed too."""
        self._socket.close()


class _Reader(RawIOBase):
    def __init__(self, deadline_socket: DeadlineSocket, source: RawIOBase) -> None:
        self._socket, self._source = deadline_socket, source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        self._socket.set_timeout()
        return self._source.readinto(buffer)

    def close(self) -> None:
        self._source.close()
        super().close()


def open_connection(
    host: str, port: int, context: SSLContext | None, *, connect_seconds: float, deadline: Deadline
) -> HTTPConnection:
    """Open a connection.

    Args:
        host: its name or address.
        port: its port.
        context: the trusted certificates; None: the connection is not encrypted.
        connect_seconds: limit for each address of the host, and for the handshake.
        deadline: for all of them.

    Raises:
        OSError: the host does not accept the connection, is not trusted, or took too long.

    """
    connected = _connect(host, port, connect_seconds, deadline)
    try:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context:
            connected.settimeout(deadline.within(connect_seconds).remaining())
            connected = context.wrap_socket(connected, server_hostname=host)
    except OSError:
        connected.close()
        raise
    connection: Any = HTTPConnection(host, port)
    connection.sock = DeadlineSocket(connected, deadline)
    return cast("HTTPConnection", connection)


def _connect(host: str, port: int, connect_seconds: float, deadline: Deadline) -> socket.socket:
    """Connect to the first address of the host that accepts."""
    failure: OSError = ConnectionRefusedError()
    for family, kind, protocol, _name, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        connected = socket.socket(family, kind, protocol)
        try:
            connected.settimeout(deadline.within(connect_seconds).remaining())
            connected.connect(address)
        except OSError as error:
            connected.close()
            failure = error
        else:
            return connected
    raise failure


class ConnectionPool:
    """Connections to one host: one for each concurrent call, kept for later calls."""

    def __init__(self, host: str, port: int, *, tls: bool, connect_seconds: float, read_seconds: float) -> None:
        """Keep the limits; no connection is opened."""
        self._host, self._port, self._tls = host, port, tls
        self._connect_seconds, self._read_seconds = connect_seconds, read_seconds
        self._lock = threading.Lock()
        self._idle: list[HTTPConnection] = []

    def post(self, path: str, headers: Mapping[str, str], body: bytes, deadline: Deadline) -> Response:
        """Send one request and read its response, within the limits and before the deadline.

        Raises:
            HTTPClientError: no complete response arrived; the class says how far the request came.

        """
        connection = self._take(deadline)
        deadline_socket: Any = connection.sock
        deadline_socket.deadline = deadline.within(self._read_seconds)
        try:
            connection.request("POST", path, body, dict(headers))
            answer = connection.getresponse()
            response = Response(answer.status, {n.lower(): v for n, v in answer.getheaders()}, answer.read())
        except TimeoutError:
            connection.close()
            raise ReadTimeoutError from None
        except (OSError, HTTPException):
            connection.close()
            raise ConnectionClosedError from None
        if connection.sock is not None:  # http.client has dropped it if the server closes after this response
            with self._lock:
                self._idle.append(connection)
        return response

    def close(self) -> None:
        """Close all kept connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __del__(self) -> None:
        """Close all kept connections: http.client does not."""
        for connection in self._idle:  # without the lock: in a forked child, its holder may not exist
            connection.close()

    def _take(self, deadline: Deadline) -> HTTPConnection:
        with self._lock:
            kept = self._idle.pop() if self._idle else None
        if kept and kept.sock is not None and not select([kept.sock], [], [], 0)[0]:
            return kept
        if kept:  # readable before a request: the server has closed it
            kept.close()
        return self._open(deadline)

    def _open(self, deadline: Deadline) -> HTTPConnection:
        context = tls_context() if self._tls else None
        try:
            return open_connection(
                self._host, self._port, context, connect_seconds=self._connect_seconds, deadline=deadline
            )
        except TimeoutError:
            raise ConnectTimeoutError from None
        except OSError as error:
            untrusted = type(error).__module__ == "ssl"  # which is imported only for encrypted connections
            raise (SSLError if untrusted else EndpointConnectionError) from None
