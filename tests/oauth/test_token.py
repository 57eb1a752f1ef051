"""/token checks client, redirect, PKCE and resource before it spends the provider's code. /revoke ends what it gave."""

from __future__ import annotations

import base64
from urllib.parse import quote_plus

import pytest

from mcp_functions.local.issuer import Behaviour
from tests.oauth import world as worlds
from tests.oauth.world import LOOPBACK_REDIRECT, RESOURCE, VERIFIER, World

OTHER = "https://other.example/callback"


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"redirect_uri": OTHER}, "invalid_grant"),
        ({"redirect_uri": None}, "invalid_grant"),
        ({"code_verifier": "another-verifier-another-verifier-another-ver"}, "invalid_grant"),
        ({"code_verifier": None}, "invalid_grant"),
        ({"code_verifier": "é" * 43}, "invalid_grant"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, "unsupported_grant_type"),
        ({"grant_type": None}, "unsupported_grant_type"),
    ],
)
def test_a_request_that_fails_does_not_spend_the_code(world: World, changed: dict[str, str | None], error: str) -> None:
    client = world.register()["client_id"]
    code = world.code(client).parameters["code"]
    refused = world.redeem(client, code, **changed)
    assert (refused.status, refused.json["error"]) == (400, error)
    assert refused.headers["cache-control"] == "no-store"
    assert world.redeem(client, code).status == 200


@pytest.mark.parametrize("code", ["ks1.AAAA", "code", None])
def test_a_code_that_the_front_did_not_seal_is_refused(world: World, code: str | None) -> None:
    assert world.redeem(world.register()["client_id"], code).json["error"] == "invalid_grant"


def test_a_code_is_of_use_once(world: World) -> None:
    client = world.register()["client_id"]
    code = world.code(client).parameters["code"]
    assert world.redeem(client, code).status == 200
    assert world.redeem(client, code).json["error"] == "invalid_grant"


def test_a_code_is_of_use_for_two_minutes(world: World) -> None:
    client = world.register()["client_id"]
    code = world.code(client).parameters["code"]
    world.clock.advance(121)
    assert world.redeem(client, code).json["error"] == "invalid_grant"


def test_a_code_of_another_client_is_refused(world: World) -> None:
    owner, thief = world.register()["client_id"], world.register()["client_id"]
    code = world.code(owner).parameters["code"]
    assert world.redeem(thief, code).json["error"] == "invalid_grant"
    assert world.redeem(owner, code).status == 200


def test_a_code_that_an_attacker_injects_does_not_match_the_victims_verifier(world: World) -> None:
    client = world.register()["client_id"]
    victims = "victim-victim-victim-victim-victim-victim-vic"
    attackers = world.code(client, person="mallory").parameters["code"]
    assert world.redeem(client, attackers, code_verifier=victims).json["error"] == "invalid_grant"


def test_the_port_of_a_loopback_redirect_is_that_of_the_authorization(world: World) -> None:
    client = world.register(LOOPBACK_REDIRECT)["client_id"]
    used = LOOPBACK_REDIRECT.replace("3000", "4000")
    code = world.code(client, redirect_uri=used).parameters["code"]
    assert world.redeem(client, code, redirect_uri=LOOPBACK_REDIRECT).json["error"] == "invalid_grant"
    assert world.redeem(client, code, redirect_uri=used).status == 200


def test_a_refresh_token_of_another_client_is_refused(world: World) -> None:
    owner, thief = world.register()["client_id"], world.register()["client_id"]
    token = world.tokens(owner)["refresh_token"]
    assert world.refresh(thief, token).json["error"] == "invalid_grant"
    assert world.refresh(owner, token).status == 200


def test_a_refresh_token_is_for_one_resource() -> None:
    with worlds.running() as world:
        client = world.register()["client_id"]
        token = world.tokens(client)["refresh_token"]
        assert world.refresh(client, token, resource="https://other.example/mcp").json["error"] == "invalid_target"
        with worlds.applied({"MCP_RESOURCE_URL": "https://mcp.example/other"}):
            answer = world.refresh(client, token, resource="https://mcp.example/other")
            assert answer.json["error"] == "invalid_grant"


def test_a_refreshed_token_may_have_less_scope_and_never_more(world: World) -> None:
    client = world.register()["client_id"]
    both = world.tokens(client, scope="items.read items.write")["refresh_token"]
    less = world.refresh(client, both, scope="items.read").json
    assert less["scope"] == "items.read"
    assert set(worlds.claims(less["access_token"])["scope"].split()) == {"openid", "items.read"}
    read = world.tokens(client, scope="items.read")["refresh_token"]
    assert world.refresh(client, read, scope="items.read items.write").json["error"] == "invalid_scope"
    assert world.refresh(client, read).status == 200  # the provider was not asked


