"""The consent page comes before the redirect to the provider, and only its own form can give the consent.

`page` is the consent page for `client`, which `browser` shows. `browser.allow(page)` sends the form of the page.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from tests.oauth.oauth_server import (
    HOST_REDIRECT,
    LOOPBACK_REDIRECT,
    RESOURCE,
    URL,
    OAuthServer,
    changed_settings,
    running_server,
)

if TYPE_CHECKING:
    from tests.oauth.browser import Answer, Browser

COOKIE = "__Host-mcp-browser"
STOPPED = "Sign-in stopped"


@pytest.fixture
def browser(server: OAuthServer) -> Browser:
    return server.new_browser()


@pytest.fixture
def page(browser: Browser, client: str) -> Answer:
    return browser.authorize(client)


def test_the_page_names_the_host_of_the_redirect_the_scopes_and_the_server(server: OAuthServer, client: str) -> None:
    page = server.authorize(client, scope="items.write")
    assert page.status == 200
    for text in ("host.example", "Desk", "not verified", "items.write", RESOURCE, "Shop"):
        assert text in page.body


def test_the_server_does_not_call_the_provider_before_the_user_consents(page: Answer) -> None:
    assert page.status == 200
    assert not page.location


def test_markup_in_a_name_is_shown_as_text(server: OAuthServer) -> None:
    page = server.authorize(server.new_client(client_name='<script>alert(1)</script>"><b>'))
    assert "<script" not in page.body
    assert "&lt;script&gt;" in page.body


def test_hidden_and_bidirectional_characters_of_a_name_are_removed(server: OAuthServer) -> None:
    client = server.register(client_name="Cl\u200baude\u202e\u0007 \n Desktop" + "x" * 500)
    assert client["client_name"].startswith("Claude Desktopx")
    assert len(client["client_name"]) <= 80


def test_ignorable_characters_of_a_name_are_removed(server: OAuthServer) -> None:
    single = "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u2800\u3164\ufeff\uffa0"
    ends = (
        "\u180b\u180f\u200b\u202e\u2060\u206f\ufe00\ufe0f\ufff0\ufffb\U0001bca0\U0001bca3\U0001d173\U0001d17a\U000e0000"
    )
    for character in single + ends:
        assert server.register(client_name=f"Cl{character}aude")["client_name"] == "Claude", hex(ord(character))
    for name in ("Clau\u0301de", "\u53f0\u5f0f", "\U0001f600"):
        assert server.register(client_name=name)["client_name"] == name


def test_the_headers_of_the_consent_page_forbid_frames_loading_and_referrers(page: Answer) -> None:
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["referrer-policy"] == "same-origin"
    assert page.headers["cache-control"] == "no-store"
    assert "<script" not in page.body


def test_the_content_security_policy_allows_the_style_of_the_page(page: Answer) -> None:
    style = page.body.partition("<style>")[2].partition("</style>")[0]
    assert style
    style_hash = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{style_hash}'" in page.headers["content-security-policy"]


def test_the_cookie_is_http_only_and_bound_to_this_host(server: OAuthServer, client: str) -> None:
    (cookie,) = server.authorize(client).cookies
    assert cookie.startswith(f"{COOKIE}-{server.clock():.0f}-")
    for attribute in ("Path=/", "Secure", "HttpOnly", "SameSite=Lax"):
        assert attribute in cookie
    assert "Domain" not in cookie


@pytest.mark.parametrize("origin", ["https://evil.example", "null", f"{URL}.evil.example", "http://mcp.example"])
def test_a_form_of_another_site_gives_no_consent(browser: Browser, page: Answer, origin: str) -> None:
    answer = browser.post("/authorize", {"request": page.consent_request, "decision": "allow"}, origin=origin)
    assert answer.status == 403
    assert not answer.location


def test_a_form_without_an_origin_gives_no_consent(server: OAuthServer, browser: Browser, page: Answer) -> None:
    answer = server.send(
        "POST", "/authorize", form={"request": page.consent_request, "decision": "allow"}, cookies=browser.cookies
    )
    assert answer.status == 403


def test_a_form_submitted_by_a_page_of_another_site_gives_no_consent(browser: Browser, page: Answer) -> None:
    form = {"request": page.consent_request, "decision": "allow"}
    assert browser.post("/authorize", form, sec_fetch_site="cross-site").status == 403


def test_the_consent_page_of_one_browser_gives_no_consent_in_another(server: OAuthServer) -> None:
    page = server.authorize(server.new_client())
    victim = server.new_browser()
    victim.authorize(server.new_client())
    answer = victim.allow(page)
    assert answer.status == 400
    assert STOPPED in answer.body


def test_a_browser_without_a_cookie_gives_no_consent(server: OAuthServer, page: Answer) -> None:
    assert server.new_browser().allow(page).status == 403


@pytest.mark.parametrize("form", [{"decision": "deny"}, {"decision": "Allow"}, {}])
def test_a_user_who_cancels_stays_here_unless_the_client_is_trusted(
    browser: Browser, client: str, form: dict[str, str]
) -> None:
    def cancel(client_id: str) -> Answer:
        page = browser.authorize(client_id, prompt="consent")
        return browser.post("/authorize", {"request": page.consent_request, **form})

    stranger = cancel(client)
    assert (stranger.status, stranger.location) == (200, "")
    assert "host.example" not in stranger.body
    browser.allow(browser.authorize(client), remember="yes")
    listed = json.dumps([{"client_id": "desk", "redirect_uris": [HOST_REDIRECT]}])
    with changed_settings({"MCP_OAUTH_CLIENTS": listed}):
        for answer in (cancel(client), cancel("desk")):
            assert answer.status == 303  # no browser sends the form on to the host
            assert answer.location.startswith(HOST_REDIRECT)
            sent = answer.parameters
            assert (sent["error"], sent["state"], sent["iss"]) == ("access_denied", "host-state", URL)


def test_a_consent_page_expires_after_ten_minutes(server: OAuthServer, browser: Browser, page: Answer) -> None:
    server.clock.advance(601)
    assert browser.allow(page).status == 400


def test_a_browser_remembers_a_consent_if_the_user_chooses_so(
    server: OAuthServer, client: str, browser: Browser
) -> None:
    url = server.authorize_url(client)
    browser.allow(browser.get(url))
    assert browser.get(url).status == 200
    browser.allow(browser.get(url), remember="yes")
    again = browser.get(url)
    assert again.status == 303
    assert again.location.startswith(server.provider.url)


def test_a_remembered_consent_is_for_one_client_and_its_scopes(
    server: OAuthServer, client: str, browser: Browser
) -> None:
    browser.allow(browser.authorize(client), remember="yes")
    assert browser.authorize(client).status == 303
    assert browser.authorize(client, scope="items.write").status == 200
    assert browser.authorize(server.new_client()).status == 200


def test_a_remembered_consent_is_ignored_in_another_browser(server: OAuthServer, client: str, browser: Browser) -> None:
    browser.allow(browser.authorize(client), remember="yes")
    thief = server.new_browser()
    thief.authorize(client)
    thief.cookies["__Host-mcp-consents"] = browser.cookies["__Host-mcp-consents"]
    assert thief.authorize(client).status == 200


@pytest.mark.parametrize("redirect", [LOOPBACK_REDIRECT, "http://localhost/cb", "cursor://oauth/callback"])
def test_a_consent_for_a_loopback_client_is_never_remembered(server: OAuthServer, redirect: str) -> None:
    browser, client = server.new_browser(), server.new_client(redirect)
    url = server.authorize_url(client, redirect_uri=redirect)
    page = browser.get(url)
    assert 'name="remember"' not in page.body
    browser.allow(page, remember="yes")
    assert browser.get(url).status == 200


def test_a_client_may_request_the_consent_page_although_the_browser_remembers(client: str, browser: Browser) -> None:
    browser.allow(browser.authorize(client), remember="yes")
    for prompt in ("consent", "login consent"):
        assert browser.authorize(client, prompt=prompt).status == 200
    assert browser.authorize(client, prompt="select_account").parameters["prompt"] == "select_account"


def test_two_cookies_of_one_name_count_as_no_cookie(server: OAuthServer, browser: Browser, page: Answer) -> None:
    ((name, value),) = browser.cookies.items()
    event_cookies = {name: value, f" {name}": "x" * 43}
    form = {"request": page.consent_request, "decision": "allow"}
    assert server.send("POST", "/authorize", form=form, cookies=event_cookies, headers={"origin": URL}).status == 403


@pytest.mark.parametrize("space", ["\u00a0", "\u0085", "\u2000", "\u3000", "\x1c"])
def test_a_cookie_name_with_a_leading_unicode_space_is_another_name(
    server: OAuthServer, client: str, space: str
) -> None:
    attacker = server.new_browser()
    attacker.cookies[COOKIE] = "A" * 43
    page = attacker.authorize(client)
    victim = server.new_browser()
    victim.cookies[f"{space}{COOKIE}"] = attacker.cookies[COOKIE]
    assert victim.allow(page).status == 403
    back = victim.sign_in_at_provider(attacker.allow(page).location)
    assert victim.get(back).status == 403


def test_a_server_on_localhost_sets_a_cookie_without_secure() -> None:
    with running_server({"MCP_OAUTH_URL": "http://localhost:8080"}) as server:
        (cookie,) = server.authorize(server.new_client()).cookies
    assert cookie.startswith("mcp-browser-")
    assert "Secure" not in cookie
