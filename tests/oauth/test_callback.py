"""The provider redirects the browser to `/callback`, which accepts only the browser and the provider of the sign-in.

`browser` has the consent of its user, who signed in as "ann" at the provider. `url` is the URL to which the provider
redirects this browser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from tests.oauth.oauth_server import HOST_REDIRECT, URL, OAuthServer, token_claims

if TYPE_CHECKING:
    from tests.oauth.browser import Browser


@pytest.fixture
def browser(server: OAuthServer) -> Browser:
    return server.new_browser()


@pytest.fixture
def url(browser: Browser, client: str) -> str:
    return browser.sign_in_at_provider(browser.allow(browser.authorize(client)).location)


def parameters_of(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


def changed(url: str, **changes: str | None) -> str:
    """Change parameters of a URL; None removes one."""
    parameters = {**parameters_of(url), **changes}
    return f"/callback?{urlencode({name: value for name, value in parameters.items() if value is not None})}"


def test_a_callback_in_another_browser_is_refused(server: OAuthServer, client: str, url: str) -> None:
    victim = server.new_browser()
    victim.authorize(client)
    answer = victim.get(url)
    assert answer.status == 400
    assert not answer.location


def test_a_callback_without_a_cookie_is_refused(server: OAuthServer, url: str) -> None:
    assert server.new_browser().get(url).status == 403


@pytest.mark.parametrize("issuer", ["https://evil.example", "{provider}/", URL])
def test_a_callback_of_another_issuer_is_refused(server: OAuthServer, browser: Browser, url: str, issuer: str) -> None:
    answer = browser.get(changed(url, iss=issuer.format(provider=server.provider.url)))
    assert answer.status == 400
    assert not answer.location


def test_a_callback_without_an_issuer_is_refused_if_the_provider_always_sends_it(browser: Browser, url: str) -> None:
    assert browser.get(changed(url, iss=None)).status == 400


@pytest.mark.parametrize("state", [None, "state", "ks1.AAAA"])
def test_a_callback_without_the_state_of_the_server_is_refused(browser: Browser, url: str, state: str | None) -> None:
    assert browser.get(changed(url, state=state)).status == 400


def test_a_callback_is_refused_after_ten_minutes(server: OAuthServer, browser: Browser, url: str) -> None:
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
def test_the_client_gets_an_error_if_the_provider_does_not_sign_the_user_in(
    browser: Browser, url: str, error: str, forwarded: str
) -> None:
    answer = browser.get(changed(url, code=None, error=error, error_description="planted-secret"))
    assert answer.location.startswith(HOST_REDIRECT)
    assert answer.parameters["error"] == forwarded
    assert answer.parameters["iss"] == URL
    assert "planted" not in answer.location


@pytest.mark.parametrize("code", [None, "c" * 4097, "\U0001f600" * 1000, '"', "a b", "\x00"])
def test_the_client_gets_an_error_for_a_missing_or_malformed_code_of_the_provider(
    browser: Browser, url: str, code: str | None
) -> None:
    assert browser.get(changed(url, code=code)).parameters["error"] == "server_error"


def test_a_code_of_the_provider_may_have_4096_characters(browser: Browser, url: str) -> None:
    assert browser.get(changed(url, code="c" * 4096)).parameters["code"]


def test_the_code_of_the_client_does_not_show_the_code_of_the_provider(browser: Browser, url: str) -> None:
    assert parameters_of(url)["code"] not in browser.get(url).location


def test_a_code_of_one_sign_in_is_refused_in_another_of_the_same_browser(
    server: OAuthServer, browser: Browser, client: str, url: str
) -> None:
    url_of_ben = browser.sign_in_at_provider(browser.allow(browser.authorize(client)).location, "ben")
    mixed = browser.get(changed(url, code=parameters_of(url_of_ben)["code"]))
    assert server.redeem(client, mixed.parameters["code"]).json["error"] == "invalid_grant"
    unmixed = server.redeem(client, browser.get(url).parameters["code"])
    assert token_claims(unmixed.json["access_token"])["sub"] == "ann"


def test_two_sign_ins_in_two_tabs_of_one_browser_both_complete(server: OAuthServer, browser: Browser) -> None:
    clients = {"ann": server.new_client(), "ben": server.new_client()}
    pages = {person: browser.authorize(client) for person, client in clients.items()}
    links = {person: browser.allow(page).location for person, page in pages.items()}
    urls = {person: browser.sign_in_at_provider(link, person) for person, link in links.items()}
    for person in ("ben", "ann"):
        code = browser.get(urls[person]).parameters["code"]
        tokens = server.redeem(clients[person], code).json
        assert token_claims(tokens["access_token"])["sub"] == person
