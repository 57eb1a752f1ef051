"""The site of a client is silent for a while, and nobody is signed out.

A client that gets `invalid_client` deletes its registration and its tokens. `site` serves the metadata document and the
key set of CLIENT, and `Weather` makes it silent.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from mcp_functions.oauth.documents import Network
from tests.oauth.oauth_server import OAuthServer, running_server
from tests.oauth.signing import Signer
from tests.oauth.test_client_documents import DOCUMENT
from tests.oauth.test_clients import assertion
from tests.support.https_site import CLIENT, HOST, PATH, Site, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.oauth.browser import Answer

KEYS = "/keys.json"
DAY = 24 * 3600


class Weather:
    """A network that reaches a site, or does not."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.resolve_error: OSError | None = None
        self.connect_error: OSError | None = None
        self.passing: Callable[[], None] = lambda: None  # called before each connection

    def resolve(self, host: str) -> list[str]:
        if self.resolve_error:
            raise self.resolve_error
        return self._site.resolve(host)

    def connect(self, address: str, seconds: float) -> socket.socket:
        self.passing()
        if self.connect_error:
            self._site.connected.append(address)
            raise self.connect_error
        return self._site.connect(address, seconds)


@pytest.fixture(name="site")
def running_site(tmp_path: Path) -> Iterator[Site]:
    with serving(tmp_path) as running:
        running.documents[PATH] = DOCUMENT
        yield running


@pytest.fixture
def weather(site: Site) -> Weather:
    return Weather(site)


@pytest.fixture(name="server")
def server_in_that_weather(site: Site, weather: Weather) -> Iterator[OAuthServer]:
    with running_server(network=Network(weather.resolve, weather.connect, site.tls)) as running:
        running.keep_process()
        yield running


def refuse_names(weather: Weather, _site: Site) -> None:
    weather.resolve_error = socket.gaierror("no address")


def refuse_connections(weather: Weather, _site: Site) -> None:
    weather.connect_error = ConnectionRefusedError()


def time_out(weather: Weather, _site: Site) -> None:
    weather.connect_error = TimeoutError()


def answer_with(status: int) -> Callable[[Weather, Site], None]:
    def change(_weather: Weather, site: Site) -> None:
        site.status = status

    return change


def show_a_page(_weather: Weather, site: Site) -> None:
    site.headers["content-type"] = "text/html"


SILENT = {
    "no name": refuse_names, "refused": refuse_connections, "a timeout": time_out, "429": answer_with(429),
    "500": answer_with(500), "502": answer_with(502), "503": answer_with(503), "408": answer_with(408),
}  # fmt: skip
# It answers, but not with the document: a page during maintenance, a redirect to one, a firewall.
WRONG = {"a page": show_a_page, "302": answer_with(302), "403": answer_with(403), "401": answer_with(401)}


