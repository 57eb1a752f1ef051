"""An HTTP/1.1 server on 127.0.0.1, for the API and for the copies of AWS's services.

    with Loopback(max_body=1024) as server:
        server.start(answer)  # `answer` takes an HttpRequest, and returns an HttpResponse

A web page can reach 127.0.0.1 through a host name that resolves to it (DNS rebinding). So the Host header must be one
of this machine's names.
"""

import contextlib
import errno
import json
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Thread
from typing import Any

from mcp_functions.protocol.wire_types import JSONObject
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.request_bodies import BadBody, TooLarge, read_body

HOST = "127.0.0.1"
OWN_NAMES = {"localhost", HOST, "[::1]"}
DRAIN_SECONDS = 2.0  # the longest wait for pending responses when the server stops
POLL_SECONDS = 0.02  # the longest time until a stop is noticed


@dataclass(frozen=True)
class HttpRequest:
    """One HTTP request."""

    method: str
    target: str  # the path and the query as the client sent them
    headers: tuple[tuple[str, str], ...]
    body: bytes | None  # None if it has no body
    protocol: str = "HTTP/1.1"
    source_ip: str = HOST  # the client's address
    port: int = 80  # the server's port

    def header(self, name: str) -> str:
        """Return the first value of a header; "" if there is none. The name is in lower case."""
        values = self.values(name)
        return values[0] if values else ""

    def values(self, name: str) -> list[str]:
        """Return every value of a header. The name is in lower case."""
        return [value for key, value in self.headers if key.lower() == name]

    @property
    def is_signed(self) -> bool:
        """Whether the request has a signature of AWS (SigV4), as every request of an AWS client has.

        The signature itself is not checked. The header alone keeps web pages out: before a browser sends the header
        Authorization for a page, it asks the server (CORS preflight), and the copies of AWS's services do not allow it.
        """
        return self.header("authorization").startswith("AWS4-")


@dataclass(frozen=True)
class HttpResponse:
    """One HTTP response; the server adds Date, Content-Length and Connection."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


def json_object(text: str | bytes) -> JSONObject:
    """Read a JSON object; {} if the text is no JSON, or another value."""
    return read_object(text) or {}


def read_object(text: str | bytes) -> "JSONObject | None":
    """Read a JSON object; None if the text is no JSON, or another value."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def json_response(status: int, value: object, *headers: tuple[str, str]) -> HttpResponse:
    """Make a response with a JSON value as its body."""
    return HttpResponse(status, (("content-type", "application/json"), *headers), json.dumps(value).encode())


class Loopback(contextlib.AbstractContextManager["Loopback", None]):
    """A server that listens from the start of its block to the end, with one thread for each connection."""

    def __init__(self, *, port: int = 0, max_body: int, address: str = HOST, names: Collection[str] = ()) -> None:
        """Listen. Requests wait until `start`.

        Args:
            port: the port to listen on; 0 for any free port.
            max_body: the most bytes of a request's body; a longer one gets 413.
            address: an address of this machine. Containers cannot reach 127.0.0.1, but the address of their bridge.
            names: more names that the Host header may have.

        Raises:
            Problem: the port is in use or forbidden.
        """
        try:
            self._server = _Server(address, port, max_body, {*OWN_NAMES, address, *names})
        except (OSError, OverflowError) as error:
            raise Problem(_why_not(error, address, port)) from error
        self._address = address
        self._thread: Thread | None = None

    @property
    def port(self) -> int:
        """The port on which the server listens."""
        return self._server.server_port

    @property
    def url(self) -> str:
        """The URL without a path."""
        return f"http://{self._address}:{self.port}"

    def start(self, answer: Callable[[HttpRequest], HttpResponse]) -> None:
        """Answer requests from now on. `answer` is called in the thread of the connection."""
        self._server.answer = answer
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": POLL_SECONDS}, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Accept no more requests, send pending responses, and close every connection. A second call does nothing."""
        if self._thread:
            self._server.shutdown()
            self._thread.join()
            self._thread = None
        self._server.server_close()
        self._server.drain(DRAIN_SECONDS)

    def __exit__(self, *_error: object) -> None:
        """Stop."""
        self.stop()


def start_server(until: contextlib.ExitStack, answer: Callable[[HttpRequest], HttpResponse], max_body: int) -> str:
    """Start a server on any free port, and return its URL. The server stops at the end of the stack's block."""
    server = until.enter_context(Loopback(max_body=max_body))
    server.start(answer)
    return server.url


def _why_not(error: OSError | OverflowError, address: str, port: int) -> str:
    if isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL:
        return f"{address} is no address of this machine: `ip address` lists them"
    reason = "ports are 0 to 65535" if isinstance(error, OverflowError) else os.strerror(error.errno or 0)
    return f"port {port} cannot be used ({reason}): stop what listens there, or choose another with --port (make PORT=)"


