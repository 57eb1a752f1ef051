"""An HTTPS site with its own certificate, as clients have one for their metadata document."""

from __future__ import annotations

import json
import socket
import ssl
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from mcp_functions.oauth.documents import Network
from tests.support.certificates import server_context, write_certificate
from tests.support.http_servers import listening

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOST = "desk.example"
PUBLIC = "93.184.216.34"  # a public address; the toolkit refuses private ones
PATH = "/oauth/client.json"
CLIENT = f"https://{HOST}{PATH}"


class Site:
    """An HTTPS site with its own certificate, and a network that connects every address to this site.

    Attributes:
        documents: path -> JSON, or the bytes of the body; other paths get 404.
        headers: the headers of every response.
        status: the HTTP status of every document.
        hosts: the Host header of each request.
        resolved: the names that were resolved, in order.
        connected: the addresses that were connected to, in order.
        addresses: the answers of the resolver; the last one is repeated.
        port: the site's port on loopback.
        authority: the file with the certificate that a client must trust.
    """

    def __init__(self, authority: str) -> None:
        self.documents: dict[str, Any] = {}
        self.headers = {"content-type": "application/json"}
        self.status = 200
        self.hosts: list[str] = []
        self.resolved: list[str] = []
        self.connected: list[str] = []
        self.addresses = [[PUBLIC]]
        self.port = 0
        self.authority = authority

    def resolve(self, host: str) -> list[str]:
        self.resolved.append(host)
        return self.addresses[min(len(self.resolved), len(self.addresses)) - 1]

    def connect(self, address: str, seconds: float) -> socket.socket:
        self.connected.append(address)
        return socket.create_connection(("127.0.0.1", self.port), timeout=seconds)

    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.authority)

    @property
    def network(self) -> Network:
        return Network(self.resolve, self.connect, self.tls)


@contextmanager
def serving(folder: Path, host: str = HOST) -> Iterator[Site]:
    """Serve a site until the block ends.

    Args:
        folder: gets the certificate.
        host: the name in the certificate.
    """
    certificate = write_certificate(folder, host)
    site = Site(str(certificate))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.hosts.append(self.headers["host"])
            document = site.documents.get(self.path)
            body = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(site.status if self.path in site.documents else 404)
            for header, value in {**site.headers, "content-length": str(len(body))}.items():
                self.send_header(header, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Write nothing."""

    with listening(Handler, server_context(certificate)) as address:
        site.port = int(address.rpartition(":")[2])
        yield site
