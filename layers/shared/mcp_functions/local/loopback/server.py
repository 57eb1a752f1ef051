"""The HTTP/1.1 server of every endpoint of the harness. It listens on 127.0.0.1, unless another address is given.

A web page can reach loopback through a host name that resolves to 127.0.0.1 (DNS rebinding). So the Host header must be
one of this machine's names. Nagle's algorithm is off, because with it answers wait for delayed ACKs.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Lock, Thread
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from mcp_functions.local.loopback.bodies import BadBody, TooLarge, read_body
from mcp_functions.local.loopback.messages import HOST, HttpRequest, HttpResponse, json_response
from mcp_functions.local.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


Request: TypeAlias = "socket.socket | tuple[bytes, socket.socket]"  # socketserver's type
OUR_NAMES = {"localhost", HOST, "[::1]"}
HOST_HEADER = re.compile(r"(.*?)(?::\d{1,5})?", re.ASCII)  # a name, then perhaps a port
ABSOLUTE = re.compile(r"http://([^/?]*)(.*)", re.IGNORECASE)  # "absolute-form", RFC 9112, section 3.2.2
DRAIN_SECONDS = 2.0  # longest wait for answers that are not sent when the server stops


class Loopback(contextlib.AbstractContextManager["Loopback", None]):
    """Listens from the start of its block to the end, with one thread for each connection."""

    def __init__(self, *, port: int = 0, max_body: int, address: str = HOST, names: Collection[str] = ()) -> None:
        """Bind; nothing is answered before `start`.

        Args:
            port: the port to listen on; 0 for any free port.
            max_body: the most bytes of a request's body; a longer one gets 413.
            address: an address of this machine. Containers reach the address of their bridge, and never 127.0.0.1.
            names: names that the Host header may have, beside this machine's address and names.

        Raises:
            Problem: the port is in use or forbidden.
        """
        try:
            self._server = _Server((address, port), _Connection)
        except (OSError, OverflowError) as error:
            raise Problem(_why(error, address, port)) from error
        self._server.max_body = max_body
        self._server.names = {*OUR_NAMES, address, *names}
        self._address = address
        self._thread: Thread | None = None

    @property
    def port(self) -> int:
        """The port that was bound."""
        return self._server.server_port

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"http://{self._address}:{self.port}"

    def start(self, answer: Callable[[HttpRequest], HttpResponse]) -> None:
        """Answer from now on; `answer` is called in the connection's own thread."""
        self._server.answer = answer
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Accept no more requests, send pending answers, close every connection. A second call does nothing."""
        thread = self._thread
        self._thread = None
        if thread:
            self._server.shutdown()
            thread.join()
        self._server.server_close()
        if thread:
            self._server.drain(DRAIN_SECONDS)

    def __exit__(self, *_error: object) -> None:
        """Stop."""
        self.stop()


def started(stack: contextlib.ExitStack, answer: Callable[[HttpRequest], HttpResponse], max_body: int) -> str:
    """Serve on any free port until the stack closes; return the URL."""
    server = stack.enter_context(Loopback(max_body=max_body))
    server.start(answer)
    return server.url


def _why(error: OSError | OverflowError, address: str, port: int) -> str:
    if isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL:
        return f"{address} is no address of this machine: `ip address` lists them"
    reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else "ports are 0 to 65535"
    return f"port {port} cannot be used ({reason}): stop what listens there, or choose another with --port (make PORT=)"


class _Server(ThreadingHTTPServer):
    """Knows its open connections, so that a stop can end them."""

    request_queue_size = 128
    answer: Callable[[HttpRequest], HttpResponse]
    max_body: int
    names: Collection[str]

    def __init__(self, address: tuple[str, int], connection: type[_Connection]) -> None:
        self._open: dict[Thread, socket.socket] = {}
        self._lock = Lock()
        super().__init__(address, connection)

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # HTTPServer.server_bind asks the DNS for this machine's name
        self.server_name = str(self.server_address[0])
        self.server_port = self.server_address[1]

    def process_request(self, request: Request, client_address: object) -> None:
        thread = Thread(target=self._serve, args=(request, client_address), daemon=True)
        if isinstance(request, socket.socket):
            with self._lock:
                self._open[thread] = request
        thread.start()

    def _serve(self, request: Request, client_address: object) -> None:
        try:
            self.process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open = {thread: open_ for thread, open_ in self._open.items() if open_ is not request}

    def drain(self, seconds: float) -> None:
        """Let pending answers be sent, then close every connection; wait `seconds` at most."""
        until = time.monotonic() + seconds
        with self._lock:
            left = dict(self._open)
        for how in (socket.SHUT_RD, socket.SHUT_RDWR):  # first stop reading, then stop writing
            for connection in left.values():
                with contextlib.suppress(OSError):
                    connection.shutdown(how)
            for thread in left:
                thread.join(max(0.0, until - time.monotonic()))

    def handle_error(self, _request: object, _client_address: object) -> None:
        """Write the type of an error only: its text may have something of a request."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):  # a client may disconnect at any time
            sys.stderr.write(f"a connection failed: {type(error).__name__}\n")


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # headers and body leave in one write
    server: _Server
    bodiless: ClassVar[frozenset[int]] = frozenset({204, 304})

    def _answer(self) -> None:
        """Answer one request, of any method."""
        self._read_absolute_form()
        host = HOST_HEADER.fullmatch(",".join(self.headers.get_all("Host", [])))
        if host is None or host[1].lower() not in self.server.names:
            return self._refuse(403, "Forbidden")
        try:
            body = read_body(self.rfile, self.headers, self.server.max_body)
        except TooLarge:
            return self._refuse(413, "Request Entity Too Large")
        except BadBody:
            return self._refuse(400, "Bad Request")
        return self._send(self.server.answer(self._request(body)))

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _answer  # noqa: N815 - http.server's names

    def _read_absolute_form(self) -> None:
        """Split a target that is a whole URL, so that the name check sees its host.

        "the origin server MUST ignore the received Host header field (if any) and instead use the host information of
        the request-target" (RFC 9112, section 3.2.2).
        """
        absolute = ABSOLUTE.fullmatch(self.path)
        if absolute:
            host, target = absolute.groups()
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
        has_body = response.status not in self.bodiless
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
