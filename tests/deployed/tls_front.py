"""Port 443 of AWS's host names: a server with the certificate of those hosts sends each request to the emulator."""

from __future__ import annotations

import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from mcp_functions_harness.emulator.front import forward
from mcp_functions_harness.loopback import HttpRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # headers and body leave in one write
    server: _Server

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        request = HttpRequest(self.command, self.path, tuple(self.headers.items()), body)
        response = forward(self.server.target(), self.headers.get("host", ""), request)
        self.send_response_only(response.status)
        for name, value in response.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    # http.server's names
    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _answer  # noqa: N815

    def log_message(self, *_args: object) -> None:
        """Write nothing: the functions have their log."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, target: Callable[[], tuple[str, int]], context: ssl.SSLContext) -> None:
        self.target = target
        self._context = context
        super().__init__(("127.0.0.1", 0), _Handler)

    # socketserver's types
    def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        with self._context.wrap_socket(request, server_side=True) as encrypted:
            super().finish_request(encrypted, client_address)

    def handle_error(self, *_arguments: object) -> None:
        """Write nothing: a client may disconnect at any time."""


@contextmanager
def tls(target: Callable[[], tuple[str, int]], certificate: Path) -> Iterator[int]:
    """Answer for port 443 of AWS's host names for a block, and yield the port.

    Args:
        target: says where the emulator is, which may start later.
        certificate: a file with the key and the certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = _Server(target, context)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
