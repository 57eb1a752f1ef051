"""The ways into the emulator over HTTP.

Front       http://127.0.0.1:PORT/mcp for clients that cannot sign: it signs each request as an IAM user
TlsFront    port 443 of AWS's host names, for processes that import `names`
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from botocore.credentials import Credentials

ANSWER_SECONDS = 40  # API Gateway gives up after 30
NOT_COPIED = {"connection", "content-length", "date", "host", "keep-alive", "server", "transfer-encoding"}
SERVICE = "execute-api"
Headers = list[tuple[str, str]]
Target = tuple[str, int] | None  # the host and port of the emulator; None: AWS itself
# (method, URL, headers, body) -> the headers to send
Sign = Callable[[str, str, Headers, bytes], Headers]


class Caller(NamedTuple):
    """Who signs requests, and the Region of the API."""

    credentials: Credentials
    region: str


class _Handler(BaseHTTPRequestHandler):
    """Sends each request on to the emulator, and its response back."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # headers and body leave in one write
    server: _Server

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = [(name, value) for name, value in self.headers.items() if name.lower() not in NOT_COPIED]
        host = self.server.host or self.headers.get("host", "")
        headers = self.server.sign(self.command, f"https://{host}{self.path}", headers, body)
        with closing(self.server.connect(host)) as connection:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in [("Host", host), *headers, ("x-forwarded-proto", "https")]:
                connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            self._send(connection.getresponse())

    # http.server's names
    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _answer  # noqa: N815

    def _send(self, response: HTTPResponse) -> None:
        body = response.read()
        self.send_response_only(response.status)
        for name, value in response.getheaders():
            if name.lower() not in NOT_COPIED:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Write nothing: the functions have their log."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, port: int, target: Callable[[], Target], host: str, sign: Sign, context: ssl.SSLContext | None
    ) -> None:
        self.host = host  # the host that the emulator sees; "" for the one of the request
        self.sign = sign
        self._target = target
        self._context = context
        super().__init__(("127.0.0.1", port), _Handler)

    def connect(self, host: str) -> HTTPConnection:
        """Connect to the emulator, or without one to the host itself."""
        target = self._target()
        if target is None:
            return HTTPSConnection(host, timeout=ANSWER_SECONDS)
        return HTTPConnection(*target, timeout=ANSWER_SECONDS)

    # socketserver's types
    def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        if self._context is None:
            super().finish_request(request, client_address)
            return
        with self._context.wrap_socket(request, server_side=True) as encrypted:
            super().finish_request(encrypted, client_address)

    def handle_error(self, *_arguments: object) -> None:
        """Write nothing: a client may disconnect at any time."""


@contextmanager
def signing(
    target: Target,
    endpoint: str,
    caller: Caller | None,
    *,
    port: int = 0,
    before: Callable[[bytes], object] = lambda _body: None,
) -> Iterator[str]:
    """Serve the API at the root of a free port for a block, and sign each request.

    Args:
        target: the emulator.
        endpoint: the output Endpoint of the stack, whose host the requests are signed for.
        caller: whose signature each request gets; None: none.
        port: the port; 0 for any free one.
        before: called with the body of each request, before it is sent.

    Yields:
        The URL for MCP clients.
    """
    address = urlsplit(endpoint)

    def sign(method: str, url: str, headers: Headers, body: bytes) -> Headers:
        before(body)
        if caller is None or any(name.lower() == "authorization" for name, _value in headers):
            return headers  # the caller has credentials of its own, such as a token
        asked = AWSRequest(method, url, data=body)
        SigV4Auth(caller.credentials, SERVICE, caller.region).add_auth(asked)
        return [*headers, *asked.headers.items()]

    with _serving(_Server(port, lambda: target, address.netloc, sign, None)) as served:
        yield f"http://127.0.0.1:{served}{address.path}"


@contextmanager
def tls(target: Callable[[], Target], certificate: Path) -> Iterator[int]:
    """Answer for port 443 of AWS's host names for a block, and yield the port.

    Args:
        target: says where the emulator is, which may start later.
        certificate: a file with the key and the certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def unchanged(_method: str, _url: str, headers: Headers, _body: bytes) -> Headers:
        return headers

    with _serving(_Server(0, target, "", unchanged, context)) as port:
        yield port


@contextmanager
def _serving(server: _Server) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
