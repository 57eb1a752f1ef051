"""HTTP connections to one host, kept for later requests. All reads and writes of a request end at one deadline.

    take an idle connection that the server has kept open, or open another
    send the request and read the response, before the deadline
    keep the connection, or close it after an error

A request is sent once: only the caller knows whether it may be sent again.
"""

from __future__ import annotations

import socket
import time
from functools import cache
from http.client import HTTPConnection, HTTPException
from io import BufferedReader, RawIOBase
from select import select
from typing import TYPE_CHECKING, Any, cast

from mcp_functions.aws import errors
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from ssl import SSLContext

    from _typeshed import WriteableBuffer

    from mcp_functions.aws.endpoints import CallLimits, Endpoint


class Deadline(NamedTuple):
    """The time at which a call must end."""

    ends: float  # in seconds of the clock
    clock: Callable[[], float]  # returns seconds, and never goes back

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> Deadline:
        """Return the deadline that is `seconds` away."""
        return cls(clock() + seconds, clock)

    def within(self, seconds: float) -> Deadline:
        """Return this deadline, or an earlier one if `seconds` end before it."""
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
        self._socket = connected
        self.deadline = deadline

    def fileno(self) -> int:
        """Return the number of the socket for the system, which `select` asks for."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket; the system keeps the connection until its readers are closed too."""
        self._socket.close()

    def sendall(self, content: bytes) -> None:
        """Send all bytes."""
        rest = memoryview(content)
        while rest:
            self.set_timeout()
            sent = self._socket.send(rest)
            rest = rest[sent:]

    def makefile(self, _mode: str) -> BufferedReader:
        """Return a buffered reader. http.client asks for one for each response, and always with the mode "rb"."""
        return BufferedReader(_Reader(self, self._socket.makefile("rb", buffering=0)))

    def set_timeout(self) -> None:
        """Give the next operation the time until the deadline.

        Raises:
            TimeoutError: the deadline has passed.
        """
        self._socket.settimeout(self.deadline.remaining())


class _Reader(RawIOBase):
    """Reads from a socket's file, and gives each read the time until the deadline."""

    def __init__(self, deadline_socket: DeadlineSocket, source: RawIOBase) -> None:
        self._deadline_socket = deadline_socket
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        self._deadline_socket.set_timeout()
        return self._source.readinto(buffer)

    def close(self) -> None:
        self._source.close()
        super().close()


class Response(NamedTuple):
    """An HTTP response; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ConnectionPool:
    """Connections to one endpoint: one for each concurrent call, kept for later calls."""

    def __init__(self, endpoint: Endpoint, limits: CallLimits) -> None:
        """Keep the limits; no connection is opened."""
        self._endpoint = endpoint
        self._limits = limits
        self._idle: list[HTTPConnection] = []

    def post(self, path: str, headers: Mapping[str, str], body: bytes, deadline: Deadline) -> Response:
        """Send one request and read its response, within the limits and before the deadline.

        Raises:
            HTTPClientError: no complete response arrived; the class shows whether the request was sent.
        """
        connection = self._take(deadline)
        deadline_socket: Any = connection.sock
        deadline_socket.deadline = deadline.within(self._limits.read_seconds)
        # The class of the new error says all that a caller needs, so the cause is hidden: it may quote the response.
        try:
            connection.request("POST", path, body, dict(headers))
            response = _read_response(connection)
        except TimeoutError:
            connection.close()
            raise errors.ReadTimeoutError from None
        except (OSError, HTTPException):
            connection.close()
            raise errors.ConnectionClosedError from None
        if connection.sock is not None:  # it is None after "Connection: close": http.client has closed the connection
            self._idle.append(connection)
        return response

    def close(self) -> None:
        """Close all idle connections."""
        while self._idle:
            self._idle.pop().close()

    def __del__(self) -> None:
        """Close all idle connections, because http.client does not."""
        self.close()

    def _take(self, deadline: Deadline) -> HTTPConnection:
        """Return an idle connection, or open one."""
        try:
            idle = self._idle.pop()
        except IndexError:
            return self._open(deadline)
        # A server sends nothing on an idle connection. So a readable socket means that the server has closed it.
        readable, _writable, _failed = select([idle.sock], [], [], 0)
        if not readable:
            return idle
        idle.close()
        return self._open(deadline)

    def _open(self, deadline: Deadline) -> HTTPConnection:
        endpoint = self._endpoint
        context = tls_context() if endpoint.tls else None
        # The causes are hidden, as in `post`.
        try:
            return open_connection(endpoint.host, endpoint.port, context, self._limits.connect_seconds, deadline)
        except TimeoutError:
            raise errors.ConnectTimeoutError from None
        except OSError as error:
            # The class is compared by its module's name: importing `ssl` takes time that plain connections do not need.
            if type(error).__module__ == "ssl":
                raise errors.SSLError from None
            raise errors.EndpointConnectionError from None


def open_connection(
    host: str, port: int, context: SSLContext | None, connect_seconds: float, deadline: Deadline
) -> HTTPConnection:
    """Open a connection.

    Args:
        host: the name or address of the host.
        port: the port of the host.
        context: the trusted certificates; None opens a connection without encryption.
        connect_seconds: the time limit for each address of the host, and for the TLS handshake.
        deadline: the deadline of the whole call.

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
    # HTTPConnection has a type for real sockets alone, but calls only methods that DeadlineSocket has too.
    connection.sock = DeadlineSocket(connected, deadline)
    return cast("HTTPConnection", connection)


def _connect(host: str, port: int, connect_seconds: float, deadline: Deadline) -> socket.socket:
    """Connect to the first address of the host that accepts."""
    failure: OSError = ConnectionRefusedError()  # if the host has no address
    for *_rest, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        ip_address = str(address[0])
        try:
            return socket.create_connection((ip_address, port), deadline.within(connect_seconds).remaining())
        except OSError as error:
            failure = error
    raise failure


@cache
def tls_context() -> SSLContext:
    """Read the certificates that this machine trusts, once: that takes longer than a handshake."""
    import ssl  # noqa: PLC0415 - only for encrypted connections

    return ssl.create_default_context()


def _read_response(connection: HTTPConnection) -> Response:
    response = connection.getresponse()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Response(response.status, headers, response.read())