class _Server(ThreadingHTTPServer):
    """Answers each connection in a thread of its own. It keeps the open connections, so that `drain` can close them."""

    request_queue_size = 128  # connections that may wait; the default of 5 is too few for tests
    answer: Callable[[HttpRequest], HttpResponse]  # set before the first connection is accepted

    def __init__(self, address: str, port: int, max_body: int, names: Collection[str]) -> None:
        self.max_body = max_body
        self.names = names
        self._connections: set[socket.socket] = set()
        super().__init__((address, port), _Connection)

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # HTTPServer's own asks the DNS for this machine's name
        self.server_name = str(self.server_address[0])
        self.server_port = self.server_address[1]

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, client_address = super().get_request()
        self._connections.add(connection)
        return connection, client_address

    def close_request(self, request: Any) -> None:  # noqa: ANN401
        super().close_request(request)
        self._connections.discard(request)

    def drain(self, seconds: float) -> None:
        """Let pending responses be sent, for so many seconds at most, then close every connection."""
        deadline = time.monotonic() + seconds
        self._shut(socket.SHUT_RD)  # no further request is read
        while self._connections and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        self._shut(socket.SHUT_RDWR)

    def _shut(self, direction: int) -> None:
        for connection in list(self._connections):
            with contextlib.suppress(OSError):  # the client, or its thread here, has closed it
                connection.shutdown(direction)

    def handle_error(self, _request: object, _client_address: object) -> None:
        """Write only the type of an error, because its text may contain a part of a request."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):  # a client may disconnect
            sys.stderr.write(f"a connection failed: {type(error).__name__}\n")


class _Connection(BaseHTTPRequestHandler):
    """Reads the requests of one connection, and writes their responses."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or a response waits until the last one is acknowledged
    wbufsize = -1  # buffered, so that headers and body leave in one write
    server: _Server

    def _answer(self) -> None:
        """Answer one request, of any method."""
        self._split_absolute_form()
        name_and_port = r"(.*?)(?::\d{1,5})?"
        host = re.fullmatch(name_and_port, ",".join(self.headers.get_all("Host", [])), re.ASCII)
        if host is None or host[1].lower() not in self.server.names:
            return self._refuse(403, "Forbidden")
        try:
            body = read_body(self.rfile, self.headers, self.server.max_body)
        except TooLarge:
            return self._refuse(413, "Request Entity Too Large")
        except BadBody:
            return self._refuse(400, "Bad Request")
        return self._send(self.server.answer(self._request(body)))

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _answer  # noqa: N815

    def _split_absolute_form(self) -> None:
        """Split a target that is a whole URL into the Host header, which is checked, and the path.

        "the origin server MUST ignore the received Host header field (if any) and instead use the host information of
        the request-target" (RFC 9112, section 3.2.2).
        """
        match = re.fullmatch(r"http://([^/?]*)(.*)", self.path, re.IGNORECASE)
        if match:
            host, target = match.groups()
            self.path = target if target.startswith("/") else f"/{target}"
            del self.headers["Host"]
            self.headers["Host"] = host

    def handle_expect_100(self) -> bool:
        """Send the 100 at once: http.server only buffers it, and the client waits for it."""
        proceed = super().handle_expect_100()
        self.wfile.flush()
        return proceed

    def _request(self, body: bytes | None) -> HttpRequest:
        return HttpRequest(
            method=self.command,
            target=self.path,
            headers=tuple(self.headers.items()),
            body=body,
            protocol=self.request_version,
            source_ip=self.client_address[0],
            port=self.server.server_port,
        )

    def _refuse(self, status: int, message: str) -> None:
        self.close_connection = True  # the start of the next request is unknown
        self.request_version = self.protocol_version  # http.server writes no status for HTTP/0.9
        self._send(json_response(status, {"message": message}, ("connection", "close")))

    def _send(self, response: HttpResponse) -> None:
        self.send_response(response.status)
        for name, value in response.headers:
            self.send_header(name, value)
        has_body = response.status not in {204, 304}
        if has_body:
            self.send_header("content-length", str(len(response.body)))
        self.end_headers()
        if has_body and self.command != "HEAD":
            self.wfile.write(response.body)

    def send_error(self, code: int, message: str | None = None, _explain: str | None = None) -> None:
        """Write http.server's own refusals as API Gateway's JSON, not as HTML."""
        self.command = getattr(self, "command", None) or "GET"
        self._refuse(code, message or self.responses.get(code, ("Bad Request",))[0])

    def version_string(self) -> str:
        """Name the server, without the interpreter's version."""
        return "mcp-functions-local"

    def log_message(self, *_args: object) -> None:
        """Write nothing: the harness logs invocations."""
