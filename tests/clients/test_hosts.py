"""Official clients sign in at the front and complete a conversation, although a new process serves each request.

The front keeps nothing in memory that another request needs. In this process each request gets a new front; in the
Lambda runtime each is a process that ends with its response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness import Harness, catalog
from tests.clients.hosts import HOSTS
from tests.clients.signing_in import CALLBACK
from tests.clients.test_oauth import FUNCTIONS
from tests.oauth.oauth_server import token_claims
from tests.support import https_site, modes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.clients.hosts import Host
    from tests.support.https_site import Site

INVALID_STATE_MESSAGE = "-32602: Invalid or expired requestState"
BOOKED = "Rome, window"
DOCUMENT, REGISTRATION = "by its metadata document", "by registration"
FRONT = """
import socket
import ssl
from mcp_functions import serve_oauth
from mcp_functions.oauth.documents import Network

def connect(_address, seconds):
    return socket.create_connection(("127.0.0.1", {port}), timeout=seconds)

def tls():
    return ssl.create_default_context(cafile={authority!r})

def handler(event, context):
    return serve_oauth(network=Network(lambda _host: ["{public}"], connect, tls))(event, context)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with https_site.serving(tmp_path_factory.mktemp("site")) as running:
        document = {"client_id": https_site.CLIENT, "client_name": "Desk", "redirect_uris": [CALLBACK]}
        running.documents[https_site.PATH] = document
        yield running


@pytest.fixture(scope="module")
def functions(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop") / "functions"
    front = FRONT.format(port=site.port, authority=site.authority, public=https_site.PUBLIC)
    for name, app in {**FUNCTIONS, "oauth": front}.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "app.py").write_text(app, encoding="utf-8")
    catalog.write(folder, catalog.generate(folder))
    return folder


@pytest.fixture(scope="module")
def harness(functions: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    with Harness(functions, state_dir=tmp_path_factory.mktemp("state"), auth="oauth") as running:
        yield running


class Seats:
    """People who sit at hosts."""

    def __init__(self) -> None:
        self.taken: list[Host] = []

    def take(self, kind: str, url: str, name: str, how: str = REGISTRATION) -> Host:
        self.taken.append(HOSTS[kind](url, name, https_site.CLIENT if how == DOCUMENT else ""))
        return self.taken[-1]


@pytest.fixture
def seats() -> Iterator[Seats]:
    seats = Seats()
    yield seats
    for host in seats.taken:
        host.close()


of_both_kinds = pytest.mark.parametrize("kind", HOSTS)
in_both_ways = pytest.mark.parametrize("how", [REGISTRATION, DOCUMENT])


@of_both_kinds
@in_both_ways
def test_a_client_signs_in_and_calls_a_tool(harness: Harness, seats: Seats, kind: str, how: str) -> None:
    ann = seats.take(kind, harness.url, "ann", how)
    assert ann.go_on(ann.begin()) == BOOKED
    seen = ann.seen()
    assert ("POST /register" in seen) == (how == REGISTRATION)
    assert seen.count("POST /token authorization_code") == 1
    assert harness.issuer
    told = token_claims(ann.access_token)
    assert (told["iss"], told["sub"], told["aud"]) == (harness.issuer.url, "ann", harness.url)
    (page,) = ann.pages
    assert ("desk.example" in page) == (how == DOCUMENT)
    assert "127.0.0.1 (a program on this computer)" in page


@of_both_kinds
@in_both_ways
def test_a_token_refreshed_in_mid_conversation_changes_nothing(
    harness: Harness,
    seats: Seats,
    kind: str,
    how: str,
) -> None:
    ann = seats.take(kind, harness.url, "ann", how)
    state, first = ann.begin(), ann.access_token
    ann.seen()
    assert harness.issuer
    ann.swap_token(harness.issuer.token(subject="ann", exp=1))
    assert ann.go_on(state) == BOOKED
    assert ann.access_token != first
    assert [what for what in ann.seen() if "/token" in what] == ["POST /token refresh_token"]
    assert len(ann.pages) == 1


@of_both_kinds
def test_another_person_cannot_continue_a_conversation(harness: Harness, seats: Seats, kind: str) -> None:
    ann, ben = seats.take(kind, harness.url, "ann"), seats.take(kind, harness.url, "ben")
    state = ann.begin()
    assert ben.go_on(state) == INVALID_STATE_MESSAGE
    assert ann.go_on(state) == BOOKED


@pytest.mark.parametrize(("desk", "phone"), [("Python", "TypeScript"), ("TypeScript", "Python")])
def test_a_person_continues_a_conversation_from_another_host(
    harness: Harness,
    seats: Seats,
    desk: str,
    phone: str,
) -> None:
    state = seats.take(desk, harness.url, "ann").begin()
    other = seats.take(phone, harness.url, "ann", DOCUMENT)
    assert other.go_on(state) == BOOKED


@of_both_kinds
@in_both_ways
def test_a_sign_in_completes_if_every_process_ends_after_its_response(
    functions: Path,
    tmp_path: Path,
    seats: Seats,
    kind: str,
    how: str,
) -> None:
    modes.skip_without_runtime()
    with Harness(functions, state_dir=tmp_path, auth="oauth", runtime=True, reuse=False) as running:
        ann = seats.take(kind, running.url, "ann", how)
        state = ann.begin()
        ann.swap_token(running.issuer.token(subject="ann", exp=1) if running.issuer else "")
        assert ann.go_on(state) == BOOKED
        pids = [invocation.pid for invocation in running.invocations]
        fronts = [invocation for invocation in running.invocations if invocation.folder == "oauth"]
    assert None not in pids
    assert len(set(pids)) == len(pids)
    assert len(fronts) >= 6  # metadata, the page, its form, the provider's answer, the code, the refresh
