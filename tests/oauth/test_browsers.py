"""Browsers as they are: they open pages at once, twice, in other tabs, and go back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.oauth.oauth_server import URL, OAuthServer, changed_settings, running_server
from tests.oauth.test_client_documents import DOCUMENT
from tests.support.https_site import CLIENT, HOST, PATH, serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.oauth.browser import Answer, Browser

COOKIE = "__Host-mcp-browser"
DAY = 24 * 3600


def finish(browser: Browser, page: Answer) -> Answer:
    """Allow, sign in at the provider, and come back."""
    return browser.get(browser.sign_in_at_provider(browser.allow(page).location))


def open_at_once(server: OAuthServer, count: int, seconds: int = 0) -> tuple[Browser, list[Answer]]:
    """Open consent pages in a new browser before it has got a cookie; `seconds` pass after each."""
    browser = server.new_browser()
    pages = []
    for _ in range(count):
        server.clock.advance(seconds)
        pages.append(server.authorize(server.new_client()))  # sent without a cookie
    for page in pages:
        browser.keep(page)
    return browser, pages


@pytest.mark.parametrize("count", [2, 3, 8])
def test_pages_that_a_new_browser_opens_at_once_all_lead_to_a_code(server: OAuthServer, count: int) -> None:
    browser, pages = open_at_once(server, count)
    for page in reversed(pages):
        assert finish(browser, page).parameters["code"]


def test_one_id_of_a_browser_costs_a_container_without_memory_one_call(server: OAuthServer) -> None:
    browser, pages = open_at_once(server, 8)
    before = server.kms.count("Decrypt")
    assert browser.allow(pages[0]).status == 303
    assert server.kms.count("Decrypt") == before + 1


def test_a_second_tab_a_double_click_and_going_back_do_no_harm(server: OAuthServer, client: str) -> None:
    browser = server.new_browser()
    first = browser.authorize(client)
    second = browser.authorize(client)
    assert not second.cookies
    links = [browser.allow(page).location for page in (first, first, second, first)]
    for link in links:
        assert browser.get(browser.sign_in_at_provider(link)).parameters["code"]


def test_a_browser_keeps_eight_ids_and_the_oldest_goes_first(server: OAuthServer) -> None:
    browser, pages = open_at_once(server, 12, seconds=1)
    assert len(browser.cookies) == 12
    browser.authorize(server.new_client())
    assert len(browser.cookies) == 8
    assert [browser.allow(page).status for page in pages] == [400] * 4 + [303] * 8


def test_an_id_expires_after_thirty_days(server: OAuthServer, client: str) -> None:
    browser = server.new_browser()
    browser.authorize(client)
    (old,) = browser.cookies
    server.clock.advance(30 * DAY)
    assert browser.authorize(client).cookies[0].partition("=")[0] != old


def test_a_consent_is_remembered_for_all_ids_of_a_browser(server: OAuthServer, client: str) -> None:
    browser, pages = open_at_once(server, 3)
    browser.allow(browser.authorize(client), remember="yes")
    browser.allow(pages[0], remember="yes")
    assert browser.authorize(client).status == 303


def test_the_id_of_a_browser_of_version_0_1_0_counts(server: OAuthServer, client: str) -> None:
    browser = server.new_browser()
    browser.cookies[COOKIE] = "A" * 43
    page = browser.authorize(client)
    assert not page.cookies
    assert finish(browser, page).parameters["code"]
    page.body = page.body.replace(page.consent_request, page.consent_request.partition("~")[0])  # without a tag
    assert browser.allow(page).status == 303


@pytest.mark.parametrize(("count", "chars"), [(65, 1), (1, 8192), (50, 200)])
def test_too_many_cookies_are_refused_unread(server: OAuthServer, client: str, count: int, chars: int) -> None:
    cookies = {f"a{number}": "b" * chars for number in range(count)}
    page = server.send("GET", server.authorize_url(client), cookies=cookies)
    assert (page.status, page.cookies) == (400, [])


# A client or host that is blocked while somebody signs in


@pytest.mark.parametrize("blocked", ["the client", "the host of its redirect"])
def test_a_client_that_is_blocked_meanwhile_gets_no_further(
    server: OAuthServer, client: str, blocked: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "mcp_functions")
    browser = server.new_browser()
    page = browser.authorize(client)
    (name,) = {vars(record)["flow"] for record in caplog.records if vars(record).get("method") == "authorize"}
    back = browser.sign_in_at_provider(browser.allow(page).location)
    settings = {
        "the client": ("MCP_OAUTH_BLOCKED_CLIENTS", (name, client)),
        "the host of its redirect": ("MCP_OAUTH_BLOCKED_HOSTS", ("host.example",)),
    }
    variable, values = settings[blocked]
    for value in values:
        with changed_settings({variable: value}):
            for answer in (browser.allow(page), browser.get(back), browser.authorize(client)):
                assert (answer.status, answer.location) == (400, "")
    assert browser.get(back).parameters["code"]


@pytest.mark.parametrize("name", [CLIENT, HOST])
def test_a_client_whose_site_is_blocked_meanwhile_gets_no_further(tmp_path: Path, name: str) -> None:
    with serving(tmp_path) as site, running_server(network=site.network) as server:
        site.documents[PATH] = DOCUMENT
        browser = server.new_browser()
        page = browser.authorize(CLIENT)
        back = browser.sign_in_at_provider(browser.allow(page).location)
        with changed_settings({"MCP_OAUTH_BLOCKED_CLIENTS": name}):
            assert (browser.allow(page).status, browser.get(back).status) == (400, 400)
        assert browser.get(back).parameters["code"]


# A registration that ends


def test_a_registration_that_is_used_lives_on(server: OAuthServer) -> None:
    client = server.register(token_endpoint_auth_method="client_secret_post")  # noqa: S106
    id_, secret = client["client_id"], client["client_secret"]
    tokens = server.redeem(id_, server.get_code(id_), client_secret=secret).json
    for _ in range(8):
        server.clock.advance(60 * DAY)
        answer = server.refresh(id_, tokens["refresh_token"], client_secret=secret)
        assert answer.status == 200, answer.body
        tokens = answer.json
    assert server.refresh(id_, tokens["refresh_token"], client_secret="wrong").status == 401  # noqa: S106
    assert server.refresh(id_, "ks1.AAAA", client_secret=secret).json["error"] == "invalid_client"
    other = server.new_client()
    server.clock.advance(1)
    foreign = server.get_tokens(other)["refresh_token"]
    assert server.refresh(id_, foreign, client_secret=secret).json["error"] == "invalid_client"
    with changed_settings({"MCP_OAUTH_CLIENT_GENERATION": "2"}):
        assert server.refresh(id_, tokens["refresh_token"], client_secret=secret).json["error"] == "invalid_client"
    post = {"client_id": id_, "token": tokens["refresh_token"], "client_secret": secret}
    assert server.post("/revoke", post).status == 200


def test_the_page_says_what_to_do_when_a_registration_has_ended(server: OAuthServer, client: str) -> None:
    server.clock.advance(181 * DAY)
    page = server.authorize(client)
    assert page.status == 400
    assert "remove the server in your application and add it again" in page.body
    assert URL not in page.body
