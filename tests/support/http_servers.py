"""HTTP and HTTPS servers on a thread, for the tests in which a client needs a real socket."""

from __future__ import annotations

import socket
import threading
from collections import deque
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from socketserver import BaseRequestHandler

LOOPBACK = ("127.0.0.1", 0)  # any free port


@contextmanager
def listening(handler: type[BaseRequestHandler], context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve HTTP on a free port until the block ends.

    Args:
        handler: the class that handles a connection.
        context: of TLS; None for plain HTTP.

    Yields:
        the server's host and port: `127.0.0.1:49152`.

    """
    server = _TlsServer(handler, context) if context else ThreadingHTTPServer(LOOPBACK, handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _TlsServer(ThreadingHTTPServer):
    """A server that does the TLS handshake in the thread of the connection, so that no client blocks another one."""

    def __init__(self, handler: type[BaseRequestHandler], context: ssl.SSLContext) -> None:
        super().__init__(LOOPBACK, handler)
        self._context = context

    def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - socketserver's types
        with self._context.wrap_socket(request, server_side=True) as encrypted:
            super().finish_request(encrypted, client_address)

    def handle_error(self, *_arguments: object) -> None:
        """Write nothing: a client closes the connection if it refuses the certificate or does not need it."""


class ScriptedResponse(NamedTuple):
    """A response.

    Attributes:
        hang_up: whether the server closes the connection after the response, without a `connection: close`.
        missing: how many bytes fewer than `content-length` the server sends.
    """

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = {}  # noqa: RUF012 - never changed
    hang_up: bool = False
    missing: int = 0


class ScriptedServer:
    """A server that sends the responses of its script in turn and keeps the requests.

    Attributes:
        host: its host and port.
        script: the responses; None closes the connection instead. After the last one, each response is {}.
        asked: path, headers and body of each request.
        connections: the address of each client's connection.
        may_answer: no response is sent while this event is clear.
        closed: released for each connection that the server has closed.
    """

    def __init__(self) -> None:
        self.host = ""
        self.script: deque[ScriptedResponse | None] = deque()
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self.connections: set[Any] = set()
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.closed = threading.Semaphore(0)

    @contextmanager
    def listening(self, context: ssl.SSLContext | None = None) -> Iterator[ScriptedServer]:
        """Serve until the block ends.

        Args:
            context: of TLS; None for plain HTTP.

        """
        with listening(self._connection_class(), context) as self.host:
            try:
                yield self
            finally:
                self.may_answer.set()

    def _connection_class(self) -> type[BaseHTTPRequestHandler]:
        scripted = self

        class Connection(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                scripted.connections.add(self.client_address)
                headers = {name.lower(): value for name, value in self.headers.items()}
                scripted.asked.append((self.path, headers, self.rfile.read(int(headers.get("content-length", 0)))))
                scripted.may_answer.wait()
                response = scripted.script.popleft() if scripted.script else ScriptedResponse()
                if response is None:
                    self.close_connection = True
                    return
                self.send_response(response.status)
                for name, value in response.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(response.body) + response.missing))
                self.end_headers()
                self.wfile.write(response.body)
                self.close_connection = response.hang_up or bool(response.missing)

            do_GET = do_POST  # noqa: N815 - as http.server names it

            def finish(self) -> None:
                super().finish()
                with suppress(OSError):  # the client was faster
                    self.connection.shutdown(socket.SHUT_RDWR)
                scripted.closed.release()

            def log_message(self, *_args: object) -> None:
                pass

        return Connection