def test_a_refresh_token_does_not_show_the_providers(world: World) -> None:
    token = world.tokens(world.register()["client_id"])["refresh_token"]
    assert token.startswith("ks1.")


def test_a_provider_that_does_not_rotate_keeps_its_refresh_token_valid() -> None:
    with worlds.running(behaviour=Behaviour(rotates_refresh_tokens=False)) as world:
        client = world.register()["client_id"]
        first = world.tokens(client)["refresh_token"]
        assert world.refresh(client, first).status == 200
        assert world.refresh(client, first).status == 200


def test_after_a_revocation_refreshing_fails(world: World) -> None:
    client = world.register()["client_id"]
    token = world.tokens(client)["refresh_token"]
    assert world.revoke(client, token).status == 200
    assert world.refresh(client, token).json["error"] == "invalid_grant"


def test_another_client_cannot_revoke_and_hears_nothing(world: World) -> None:
    owner, other = world.register()["client_id"], world.register()["client_id"]
    token = world.tokens(owner)["refresh_token"]
    assert world.revoke(other, token).status == 200
    assert world.revoke(other, "ks1.AAAA").status == 200
    assert world.refresh(owner, token).status == 200


def test_an_access_token_cannot_be_revoked_and_the_client_hears_it(world: World) -> None:
    client = world.register()["client_id"]
    assert world.revoke(client, world.tokens(client)["access_token"]).json["error"] == "unsupported_token_type"


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_a_client_with_a_secret_must_show_it_by_its_own_method(world: World, method: str) -> None:
    client = world.register(token_endpoint_auth_method=method)
    secret = client["client_secret"]
    pair = f"{quote_plus(client['client_id'])}:{quote_plus(secret)}"
    basic = {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    code = world.code(client["client_id"]).parameters["code"]
    assert world.redeem(client["client_id"], code).json["error"] == "invalid_client"
    assert world.redeem(client["client_id"], code, client_secret="wrong").status == 401  # noqa: S106
    ways = {
        "client_secret_basic": lambda: world.redeem(client["client_id"], code, basic),
        "client_secret_post": lambda: world.redeem(client["client_id"], code, client_secret=secret),
    }
    other = next(name for name in ways if name != method)
    assert ways[other]().status == 401
    assert ways[method]().status == 200


def test_a_request_with_two_ways_of_authentication_is_refused(world: World) -> None:
    client = world.register(token_endpoint_auth_method="client_secret_post")  # noqa: S106
    pair = f"{quote_plus(client['client_id'])}:{quote_plus(client['client_secret'])}"
    headers = {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    both = world.redeem(client["client_id"], "ks1.A", headers, client_secret=client["client_secret"])
    two = world.redeem("another", "ks1.A", headers)
    assert {both.json["error"], two.json["error"]} == {"invalid_request"}


def test_a_client_that_fails_at_basic_authentication_is_asked_for_it(world: World) -> None:
    answer = world.redeem("c", "ks1.A", {"authorization": "Bearer planted-secret"})
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Basic")


@pytest.mark.parametrize("media", ["application/json", "multipart/form-data", ""])
def test_a_token_request_that_is_no_form_is_refused(world: World, media: str) -> None:
    answer = world.send("POST", "/token", body="{}", headers={"content-type": media})
    assert (answer.status, answer.json["error"]) == (400, "invalid_request")


def test_a_parameter_of_a_form_that_is_there_twice_is_refused(world: World) -> None:
    form = f"grant_type=authorization_code&code=a&code=b&code_verifier={VERIFIER}"
    assert world.send("POST", "/token", form=form).json["error"] == "invalid_request"


def test_a_form_that_is_too_large_is_refused(world: World) -> None:
    assert world.send("POST", "/token", form="code=" + "x" * 40_000).status == 413


def test_a_token_for_the_query_is_no_request(world: World) -> None:
    assert world.send("GET", f"/token?grant_type=authorization_code&resource={RESOURCE}").status == 405


def test_a_token_response_is_not_stored_and_a_page_of_a_host_may_read_it(world: World) -> None:
    client = world.register()["client_id"]
    answer = world.redeem(client, world.code(client).parameters["code"])
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["pragma"] == "no-cache"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers
