"""A sign-in as a conversation: a host, a browser and a provider. Each request reaches a process with empty memory."""

from __future__ import annotations

import pytest

from tests.oauth.oauth_server import (
    HOST_REDIRECT,
    LOOPBACK_REDIRECT,
    RESOURCE,
    URL,
    OAuthServer,
    changed_settings,
    running_server,
    token_claims,
)


def test_a_client_registers_signs_in_and_gets_the_token_of_the_provider(server: OAuthServer, client: str) -> None:
    tokens = server.get_tokens(client)
    payload = token_claims(tokens["access_token"])
    assert payload["iss"] == server.provider.url
    assert (payload["sub"], payload["aud"]) == ("ann", RESOURCE)
    assert (tokens["token_type"], tokens["scope"]) == ("Bearer", "items.read")
    assert set(tokens) == {"access_token", "token_type", "expires_in", "scope", "refresh_token"}


def test_the_redirect_to_the_client_has_its_state_and_the_issuer_of_the_server(
    server: OAuthServer, client: str
) -> None:
    answer = server.sign_in(client)
    assert answer.location.startswith(f"{HOST_REDIRECT}?code=ks1.")
    assert answer.parameters["state"] == "host-state"
    assert answer.parameters["iss"] == URL


def test_a_refresh_returns_a_new_token_and_invalidates_the_refresh_token(server: OAuthServer, client: str) -> None:
    first = server.get_tokens(client)
    second = server.refresh(client, first["refresh_token"])
    assert second.status == 200
    assert second.json["access_token"] != first["access_token"]
    assert server.refresh(client, first["refresh_token"]).json["error"] == "invalid_grant"
    assert server.refresh(client, second.json["refresh_token"]).status == 200


def test_without_configured_urls_both_servers_are_at_the_domain_of_the_request() -> None:
    with running_server({"MCP_OAUTH_URL": "", "MCP_RESOURCE_URL": ""}) as server:
        document = server.send("GET", "/.well-known/oauth-authorization-server").json
        assert (document["issuer"], document["protected_resources"]) == (URL, [RESOURCE])
        payload = token_claims(server.get_tokens(server.new_client())["access_token"])
        assert (payload["sub"], payload["aud"]) == ("ann", RESOURCE)
        page = server.authorize(server.new_client())
        assert all(cookie.startswith("__Host-") for cookie in page.cookies)
        assert page.cookies


def test_a_loopback_client_signs_in_at_any_port(server: OAuthServer) -> None:
    client = server.new_client(LOOPBACK_REDIRECT)
    redirect = LOOPBACK_REDIRECT.replace("3000", "51234")
    assert token_claims(server.get_tokens(client, redirect_uri=redirect)["access_token"])["sub"] == "ann"


def test_two_users_of_one_client_get_their_own_tokens(server: OAuthServer, client: str) -> None:
    people = [token_claims(server.get_tokens(client, person)["access_token"])["sub"] for person in ("ann", "ben")]
    assert people == ["ann", "ben"]


def test_a_user_has_the_same_subject_in_two_clients(server: OAuthServer, client: str) -> None:
    hosts = [client, server.new_client(LOOPBACK_REDIRECT)]
    first = server.get_tokens(hosts[0])
    second = server.get_tokens(hosts[1], redirect_uri=LOOPBACK_REDIRECT)
    subjects = {
        (token_claims(each["access_token"])["iss"], token_claims(each["access_token"])["sub"])
        for each in (first, second)
    }
    assert len(subjects) == 1
    assert server.refresh(hosts[0], second["refresh_token"]).json["error"] == "invalid_grant"


def test_a_new_generation_invalidates_every_sealed_value(server: OAuthServer, client: str) -> None:
    browser = server.new_browser()
    page, token = browser.authorize(client), server.get_tokens(client)["refresh_token"]
    back = browser.sign_in_at_provider(browser.allow(page).location)
    code = server.get_code(client)
    with changed_settings({"MCP_GENERATION": "2"}):
        assert browser.authorize(client).status == 400
        assert (browser.allow(page).status, browser.get(back).status) == (400, 400)
        assert {server.redeem(client, code).status, server.refresh(client, token).status} == {401}
        fresh = server.new_client()
        assert {server.redeem(fresh, code).status, server.refresh(fresh, token).status} == {400}
        assert server.get_tokens(fresh)["access_token"]


@pytest.mark.parametrize("seconds", [-30, 30])
def test_a_sign_in_completes_in_containers_whose_clocks_differ_by_half_a_minute(
    server: OAuthServer, client: str, seconds: int
) -> None:
    browser = server.new_browser()
    page = browser.authorize(client)
    server.clock.advance(seconds)
    allowed = browser.allow(page)
    server.clock.advance(-seconds)
    code = browser.get(browser.sign_in_at_provider(allowed.location)).parameters["code"]
    server.clock.advance(seconds)
    assert server.redeem(client, code).status == 200
