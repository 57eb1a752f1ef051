"""A client id may be the URL of a metadata document, which the server fetches with limits.

`site` serves the document at CLIENT, and records the names and addresses that are asked of it. `server` is an OAuth
server whose network reaches only this site.
"""

from __future__ import annotations

import gzip
import json
import socket
import time
from itertools import cycle
from socketserver import StreamRequestHandler
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions.oauth import documents
from mcp_functions.oauth.documents import Network
from mcp_functions.oauth.https import NoAnswer
from mcp_functions.observability.lines import digest
from tests.oauth.oauth_server import HOST_REDIRECT, OAuthServer, changed_settings, running_server
from tests.oauth.signing import Signer
from tests.oauth.test_clients import assertion
from tests.support.certificates import server_context, write_certificate
from tests.support.http_servers import listening
from tests.support.https_site import CLIENT, HOST, PATH, PUBLIC, Site, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DOCUMENT = {"client_id": CLIENT, "client_name": "Desk", "redirect_uris": [HOST_REDIRECT]}


@pytest.fixture(name="site")
def running_site(tmp_path: Path) -> Iterator[Site]:
    with serving(tmp_path) as running:
        running.documents[PATH] = DOCUMENT
        yield running


@pytest.fixture(name="server")
def server_that_reaches_the_site(site: Site) -> Iterator[OAuthServer]:
    with running_server(network=site.network) as running:
        yield running


def refused(server: OAuthServer, client_id: str = CLIENT) -> bool:
    answer = server.authorize(client_id)
    assert answer.status in {200, 400}
    return answer.status == 400


def test_a_client_signs_in_with_a_client_id_metadata_document(server: OAuthServer, site: Site) -> None:
    page = server.authorize(CLIENT)
    assert HOST in page.body
    assert server.get_tokens(CLIENT)["access_token"]
    assert set(site.hosts) == {HOST}


def test_the_page_warns_of_a_redirect_to_another_site_than_that_of_the_document(
    server: OAuthServer, client: str, site: Site
) -> None:
    warning = "another site than the one that publishes"
    assert warning in server.authorize(CLIENT).body
    own = f"https://{HOST}:8443/callback"
    local = "http://127.0.0.1/callback"
    site.documents[PATH] = {**DOCUMENT, "redirect_uris": [own, local]}
    for redirect in (own, local):
        page = server.authorize(CLIENT, redirect_uri=redirect)
        assert page.status == 200
        assert warning not in page.body
    assert warning not in server.authorize(client).body


def test_a_document_stays_in_memory_for_some_minutes(server: OAuthServer, site: Site) -> None:
    server.keep_process()
    server.get_tokens(CLIENT)
    assert len(site.hosts) == 1
    server.clock.advance(301)
    server.authorize(CLIENT)
    assert len(site.hosts) == 2


def test_a_failed_fetch_of_a_document_stays_in_memory(server: OAuthServer, site: Site) -> None:
    server.keep_process()
    site.documents.clear()
    assert refused(server)
    assert refused(server)
    assert len(site.hosts) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": "https://desk.example/other.json"},
        {"client_id": None},
        {"redirect_uris": ["https://evil.example/callback"]},
        {"token_endpoint_auth_method": "client_secret_basic"},
        {"client_secret": "shared"},
        {"redirect_uris": None},
    ],
)
def test_a_document_of_another_client_is_refused(server: OAuthServer, site: Site, changed: dict[str, Any]) -> None:
    site.documents[PATH] = {**DOCUMENT, **changed}
    assert refused(server)


@pytest.mark.parametrize(
    "url",
    [
        "http://desk.example/oauth/client.json",
        "https://desk.example:9001/oauth/client.json",
        "https://desk.example:80/oauth/client.json",
        "https://desk.example",
        "https://desk.example/oauth/client.json#x",
        "https://user:password@desk.example/oauth/client.json",
        "https://93.184.216.34/oauth/client.json",
        "https://[2606:4700::1111]/oauth/client.json",
        "https://2130706433/oauth/client.json",
        "https://0x7f000001/oauth/client.json",
        "https://localhost/oauth/client.json",
        "https://DESK.example/oauth/client.json",
        "https://desk.example\\@evil.example/oauth/client.json",
        "https://desk.example/" + "x" * 600,
        "https://desk.example/other/../oauth/client.json",
        "https://desk.example/oauth/./client.json",
        "https://desk.example/other/%2e%2E/oauth/client.json",
        "https://desk.example/other/.%2e/oauth/client.json",
        "https://desk.example/oauth/..",
    ],
)
def test_a_url_that_is_not_plain_https_is_not_fetched(server: OAuthServer, site: Site, url: str) -> None:
    site.documents[PATH] = {**DOCUMENT, "client_id": url}
    assert refused(server, url)
    assert not site.connected


@pytest.mark.parametrize(
    "addresses",
    [
        ["169.254.169.254"],
        ["127.0.0.1"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::a9fe:a9fe"],
        ["10.0.0.1"],
        [PUBLIC, "10.0.0.1"],
        [],
    ],
)
def test_a_document_is_not_fetched_from_a_private_address(
    server: OAuthServer, site: Site, addresses: list[str]
) -> None:
    site.addresses = [addresses]
    assert refused(server)
    assert not site.connected


def test_the_server_fetches_from_the_address_that_it_has_checked(server: OAuthServer, site: Site) -> None:
    site.addresses = [[PUBLIC], ["127.0.0.1"]]
    assert not refused(server)
    assert site.resolved == [HOST]
    assert site.connected == [PUBLIC]


def test_a_redirect_is_not_followed(server: OAuthServer, site: Site) -> None:
    site.status, site.headers["location"] = 302, "http://169.254.169.254/latest/meta-data/"
    assert refused(server)
    assert len(site.connected) == 1


def test_a_document_may_have_16_kilobytes(server: OAuthServer, site: Site) -> None:
    size = len(json.dumps({**DOCUMENT, "more": ""}))
    site.documents[PATH] = {**DOCUMENT, "more": "x" * (16 * 1024 - size)}
    assert not refused(server)
    site.documents[PATH] = {**DOCUMENT, "more": "x" * (16 * 1024 - size + 1)}
    assert refused(server)


def test_a_compressed_document_is_not_unpacked(server: OAuthServer, site: Site) -> None:
    site.headers["content-encoding"] = "gzip"
    for packed in (gzip.compress(json.dumps(DOCUMENT).encode()), gzip.compress(b" " * 10_000_000)):
        site.documents[PATH] = packed
        assert refused(server)


@pytest.mark.parametrize("media", ["text/html", "text/plain", ""])
def test_a_document_that_is_not_json_is_refused(server: OAuthServer, site: Site, media: str) -> None:
    site.headers["content-type"] = media
    assert refused(server)


@pytest.mark.parametrize("body", [b"[]", b"{", b"", b"\xff", b"[" * 4000])
def test_a_document_that_is_no_object_is_refused(server: OAuthServer, site: Site, body: bytes) -> None:
    site.documents[PATH] = body
    assert refused(server)


def test_a_document_whose_keys_hold_nan_is_refused(server: OAuthServer, site: Site) -> None:
    signed = {"token_endpoint_auth_method": "private_key_jwt", "jwks": {"keys": [float("nan")]}}
    site.documents[PATH] = json.dumps({**DOCUMENT, **signed}).encode()
    assert refused(server)


def test_a_site_without_the_hosts_certificate_is_refused(server: OAuthServer, site: Site) -> None:
    url = "https://other.example/oauth/client.json"
    site.documents[PATH] = {**DOCUMENT, "client_id": url}
    assert refused(server, url)
    assert not site.hosts


def test_proxies_of_the_environment_are_not_used(
    server: OAuthServer, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert not refused(server)
    assert site.connected == [PUBLIC]


def test_fetching_a_document_takes_at_most_three_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "FETCH_SECONDS", 0.1)
    never = Event()

    def resolve(_host: str) -> list[str]:
        never.wait(30)
        return [PUBLIC]

    with pytest.raises(NoAnswer):
        documents.fetch(CLIENT, Network(resolve))
    never.set()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def connect(_address: str, seconds: float) -> socket.socket:
            return socket.create_connection(listening.getsockname(), seconds)

        with pytest.raises(NoAnswer):
            documents.fetch(CLIENT, Network(lambda _host: [PUBLIC], connect))


def dripping(text: bytes) -> type[StreamRequestHandler]:
    """Make a server that sends a text without end, a byte at a time."""

    class Drip(StreamRequestHandler):
        def handle(self) -> None:
            for byte in cycle(text):
                self.wfile.write(bytes([byte]))
                time.sleep(0.01)

    return Drip


@pytest.mark.parametrize("text", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\nx: y", b"HTTP"])
def test_a_slow_document_does_not_extend_the_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    monkeypatch.setattr(documents, "FETCH_SECONDS", 0.3)
    certificate = write_certificate(tmp_path, HOST)
    with listening(dripping(text), server_context(certificate)) as address:
        site = Site(str(certificate))
        site.port = int(address.rpartition(":")[2])
        with pytest.raises(NoAnswer):
            documents.fetch(CLIENT, site.network)
    assert site.connected == [PUBLIC]


def test_the_number_of_fetched_documents_is_limited_for_each_address(server: OAuthServer, site: Site) -> None:
    server.keep_process()
    statuses = [server.authorize(f"https://desk.example/{number}").status for number in range(200)]
    assert len(site.connected) == 10
    assert statuses.count(503) == 190
    assert server.new_browser("203.0.113.9").get(server.authorize_url(CLIENT)).status == 200


def test_a_client_with_a_document_may_sign_with_the_keys_at_its_url(server: OAuthServer, site: Site) -> None:
    signer, keys = Signer("ES256"), f"https://{HOST}/keys.json"
    signed = {"token_endpoint_auth_method": "private_key_jwt", "jwks_uri": keys}
    site.documents |= {PATH: {**DOCUMENT, **signed}, "/keys.json": signer.jwks}
    code = server.get_code(CLIENT)
    assert server.redeem(CLIENT, code).status == 401
    assert server.redeem(CLIENT, code, **assertion(Signer("ES256"), server, CLIENT)).status == 401
    assert server.redeem(CLIENT, code, **assertion(signer, server, CLIENT)).status == 200
    site.addresses = [["10.0.0.1"]]
    assert server.redeem(CLIENT, code, **assertion(signer, server, CLIENT)).status == 400


def test_metadata_documents_can_be_switched_off(site: Site) -> None:
    with running_server({"MCP_OAUTH_CLIENT_DOCUMENTS": "off"}, network=site.network) as server:
        assert refused(server)
        document = server.send("GET", "/.well-known/oauth-authorization-server").json
        assert document["client_id_metadata_document_supported"] is False
    assert not site.connected


def test_a_document_is_not_fetched_from_a_blocked_site(server: OAuthServer, site: Site) -> None:
    for blocked in (CLIENT, HOST, digest(CLIENT)):
        with changed_settings({"MCP_OAUTH_BLOCKED_CLIENTS": blocked}):
            assert refused(server)
    with changed_settings({"MCP_OAUTH_BLOCKED_CLIENTS": HOST}):
        assert refused(server, f"https://{HOST}:443{PATH}")
    assert not site.connected
    assert not refused(server)
