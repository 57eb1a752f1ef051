"""The provider's answer counts only in the browser that began, and only from this provider."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from tests.oauth.oauth_server import HOST_REDIRECT, URL, Browser, OAuthServer, token_claims


def began(server: OAuthServer, browser: Browser) -> str:
    """Return the address to which the provider sends the browser back."""
    page = browser.authorize(server.new_client())
    return browser.sign_in_at_provider(browser.allow(page).location)


def changed(url: str, **parameters: str | None) -> str:
    merged = {**dict(parse_qsl(urlsplit(url).query)), **parameters}
    return f"/callback?{urlencode({name: value for name, value in merged.items() if value is not None})}"


def test_a_callback_that_an_attacker_sends_to_a_victim_is_refused(server: OAuthServer, client: str) -> None:
    url, victim = began(server, server.new_browser()), server.new_browser()
    victim.authorize(client)
    answer = victim.get(url)
    assert answer.status == 400
    assert not answer.location


def test_a_callback_without_a_cookie_is_refused(server: OAuthServer) -> None:
    assert server.new_browser().get(began(server, server.new_browser())).status == 403


def test_a_callback_of_another_issuer_is_refused(server: OAuthServer) -> None:
    browser = server.new_browser()
    url = began(server, browser)
    for issuer in ("https://evil.example", f"{server.provider.url}/", URL):
        answer = browser.get(changed(url, iss=issuer))
        assert answer.status == 400
        assert not answer.location


def test_a_callback_without_an_issuer_is_refused_where_the_provider_always_says_it(server: OAuthServer) -> None:
    browser = server.new_browser()
    assert browser.get(changed(began(server, browser), iss=None)).status == 400


@pytest.mark.parametrize("state", [None, "state", "ks1.AAAA"])
def test_a_callback_without_the_fronts_state_is_refused(server: OAuthServer, state: str | None) -> None:
    browser = server.new_browser()
    assert browser.get(changed(began(server, browser), state=state)).status == 400


def test_a_callback_is_of_use_for_ten_minutes(server: OAuthServer) -> None:
    browser = server.new_browser()
    url = began(server, browser)
    server.clock.advance(601)
    assert browser.get(url).status == 400


@pytest.mark.parametrize(
    ("error", "forwarded"),
    [
        ("access_denied", "access_denied"),
        ("temporarily_unavailable", "temporarily_unavailable"),
        ("invalid_scope", "server_error"),
        ("<script>", "server_error"),
    ],
)
def test_the_host_hears_that_the_provider_did_not_sign_the_user_in(
    server: OAuthServer, error: str, forwarded: str
) -> None:
    browser = server.new_browser()
    url = changed(began(server, browser), code=None, error=error, error_description="planted-secret")
    answer = browser.get(url)
    assert answer.location.startswith(HOST_REDIRECT)
    assert (answer.parameters["error"], answer.parameters["iss"]) == (forwarded, URL)
    assert "planted" not in answer.location


def test_a_code_that_is_missing_or_too_long_is_an_error_for_the_host(server: OAuthServer) -> None:
    browser = server.new_browser()
    url = began(server, browser)
    assert browser.get(changed(url, code=None)).parameters["error"] == "server_error"
    for code in ("c" * 4097, "\U0001f600" * 1000, '"', "a b", "\x00"):
        assert browser.get(changed(url, code=code)).parameters["error"] == "server_error"
    assert browser.get(changed(url, code="c" * 4096)).parameters["code"]


def test_a_host_gets_a_code_that_does_not_show_the_providers(server: OAuthServer) -> None:
    browser = server.new_browser()
    url = began(server, browser)
    provided = dict(parse_qsl(urlsplit(url).query))["code"]
    assert provided not in browser.get(url).location


def test_a_code_of_one_sign_in_is_of_no_use_in_another_of_the_same_browser(server: OAuthServer, client: str) -> None:
    browser = server.new_browser()
    first, second = (browser.allow(browser.authorize(client)) for _ in range(2))
    anns = browser.sign_in_at_provider(first.location, "ann")
    bens = browser.sign_in_at_provider(second.location, "ben")
    ben_code = dict(parse_qsl(urlsplit(bens).query))["code"]
    mixed = browser.get(changed(anns, code=ben_code)).parameters["code"]
    assert server.redeem(client, mixed).json["error"] == "invalid_grant"
    own = server.redeem(client, browser.get(anns).parameters["code"])
    assert token_claims(own.json["access_token"])["sub"] == "ann"


def test_two_sign_ins_in_two_tabs_of_one_browser_do_not_disturb_each_other(server: OAuthServer) -> None:
    browser, clients = server.new_browser(), [server.new_client() for _ in range(2)]
    pages = [browser.authorize(client) for client in clients]
    links = [browser.allow(page).location for page in pages]
    backs = [browser.sign_in_at_provider(link, person) for link, person in zip(links, ("ann", "ben"), strict=True)]
    codes = [browser.get(back).parameters["code"] for back in reversed(backs)]
    tokens = [server.redeem(*pair).json["access_token"] for pair in zip(reversed(clients), codes, strict=True)]
    assert [token_claims(token)["sub"] for token in tokens] == ["ben", "ann"]
