"""HTTP connections to one host, kept open for later requests.

    1. take an idle connection that the server has kept open, or open another one
    2. send the request and read the response
    3. keep the connection, or close it after an error

http.client has no time limit for a whole request. So its connections get a `DeadlineSocket` here, whose reads and
writes together end at one deadline. A request is sent once: only the caller knows whether it may be sent again.
"""

from __future__ import annotations

import select
import socket
import time
from functools import cache
from http.client import HTTPConnection, HTTPException
from io import BufferedReader, RawIOBase
from typing import TYPE_CHECKING, Any

from mcp_functions.aws import errors
from mcp_functions.aws.endpoints import PORTS
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from ssl import SSLContext

    from _typeshed import WriteableBuffer

    from mcp_functions.aws.endpoints import CallLimits, Endpoint


class Deadline:
    """The time at which a call must end."""

    def __init__(self, seconds: float) -> None:
        """Set the deadline to `seconds` from now."""
        self._ends = time.monotonic() + seconds

    def allows(self, seconds: float) -> bool:
        """Return whether the deadline is more than `seconds` away."""
        return seconds < self._ends - time.monotonic()

    def within(self, seconds: float) -> Deadline:
        """Return this deadline, or an earlier one if `seconds` end before it."""
        return Deadline(seconds) if self.allows(seconds) else self

    def remaining(self) -> float:
        """Return the seconds until the deadline; TimeoutError if it has passed."""
        seconds = self._ends - time.monotonic()
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
        """Return the number of the socket for the system, which `select.poll` asks for."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket. The system keeps the connection until http.client has closed the response's reader, too."""
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
        # The file has no buffer of its own, so that each read of the system gets the time until the deadline.
        file = self._socket.makefile("rb", buffering=0)
        return BufferedReader(_Reader(self, file))

    def set_timeout(self) -> None:
        """Give the next read or write the time until the deadline."""
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


class Connection(HTTPConnection):
    """An HTTP connection over a socket that is connected already, and encrypted if the scheme is https.

    Attributes:
        sock: the socket, which has the deadline of the request; None after the connection was closed.
    """

    sock: Any  # http.client declares a real socket, but calls only methods of DeadlineSocket

    def __init__(self, connected: socket.socket, scheme: str, host: str, port: int, deadline: Deadline) -> None:
        """Use a connected socket; nothing is sent."""
        super().__init__(host, port)
        self.default_port = PORTS[scheme]  # http.client leaves this port out of the Host header
        self.sock = DeadlineSocket(connected, deadline)


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
        self._idle: list[Connection] = []

    def post(self, path: str, headers: Mapping[str, str], body: bytes, deadline: Deadline) -> Response:
        """Send one request and read its response, within the limits and before the deadline.

        Raises:
            HTTPClientError: no complete response arrived; the class shows whether the request was sent.
        """
        connection = self._take_idle() or self._open(deadline)
        connection.sock.deadline = deadline.within(self._limits.read_seconds)
        # The class of the new error says all that a caller needs. `from None`: the cause may quote the response.
        try:
            connection.request("POST", path, body, dict(headers))
            response = read_response(connection)
        except TimeoutError:
            connection.close()
            raise errors.ReadTimeoutError from None
        except (OSError, HTTPException):
            connection.close()
            raise errors.ConnectionClosedError from None
        if connection.sock is not None:  # after "Connection: close", http.client has closed it
            self._idle.append(connection)
        return response

    def close(self) -> None:
        """Close all idle connections."""
        while self._idle:
            self._idle.pop().close()

    def __del__(self) -> None:
        """Close all idle connections, because http.client does not."""
        self.close()

    def _take_idle(self) -> Connection | None:
        """Return an idle connection, or None if there is none that the server has kept open."""
        try:
            connection = self._idle.pop()
        except IndexError:  # an `if` before would not be safe: another thread may take the last one
            return None
        # A server sends nothing on an idle connection. So a readable socket means that the server has closed it.
        # `select.select` would refuse a socket with a number over 1023.
        readiness = select.poll()
        readiness.register(connection.sock, select.POLLIN)
        if readiness.poll(0):
            connection.close()
            return None
        return connection

    def _open(self, deadline: Deadline) -> Connection:
        """Open a connection, and turn errors into those of `errors`."""
        endpoint = self._endpoint
        seconds = self._limits.connect_seconds
        try:
            return open_connection(endpoint.scheme, endpoint.host, endpoint.port, seconds, deadline)
        except TimeoutError:
            raise errors.ConnectTimeoutError from None
        except OSError as error:
            import ssl

            if isinstance(error, ssl.SSLError):
                raise errors.SSLError from None
            raise errors.EndpointConnectionError from None


def open_connection(scheme: str, host: str, port: int, connect_seconds: float, deadline: Deadline) -> Connection:
    """Open a connection, encrypted if the scheme is "https".

    `connect_seconds` limits the connection to each address of the host, and the TLS handshake; `deadline` the whole
    call.

    Raises:
        OSError: the host does not accept the connection, is not trusted, or took too long.
    """
    connected = _connect(host, port, connect_seconds, deadline)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if scheme == "https":
        connected = encrypt(connected, host, tls_context(), deadline.within(connect_seconds))
    return Connection(connected, scheme=scheme, host=host, port=port, deadline=deadline)


def _connect(host: str, port: int, connect_seconds: float, deadline: Deadline) -> socket.socket:
    """Connect to the first address of the host that accepts.

    `socket.create_connection` tries all addresses, too. But it would give each one the same seconds, past the deadline.
    """
    failure: OSError = ConnectionRefusedError()  # if the host has no address
    addresses = socket.getaddrinfo(_encode_host(host), port, type=socket.SOCK_STREAM)
    for family, kind, protocol, _name, address in addresses:
        seconds = deadline.within(connect_seconds).remaining()
        connected = socket.socket(family, kind, protocol)
        try:
            connected.settimeout(seconds)
            connected.connect(address)
        except OSError as error:
            connected.close()
            failure = error
        else:
            return connected
    raise failure


def _encode_host(host: str) -> str | bytes:
    """Return bytes for a host in ASCII: for text, Python imports the IDNA codec, which takes 1 ms of a cold start."""
    return host.encode() if host.isascii() else host


def encrypt(connected: socket.socket, host: str, context: SSLContext, deadline: Deadline) -> socket.socket:
    """Start TLS on a connected socket, which is closed after an error."""
    try:
        connected.settimeout(deadline.remaining())
        return context.wrap_socket(connected, server_hostname=_encode_host(host))
    except OSError:
        connected.close()
        raise


@cache
def tls_context() -> SSLContext:
    """Read the certificates that this machine trusts, once: that takes longer than a handshake."""
    import ssl

    return ssl.create_default_context()


def read_response(connection: HTTPConnection, limit: int | None = None) -> Response:
    """Read the response to a request, with at most `limit` bytes of its body."""
    response = connection.getresponse()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Response(response.status, headers, response.read(limit))
