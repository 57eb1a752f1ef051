"""An https site with a certificate of its own, as clients have one for their metadata document."""

from __future__ import annotations

import json
import socket
import ssl
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID

from mcp_functions.oauth.safe_fetch import Network

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOST, PUBLIC = "desk.example", "93.184.216.34"
PATH = "/oauth/client.json"
CLIENT = f"https://{HOST}{PATH}"


class Site:
    """An https site with a certificate of its own. The network of a test leads every public address to it."""

    def __init__(self, folder: Path, port: int) -> None:
        self.documents: dict[str, Any] = {}
        self.headers = {"content-type": "application/json"}
        self.status = 200
        self.hosts: list[str] = []
        self.asked: list[str] = []
        self.connected: list[str] = []
        self.addresses = [[PUBLIC]]
        self.port = port
        self.authority = str(folder / "certificate.pem")

    def resolve(self, host: str) -> list[str]:
        self.asked.append(host)
        return self.addresses[min(len(self.asked), len(self.addresses)) - 1]

    def connect(self, address: str, seconds: float) -> socket.socket:
        self.connected.append(address)
        return socket.create_connection(("127.0.0.1", self.port), timeout=seconds)

    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.authority)

    @property
    def network(self) -> Network:
        return Network(self.resolve, self.connect, self.tls)


def certificate(folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, SHA256())
    )
    (folder / "certificate.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(key.private_bytes(*plain))


@contextmanager
def serving(folder: Path) -> Iterator[Site]:
    certificate(folder)
    site: Site

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
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_arguments: object) -> None:
            """Say nothing: a client that refuses the certificate closes the connection."""

        def get_request(self) -> tuple[Any, Any]:
            connected, address = super().get_request()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
            return context.wrap_socket(connected, server_side=True), address

    server = Server(("127.0.0.1", 0), Handler)
    site = Site(folder, server.server_port)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
