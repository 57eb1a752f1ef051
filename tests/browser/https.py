"""The front's and the host's https sites, behind one port. Chromium is told that all names lead there."""

from __future__ import annotations

import json
import ssl
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

from mcp_functions.local.api_gateway.events import Moment, event, response
from mcp_functions.local.loopback import HttpRequest, HttpResponse
from tests.oauth.world import Context
from tests.support.https_site import certificate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.oauth.world import World

FRONT = "mcp.example"
HTML = (("content-type", "text/html; charset=utf-8"),)


@dataclass
class Sites:
    """The front of a world, and the pages of other sites.

    Attributes:
        world: whose front answers, a new one for each request.
        port: of this machine.
        pages: of other sites, by URL without its query; any other page there says "Landed".
        requests: of browsers, in their order.

    """

    world: World
    port: int = 0
    pages: dict[str, str] = field(default_factory=dict)
    requests: list[HttpRequest] = field(default_factory=list)

    def answer(self, request: HttpRequest) -> HttpResponse:
        host = request.header("host")
        path = request.target.partition("?")[0]
        self.requests.append(request)
        if host != FRONT:
            return HttpResponse(200, HTML, self.pages.get(f"https://{host}{path}", "<p>Landed</p>").encode())
        moment = Moment.at(self.world.clock())
        made = self.world.front()(event(request, path, moment), Context())
        return response(json.dumps(made).encode(), moment)

    def header(self, path: str, name: str) -> str:
        """Return a header of the last request to a path of the front."""
        found = [one for one in self.requests if one.target.partition("?")[0] == path and one.header("host") == FRONT]
        return found[-1].header(name)


@contextmanager
def serving(world: World, folder: Path) -> Iterator[Sites]:
    """Serve the sites, with a certificate that nobody trusts."""
    certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    sites = Sites(world)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            length = int(self.headers.get("content-length", 0))
            body = self.rfile.read(length) if length else None
            answer = sites.answer(HttpRequest(self.command, self.path, tuple(self.headers.items()), body))
            self.send_response(answer.status)
            for name, value in (*answer.headers, ("content-length", str(len(answer.body)))):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        do_POST = do_GET  # noqa: N815 - http.server's name

        def log_message(self, *_arguments: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - socketserver's types
            with context.wrap_socket(request, server_side=True) as encrypted:
                super().finish_request(encrypted, client_address)

        def handle_error(self, *_arguments: object) -> None:
            """Say nothing: a browser opens connections that it does not use."""

    server = Server(("127.0.0.1", 0), Handler)
    sites.port = server.server_port
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield sites
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