def error(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json["error"]


@pytest.mark.parametrize("kind", [*SILENT, *WRONG])
def test_the_last_document_is_used_while_a_site_has_trouble(
    server: OAuthServer, site: Site, weather: Weather, kind: str
) -> None:
    token = server.get_tokens(CLIENT)["refresh_token"]
    server.clock.advance(301)
    (SILENT | WRONG)[kind](weather, site)
    for _ in range(3):
        answer = server.refresh(CLIENT, token)
        assert answer.status == 200
        token = answer.json["refresh_token"]
    assert server.authorize(CLIENT).status == 200
    server.clock.advance(DAY)
    assert error(server.refresh(CLIENT, token))[1] != "invalid_client"
    assert server.refresh(CLIENT, token).status != 200


@pytest.mark.parametrize("kind", SILENT)
def test_without_a_last_document_the_client_is_asked_to_come_back(
    server: OAuthServer, site: Site, weather: Weather, kind: str
) -> None:
    code = server.get_code(CLIENT)
    token = server.redeem(CLIENT, code).json["refresh_token"]
    server.process = None
    server.keep_process()  # a container that does not know the document
    SILENT[kind](weather, site)
    answer = server.refresh(CLIENT, token)
    assert error(answer) == (503, "temporarily_unavailable")
    assert int(answer.headers["retry-after"]) <= 5
    assert server.authorize(CLIENT).status == 503
    weather.resolve_error = weather.connect_error = None
    site.status = 200
    server.clock.advance(6)
    assert server.refresh(CLIENT, token).status == 200


@pytest.mark.parametrize("kind", WRONG)
def test_a_site_that_answers_something_else_signs_nobody_out(
    server: OAuthServer, site: Site, weather: Weather, kind: str
) -> None:
    token = server.get_tokens(CLIENT)["refresh_token"]
    server.process = None
    WRONG[kind](weather, site)
    assert error(server.refresh(CLIENT, token)) == (400, "invalid_client_metadata")
    assert server.authorize(CLIENT).status == 400


@pytest.mark.parametrize("status", [404, 410])
def test_a_client_whose_document_is_gone_is_unknown(server: OAuthServer, site: Site, status: int) -> None:
    token = server.get_tokens(CLIENT)["refresh_token"]
    server.clock.advance(301)
    site.status = status
    assert error(server.refresh(CLIENT, token)) == (401, "invalid_client")


def test_a_document_of_another_client_is_no_document(server: OAuthServer, site: Site) -> None:
    token = server.get_tokens(CLIENT)["refresh_token"]
    server.clock.advance(301)
    site.documents[PATH] = {**DOCUMENT, "client_id": "https://desk.example/other.json"}
    assert error(server.refresh(CLIENT, token)) == (401, "invalid_client")


# The keys of a client


@pytest.fixture
def signer(site: Site) -> Signer:
    signer = Signer("ES256")
    signed = {"token_endpoint_auth_method": "private_key_jwt", "jwks_uri": f"https://{HOST}{KEYS}"}
    site.documents |= {PATH: {**DOCUMENT, **signed}, KEYS: signer.jwks}
    return signer


def redeem(server: OAuthServer, signer: Signer) -> Answer:
    code = server.get_code(CLIENT)
    return server.redeem(CLIENT, code, **assertion(signer, server, CLIENT))


@pytest.mark.parametrize("kind", SILENT)
def test_the_last_keys_are_used_while_their_site_is_silent(
    server: OAuthServer, site: Site, weather: Weather, signer: Signer, kind: str
) -> None:
    assert redeem(server, signer).status == 200
    server.clock.advance(301)
    SILENT[kind](weather, site)
    assert redeem(server, signer).status == 200


def test_a_new_key_of_a_client_is_fetched_once(server: OAuthServer, site: Site, signer: Signer) -> None:
    assert redeem(server, signer).status == 200
    new = Signer("ES256", key_id="new")
    site.documents[KEYS] = new.jwks
    before = len(site.hosts)
    assert redeem(server, new).status == 200
    assert redeem(server, new).status == 200
    assert len(site.hosts) == before + 1
    stranger = Signer("ES256", key_id="new")
    assert error(redeem(server, stranger)) == (401, "invalid_client")
    assert len(site.hosts) == before + 1


def test_a_new_key_is_not_unknown_while_its_site_is_silent(
    server: OAuthServer, weather: Weather, signer: Signer
) -> None:
    assert redeem(server, signer).status == 200
    weather.connect_error = TimeoutError()
    assert error(redeem(server, Signer("ES256", key_id="new"))) == (503, "temporarily_unavailable")
    assert redeem(server, signer).status == 200


def test_unknown_keys_cost_the_caller_its_fetches(server: OAuthServer, site: Site, signer: Signer) -> None:
    assert redeem(server, signer).status == 200
    before = len(site.hosts)
    for number in range(30):
        server.redeem(CLIENT, "ks1.A", **assertion(Signer("ES256", key_id=f"k{number}"), server, CLIENT))
    assert len(site.hosts) - before <= 10


# The time of a container


def test_silent_sites_keep_a_container_busy_for_a_fifth_of_its_time(server: OAuthServer, weather: Weather) -> None:
    busy = [0.0]

    def pass_three_seconds() -> None:
        busy[0] += 3
        server.clock.advance(3)

    weather.passing = pass_three_seconds
    weather.connect_error = TimeoutError()
    begun = server.clock()
    number = 0
    while server.clock() < begun + 300:
        number += 1
        browser = server.new_browser(f"198.51.100.{number % 200}")
        assert browser.authorize(f"https://desk.example/{number}").status == 503
        server.clock.advance(0.25)
    assert busy[0] <= 0.2 * 300 + 15


def test_a_document_in_memory_is_used_when_all_fetches_are_spent(server: OAuthServer, weather: Weather) -> None:
    assert server.authorize(CLIENT).status == 200
    server.clock.advance(301)
    weather.connect_error = TimeoutError()
    weather.passing = lambda: server.clock.advance(3)
    for number in range(20):
        server.new_browser(f"198.51.100.{number}").authorize(f"https://desk.example/{number}")
    weather.connect_error = None
    weather.passing = lambda: None
    assert server.new_browser("203.0.113.9").authorize(CLIENT).status == 200
