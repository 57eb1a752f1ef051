"""Chromium signs in: at our server over https, at a provider on another site that asks for a name, and at a client."""

from __future__ import annotations

from html import escape
from threading import Barrier
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.browser import chromium, https
from tests.browser.chromium import Tab
from tests.oauth.oauth_server import HOST_REDIRECT, LOOPBACK_REDIRECT, URL, OAuthServer, running_server, token_claims
from tests.support.consent import sealed_form_value

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.browser.chromium import DevTools
    from tests.browser.https import Sites

PAGE = "Allow access?"
ATTACKER = "https://attacker.example/page"
ALLOW, CANCEL = 'button[value="allow"]', 'button[value="deny"]'
TAB, ENTER, SPACE = 9, 13, 32
SECONDS = 30.0


@pytest.fixture(scope="module")
def server() -> Iterator[OAuthServer]:
    chromium.find_chromium()
    with running_server(asks_for_user=True) as running:
        yield running


@pytest.fixture(scope="module")
def sites(server: OAuthServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    with https.serving(server, tmp_path_factory.mktemp("sites")) as running:
        yield running


@pytest.fixture(scope="module")
def tools(sites: Sites, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevTools]:
    rules = f"--host-resolver-rules=MAP *.example:443 127.0.0.1:{sites.port}"
    profile = tmp_path_factory.mktemp("profile")
    with chromium.running(profile, "--ignore-certificate-errors", rules) as running:
        yield running


@pytest.fixture
def tab(tools: DevTools) -> Tab:
    return Tab(tools)


def link_of(server: OAuthServer, redirect: str = HOST_REDIRECT) -> tuple[str, str]:
    """Register a host; return its client id, and the URL to which it sends the browser."""
    client = server.new_client(redirect, client_name="Desk <b>&")
    return client, URL + server.authorize_url(client, redirect_uri=redirect)


def redirect_parameters(tab: Tab) -> dict[str, str]:
    tab.wait(f"location.href.startsWith({HOST_REDIRECT!r})")
    return dict(parse_qsl(urlsplit(tab.url).query))


def sign_in(tab: Tab, server: OAuthServer, name: str) -> None:
    tab.wait(f"location.origin == {server.provider.url!r} && document.querySelector('input[name=login_hint]')")
    tab.evaluate("document.querySelector('input[name=login_hint]').focus()")
    tab.type(name)
    tab.click("button")


def test_a_user_who_consents_and_signs_in_returns_to_the_host_with_a_code(
    server: OAuthServer, sites: Sites, tab: Tab
) -> None:
    client, url = link_of(server)
    tab.open(url, PAGE)
    tab.click(ALLOW)
    sign_in(tab, server, "ann")
    answer = redirect_parameters(tab)
    assert (answer["state"], answer["iss"]) == ("host-state", URL)
    tokens = server.redeem(client, answer["code"])
    assert token_claims(tokens.json["access_token"])["sub"] == "ann"
    assert sites.header("/authorize", "origin") == URL
    assert "__Host-mcp-browser-" in sites.header("/callback", "cookie")
    assert tab.complaints == []


def test_a_user_who_cancels_is_led_nowhere(server: OAuthServer, sites: Sites, tab: Tab) -> None:
    before = len(sites.requests)
    tab.open(link_of(server)[1], PAGE)
    tab.click(CANCEL)
    tab.wait("document.body.innerText.includes('Sign-in cancelled')")
    assert tab.url == f"{URL}/authorize"
    assert tab.complaints == []
    assert {request.header("host") for request in sites.requests[before:]} == {"mcp.example"}


def open_at_once(server: OAuthServer, sites: Sites, tools: DevTools, count: int) -> list[tuple[Tab, str]]:
    """Open consent pages in tabs of one new browser, whose requests overlap; return each tab with its client."""
    first = Tab(tools)
    tabs = [first, *(Tab(tools, beside=first) for _ in range(count - 1))]
    links = [link_of(server) for _ in tabs]
    sites.meeting = Barrier(count, timeout=SECONDS)
    for tab, (_client, url) in zip(tabs, links, strict=True):
        tab.begin(url)
    for tab in tabs:
        tab.wait(f"document.body && document.body.innerText.includes({PAGE!r})")
    sites.meeting = None
    return [(tab, client) for tab, (client, _url) in zip(tabs, links, strict=True)]


@pytest.mark.parametrize("count", [2, 3])
def test_applications_that_start_at_once_in_a_new_browser_all_get_a_code(
    server: OAuthServer, sites: Sites, tools: DevTools, count: int
) -> None:
    opened = open_at_once(server, sites, tools, count)
    assert len(opened[0][0].cookies()) == count
    for tab, _client in reversed(opened):
        tab.click(ALLOW)
    for number, (tab, client) in enumerate(opened):
        sign_in(tab, server, f"person-{number}")
        tokens = server.redeem(client, redirect_parameters(tab)["code"])
        assert token_claims(tokens.json["access_token"])["sub"] == f"person-{number}"


def test_going_back_and_a_double_click_on_allow_do_no_harm(server: OAuthServer, tab: Tab) -> None:
    client, url = link_of(server)
    tab.open(url, PAGE)
    tab.click(ALLOW)
    tab.wait(f"location.origin == {server.provider.url!r}")
    tab.evaluate("history.back()")
    tab.wait(f"document.body.innerText.includes({PAGE!r})")
    tab.evaluate(f"document.querySelector({ALLOW!r}).click(); document.querySelector({ALLOW!r}).click()")
    sign_in(tab, server, "ann")
    tokens = server.redeem(client, redirect_parameters(tab)["code"])
    assert token_claims(tokens.json["access_token"])["sub"] == "ann"


def test_a_second_tab_of_a_browser_gets_no_second_id(server: OAuthServer, tools: DevTools, tab: Tab) -> None:
    (first, url), (second, other_url) = link_of(server), link_of(server)
    tab.open(url, PAGE)
    beside = Tab(tools, beside=tab)
    beside.open(other_url, PAGE)
    assert len(tab.cookies()) == 1
    for each, client in ((beside, second), (tab, first)):
        each.click(ALLOW)
        sign_in(each, server, "ann")
        assert server.redeem(client, redirect_parameters(each)["code"]).status == 200


def test_a_browser_that_remembers_a_consent_asks_once_and_another_browser_asks_again(
    server: OAuthServer, tools: DevTools, tab: Tab
) -> None:
    _client, url = link_of(server)
    tab.open(url, PAGE)
    tab.click("input[name=remember]")
    tab.click(ALLOW)
    sign_in(tab, server, "ann")
    redirect_parameters(tab)
    tab.open(url, "Sign in")
    assert tab.url.startswith(server.provider.url)
    other = Tab(tools)
    other.open(url, PAGE)


def test_the_consent_page_for_a_local_program_has_no_checkbox_to_remember(server: OAuthServer, tab: Tab) -> None:
    tab.open(link_of(server, LOOPBACK_REDIRECT)[1], "a program on this computer")
    assert tab.evaluate("document.querySelectorAll('input[type=checkbox]').length") == 0


def test_another_site_cannot_frame_the_consent_page(server: OAuthServer, sites: Sites, tab: Tab) -> None:
    sites.pages[ATTACKER] = f"<p>Framed</p><iframe src='{escape(link_of(server)[1])}'></iframe>"
    tab.open(ATTACKER, "Framed")
    assert sites.header("/authorize", "sec-fetch-dest") == "iframe"
    (complaint,) = tab.complaints
    assert complaint.startswith(f"Framing '{URL}/' violates")
    assert "frame-ancestors 'none'" in complaint


def test_another_site_cannot_submit_the_consent_form(server: OAuthServer, sites: Sites, tab: Tab) -> None:
    tab.open(link_of(server)[1], PAGE)
    value = sealed_form_value(str(tab.evaluate("document.documentElement.outerHTML")))
    fields = f"<input name=request value='{value}'><input name=decision value=allow>"
    sites.pages[ATTACKER] = f"<p>Form</p><form method=post action='{URL}/authorize'>{fields}<button>Go</button></form>"
    tab.open(ATTACKER, "Form")
    tab.click("button")
    tab.wait("document.body.innerText.includes('Sign-in stopped')")
    assert sites.header("/authorize", "origin") == "https://attacker.example"
    assert "mcp-browser" not in sites.header("/authorize", "cookie")


def test_a_screen_reader_reads_the_client_and_the_redirect_host(server: OAuthServer, tab: Tab) -> None:
    tab.open(link_of(server)[1], PAGE)
    read = tab.accessible()
    for expected in (
        ("heading", PAGE),
        ("button", "Allow"),
        ("button", "Cancel"),
        ("checkbox", "Do not ask again in this browser"),
        ("StaticText", "Desk <b>&"),
        ("StaticText", "host.example"),
    ):
        assert expected in read
    assert tab.evaluate("document.documentElement.lang") == "en"


def test_the_keyboard_alone_is_enough(server: OAuthServer, tab: Tab) -> None:
    tab.open(link_of(server)[1], PAGE)
    tab.press("Tab", TAB)
    tab.press(" ", SPACE, " ")
    assert tab.evaluate("document.querySelector('input[name=remember]').checked")
    tab.press("Tab", TAB)
    assert tab.evaluate("document.activeElement.innerText") == "Allow"
    tab.press("Enter", ENTER, "\r")
    sign_in(tab, server, "ann")
    assert redirect_parameters(tab)["code"]


def test_combining_marks_in_a_name_do_not_cover_other_text_of_the_page(server: OAuthServer, tab: Tab) -> None:
    """Unicode stacks any number of marks above and below one letter."""
    pictures = []
    for name in ("A", "A" + "\u0301" * 79, "A" + "\u0323" * 79):
        client = server.new_client(client_name=name)
        tab.open(URL + server.authorize_url(client), PAGE)
        pictures.append([tab.picture(f"{each}:nth-of-type({row})") for each, row in (("dt", 1), ("dt", 2), ("dd", 2))])
    assert pictures == [pictures[0]] * 3


@pytest.mark.parametrize("width", [320, 1280])
def test_the_consent_page_fits_a_phone_and_has_its_style(
    server: OAuthServer, tab: Tab, tmp_path: Path, width: int
) -> None:
    tab.do("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
    tab.open(link_of(server)[1], PAGE)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width  # type: ignore[operator]
    assert tab.evaluate("getComputedStyle(document.querySelector('dd')).marginLeft") == "0px"
    assert tab.complaints == []
    tab.screenshot(tmp_path / "consent.png")  # for people to look at
