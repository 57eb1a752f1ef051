"""An HTTPS server for a browser: the front, and the pages of all other sites.

One port serves every host name, because Chromium's resolver maps all names to it.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

from mcp_functions_harness.api_gateway.events import Moment, event
from mcp_functions_harness.api_gateway.responses import response
from mcp_functions_harness.loopback import HttpRequest, HttpResponse
from tests.oauth.oauth_server import Context, OAuthServer
from tests.support.certificates import server_context, write_certificate
from tests.support.http_servers import listening

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from threading import Barrier


FRONT = "mcp.example"
HTML = (("content-type", "text/html; charset=utf-8"),)


@dataclass
class Sites:
    """The front of a server, and the pages of other sites.

    Attributes:
        server: its front answers; each request reaches a new process.
        port: of the server, on this machine.
        pages: HTML of other sites, by URL without its query. Any other URL of these sites has a page with "Landed".
        requests: all requests of the browser, the oldest first.
        meeting: requests for the consent page wait for each other here, and so overlap; None: nobody waits.
    """

    server: OAuthServer
    port: int = 0
    pages: dict[str, str] = field(default_factory=dict)
    requests: list[HttpRequest] = field(default_factory=list)
    meeting: Barrier | None = None

    def answer(self, request: HttpRequest) -> HttpResponse:
        host = request.header("host")
        path = request.target.partition("?")[0]
        self.requests.append(request)
        if self.meeting and request.method == "GET" and path == "/authorize":
            self.meeting.wait()
        if host != FRONT:
            return HttpResponse(200, HTML, self.pages.get(f"https://{host}{path}", "<p>Landed</p>").encode())
        moment = Moment.at(self.server.clock())
        answer = self.server.start_process()(event(request, path, moment), Context())
        return response(json.dumps(answer).encode(), moment)

    def header(self, path: str, name: str) -> str:
        """Return a header of the last request to a path of the front."""
        return [each for each in self.requests if self._is_at_front(each, path)][-1].header(name)

    def _is_at_front(self, request: HttpRequest, path: str) -> bool:
        return request.header("host") == FRONT and request.target.partition("?")[0] == path


@contextmanager
def serving(server: OAuthServer, folder: Path) -> Iterator[Sites]:
    """Serve the sites. The browser has to ignore the error about the certificate, which no authority signed."""
    sites = Sites(server)

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

        do_OPTIONS = do_POST = do_GET  # noqa: N815 - http.server's names

        def log_message(self, *_arguments: object) -> None:
            """Write nothing."""

    with listening(Handler, server_context(write_certificate(folder, FRONT))) as address:
        sites.port = int(address.rpartition(":")[2])
        yield sites
