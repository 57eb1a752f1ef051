"""Kept connections, bounded in time. Nothing is ever sent twice here: what to repeat, the caller knows.

A connection that the other side has closed meanwhile shows it before anything is sent, and another is opened.
"""

from __future__ import annotations

import socket
import threading
import time
from functools import cache
from http.client import HTTPConnection, HTTPException
from io import BufferedReader, RawIOBase
from select import select
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from mcp_functions.aws.errors import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
    SSLError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
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


class Deadline(NamedTuple):
    """When a call has to be over, in seconds of its clock."""

    ends: float
    clock: Callable[[], float]

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> Deadline:
        """Give a call so many seconds from now."""
        return cls(clock() + seconds, clock)

    def within(self, seconds: float) -> Deadline:
        """Give a part of the call so many seconds from now, and no more than the call has."""
        return self._replace(ends=min(self.ends, self.clock() + seconds))

    def left(self) -> float:
        """Return the seconds that are left.

        Raises:
            TimeoutError: there are none.

        """
        seconds = self.ends - self.clock()
        if seconds <= 0:
            raise TimeoutError
        return seconds


class Line:
    """A connected socket, as far as http.client uses one. All its reads and writes together end at one deadline.

    A socket's own timeout begins again with every byte that comes, so a server that drips holds it open for ever.
    """

    def __init__(self, connected: socket.socket, deadline: Deadline) -> None:
        """Take a socket, and when it must be done."""
        self._socket, self.deadline = connected, deadline

    def sendall(self, content: bytes) -> None:
        """Send all of it."""
        rest = memoryview(content)
        while rest:
            rest = rest[self.in_time().send(rest) :]

    def makefile(self, _mode: str) -> BufferedReader:
        """Return what reads from it."""
        return BufferedReader(_Reader(self, self._socket.makefile("rb", buffering=0)))

    def in_time(self) -> socket.socket:
        """Return the socket, for one more operation within the deadline."""
        self._socket.settimeout(self.deadline.left())
        return self._socket

    def fileno(self) -> int:
        """Return the file descriptor, for `select`."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close it, once nothing reads from it any more."""
        self._socket.close()


class _Reader(RawIOBase):
    def __init__(self, line: Line, source: RawIOBase) -> None:
        self._line, self._source = line, source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:  # noqa: ANN401 - any writable buffer
        self._line.in_time()
        return self._source.readinto(buffer)

    def close(self) -> None:
        self._source.close()
        super().close()


def connect(host: str, port: int, context: SSLContext | None, *, each: float, deadline: Deadline) -> HTTPConnection:
    """Open a connection.

    Args:
        host: its name or address.
        port: its port.
        context: whom to trust; None: the connection is not encrypted.
        each: seconds for each address of the host.
        deadline: for all of them, and for the handshake.

    Raises:
        OSError: nobody is there, or cannot be trusted, or it took too long.

    """
    connected = _dialled(host, port, each, deadline)
    try:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context:
            connected.settimeout(deadline.within(each).left())
            connected = context.wrap_socket(connected, server_hostname=host)
    except OSError:
        connected.close()
        raise
    connection: Any = HTTPConnection(host, port)
    connection.sock = Line(connected, deadline)
    return cast("HTTPConnection", connection)


def _dialled(host: str, port: int, each: float, deadline: Deadline) -> socket.socket:
    """Connect to the first address that answers."""
    failure: OSError = ConnectionRefusedError()
    for family, kind, protocol, _name, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        dialled = socket.socket(family, kind, protocol)
        try:
            dialled.settimeout(deadline.within(each).left())
            dialled.connect(address)
        except OSError as error:
            dialled.close()
            failure = error
        else:
            return dialled
    raise failure


class Connections:
    """Connections to one target: as many as there are calls at a time, each kept for the next call."""

    def __init__(self, target: Target, *, connect_seconds: float, read_seconds: float) -> None:
        """Remember the limits; none is opened."""
        self._lock = threading.Lock()
        self._idle: list[HTTPConnection] = []
        self._target, self._connect, self._read = target, connect_seconds, read_seconds

    def post(self, path: str, headers: Mapping[str, str], body: bytes, deadline: Deadline) -> Answer:
        """Send one request and read its answer, within the limits and before the deadline.

        Raises:
            Unanswered: there is none; its class says how far it came.

        """
        connection = self._open(deadline)
        line: Any = connection.sock
        line.deadline = deadline.within(self._read)
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
        for connection in self._idle:  # without the lock: a thread that held it may be in the process that forked
            connection.close()

    def _open(self, deadline: Deadline) -> HTTPConnection:
        with self._lock:
            kept = self._idle.pop() if self._idle else None
        if kept and kept.sock is not None and not select([kept.sock], [], [], 0)[0]:
            return kept
        if kept:  # it has something to say before it is asked: that it is closed
            kept.close()
        return self._connected(deadline)

    def _connected(self, deadline: Deadline) -> HTTPConnection:
        target, context = self._target, trusted() if self._target.tls else None
        try:
            return connect(target.host, target.port, context, each=self._connect, deadline=deadline)
        except TimeoutError:
            raise ConnectTimeoutError from None
        except OSError as error:
            untrusted = type(error).__module__ == "ssl"
            raise (SSLError if untrusted else EndpointConnectionError) from None
