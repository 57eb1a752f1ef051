"""A sign-in as a conversation: a host, a browser and a provider. Each request reaches a process with empty memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.oauth import world as worlds
from tests.oauth.world import HOST_REDIRECT, LOOPBACK_REDIRECT, RESOURCE, URL, claims

if TYPE_CHECKING:
    from tests.oauth.world import World


def test_a_host_registers_signs_in_and_gets_the_providers_token(world: World) -> None:
    client = world.register()["client_id"]
    tokens = world.tokens(client)
    payload = claims(tokens["access_token"])
    assert payload["iss"] == world.provider.url
    assert (payload["sub"], payload["aud"]) == ("ann", RESOURCE)
    assert (tokens["token_type"], tokens["scope"]) == ("Bearer", "items.read")
    assert set(tokens) == {"access_token", "token_type", "expires_in", "scope", "refresh_token"}


def test_the_redirect_to_the_host_has_its_state_and_the_fronts_issuer(world: World) -> None:
    answer = world.code(world.register()["client_id"])
    assert answer.location.startswith(f"{HOST_REDIRECT}?code=ks1.")
    assert answer.parameters["state"] == "host-state"
    assert answer.parameters["iss"] == URL


def test_a_refreshed_token_is_another_and_the_old_refresh_token_is_spent(world: World) -> None:
    client = world.register()["client_id"]
    first = world.tokens(client)
    second = world.refresh(client, first["refresh_token"])
    assert second.status == 200
    assert second.json["access_token"] != first["access_token"]
    assert world.refresh(client, first["refresh_token"]).json["error"] == "invalid_grant"
    assert world.refresh(client, second.json["refresh_token"]).status == 200


def test_without_configured_urls_the_front_and_the_server_are_at_the_domain_of_the_request() -> None:
    with worlds.running({"MCP_OAUTH_URL": "", "MCP_RESOURCE_URL": ""}) as world:
        document = world.send("GET", "/.well-known/oauth-authorization-server").json
        assert (document["issuer"], document["protected_resources"]) == (URL, [RESOURCE])
        payload = claims(world.tokens(world.register()["client_id"])["access_token"])
        assert (payload["sub"], payload["aud"]) == ("ann", RESOURCE)
        page = world.browser().get(world.authorize_url(world.register()["client_id"]))
        assert all(cookie.startswith("__Host-") for cookie in page.cookies)
        assert page.cookies


def test_a_program_on_this_machine_signs_in_at_any_port(world: World) -> None:
    client = world.register(LOOPBACK_REDIRECT)["client_id"]
    redirect = LOOPBACK_REDIRECT.replace("3000", "51234")
    assert claims(world.tokens(client, redirect_uri=redirect)["access_token"])["sub"] == "ann"


def test_two_people_on_one_host_get_tokens_of_their_own(world: World) -> None:
    client = world.register()["client_id"]
    people = [claims(world.tokens(client, person)["access_token"])["sub"] for person in ("ann", "ben")]
    assert people == ["ann", "ben"]


def test_one_person_on_two_hosts_is_one_subject(world: World) -> None:
    hosts = [world.register()["client_id"], world.register(LOOPBACK_REDIRECT)["client_id"]]
    first = world.tokens(hosts[0])
    second = world.tokens(hosts[1], redirect_uri=LOOPBACK_REDIRECT)
    subjects = {(claims(each["access_token"])["iss"], claims(each["access_token"])["sub"]) for each in (first, second)}
    assert len(subjects) == 1
    assert world.refresh(hosts[0], second["refresh_token"]).json["error"] == "invalid_grant"


def test_another_generation_of_the_deployment_ends_every_sealed_value(world: World) -> None:
    browser, client = world.browser(), world.register()["client_id"]
    page, token = browser.get(world.authorize_url(client)), world.tokens(client)["refresh_token"]
    back = browser.sign_in_at_provider(browser.allow(page).location)
    code = world.code(client).parameters["code"]
    with worlds.applied({"MCP_GENERATION": "2"}):
        assert browser.get(world.authorize_url(client)).status == 400
        assert (browser.allow(page).status, browser.get(back).status) == (400, 400)
        assert {world.redeem(client, code).status, world.refresh(client, token).status} == {401}
        fresh = world.register()["client_id"]
        assert {world.redeem(fresh, code).status, world.refresh(fresh, token).status} == {400}
        assert world.tokens(fresh)["access_token"]


@pytest.mark.parametrize("seconds", [-30, 30])
def test_containers_whose_clocks_differ_by_half_a_minute_finish_a_sign_in(world: World, seconds: int) -> None:
    browser, client = world.browser(), world.register()["client_id"]
    page = browser.get(world.authorize_url(client))
    world.clock.advance(seconds)
    allowed = browser.allow(page)
    world.clock.advance(-seconds)
    code = browser.get(browser.sign_in_at_provider(allowed.location)).parameters["code"]
    world.clock.advance(seconds)
    assert world.redeem(client, code).status == 200
