"""HTTP connections to one host, kept for later requests.

    take an idle connection that the server has kept open, or open another
    send the request and read the response, before the deadline
    keep the connection, or close it after an error

A request is sent once: only the caller knows whether it may be sent again.
"""

from __future__ import annotations

import socket
import threading
from functools import cache
from http.client import HTTPConnection, HTTPException
from select import select
from typing import TYPE_CHECKING, Any, cast

from mcp_functions.aws import errors
from mcp_functions.aws.deadline_socket import DeadlineSocket
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from ssl import SSLContext

    from mcp_functions.aws.deadline_socket import Deadline


class Response(NamedTuple):
    """An HTTP response; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ConnectionPool:
    """Connections to one host: one for each concurrent call, kept for later calls."""

    def __init__(self, host: str, port: int, *, tls: bool, connect_seconds: float, read_seconds: float) -> None:
        """Keep the limits; no connection is opened."""
        self._host = host
        self._port = port
        self._tls = tls
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds
        self._lock = threading.Lock()
        self._idle: list[HTTPConnection] = []

    def post(self, path: str, headers: Mapping[str, str], body: bytes, deadline: Deadline) -> Response:
        """Send one request and read its response, within the limits and before the deadline.

        Raises:
            HTTPClientError: no complete response arrived; the class shows whether the request was sent.
        """
        connection = self._take(deadline)
        deadline_socket: Any = connection.sock
        deadline_socket.deadline = deadline.within(self._read_seconds)
        try:
            connection.request("POST", path, body, dict(headers))
            response = _read_response(connection)
        except TimeoutError:
            connection.close()
            raise errors.ReadTimeoutError from None
        except (OSError, HTTPException):
            connection.close()
            raise errors.ConnectionClosedError from None
        self._keep(connection)
        return response

    def close(self) -> None:
        """Close all idle connections."""
        with self._lock:
            idle = list(self._idle)
            self._idle.clear()
        for connection in idle:
            connection.close()

    def __del__(self) -> None:
        """Close all idle connections, because http.client does not.

        This takes no lock: after a fork, another thread of the parent may hold it, and no thread would release it.
        """
        for connection in self._idle:
            connection.close()

    def _take(self, deadline: Deadline) -> HTTPConnection:
        """Return an idle connection, or open one."""
        with self._lock:
            idle = self._idle.pop() if self._idle else None
        if idle is None:
            return self._open(deadline)
        if _is_open(idle):
            return idle
        idle.close()
        return self._open(deadline)

    def _keep(self, connection: HTTPConnection) -> None:
        if connection.sock is None:  # http.client has closed it, because the server asked for that
            return
        with self._lock:
            self._idle.append(connection)

    def _open(self, deadline: Deadline) -> HTTPConnection:
        context = tls_context() if self._tls else None
        try:
            return open_connection(
                self._host, self._port, context, connect_seconds=self._connect_seconds, deadline=deadline
            )
        except TimeoutError:
            raise errors.ConnectTimeoutError from None
        except OSError as error:
            # An error of TLS is known by its module, because `ssl` is imported for encrypted connections alone.
            if type(error).__module__ == "ssl":
                raise errors.SSLError from None
            raise errors.EndpointConnectionError from None


def open_connection(
    host: str, port: int, context: SSLContext | None, *, connect_seconds: float, deadline: Deadline
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
    connection.sock = DeadlineSocket(connected, deadline)  # http.client calls only methods that it has
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


@cache
def tls_context() -> SSLContext:
    """Read the certificates that this machine trusts, once: that takes longer than a handshake."""
    import ssl  # noqa: PLC0415 - only for encrypted connections

    return ssl.create_default_context()


def _is_open(connection: HTTPConnection) -> bool:
    """Check whether the server has kept an idle connection open. If it has closed it, the socket is readable."""
    if connection.sock is None:
        return False
    readable, _writable, _failed = select([connection.sock], [], [], 0)
    return not readable


def _read_response(connection: HTTPConnection) -> Response:
    response = connection.getresponse()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Response(response.status, headers, response.read())
