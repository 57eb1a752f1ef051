"""/token checks client, redirect, PKCE and resource before it spends the provider's code. /revoke ends what it gave."""

from __future__ import annotations

import base64
from urllib.parse import quote_plus

import pytest

from mcp_functions.local.issuer import Behaviour
from tests.oauth.oauth_server import (
    LOOPBACK_REDIRECT,
    RESOURCE,
    VERIFIER,
    OAuthServer,
    changed_settings,
    running_server,
    token_claims,
)

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
def test_a_request_that_fails_does_not_spend_the_code(
    server: OAuthServer, changed: dict[str, str | None], error: str
) -> None:
    client = server.new_client()
    code = server.get_code(client)
    refused = server.redeem(client, code, **changed)
    assert (refused.status, refused.json["error"]) == (400, error)
    assert refused.headers["cache-control"] == "no-store"
    assert server.redeem(client, code).status == 200


@pytest.mark.parametrize("code", ["ks1.AAAA", "code", None])
def test_a_code_that_the_front_did_not_seal_is_refused(server: OAuthServer, code: str | None) -> None:
    assert server.redeem(server.new_client(), code).json["error"] == "invalid_grant"


def test_a_code_is_of_use_once(server: OAuthServer) -> None:
    client = server.new_client()
    code = server.get_code(client)
    assert server.redeem(client, code).status == 200
    assert server.redeem(client, code).json["error"] == "invalid_grant"


def test_a_code_is_of_use_for_two_minutes(server: OAuthServer) -> None:
    client = server.new_client()
    code = server.get_code(client)
    server.clock.advance(121)
    assert server.redeem(client, code).json["error"] == "invalid_grant"


def test_a_code_of_another_client_is_refused(server: OAuthServer) -> None:
    owner, thief = server.new_client(), server.new_client()
    code = server.get_code(owner)
    assert server.redeem(thief, code).json["error"] == "invalid_grant"
    assert server.redeem(owner, code).status == 200


def test_a_code_that_an_attacker_injects_does_not_match_the_victims_verifier(server: OAuthServer) -> None:
    client = server.new_client()
    victims = "victim-victim-victim-victim-victim-victim-vic"
    attackers = server.get_code(client, person="mallory")
    assert server.redeem(client, attackers, code_verifier=victims).json["error"] == "invalid_grant"


def test_the_port_of_a_loopback_redirect_is_that_of_the_authorization(server: OAuthServer) -> None:
    client = server.new_client(LOOPBACK_REDIRECT)
    used = LOOPBACK_REDIRECT.replace("3000", "4000")
    code = server.get_code(client, redirect_uri=used)
    assert server.redeem(client, code, redirect_uri=LOOPBACK_REDIRECT).json["error"] == "invalid_grant"
    assert server.redeem(client, code, redirect_uri=used).status == 200


def test_a_refresh_token_of_another_client_is_refused(server: OAuthServer) -> None:
    owner, thief = server.new_client(), server.new_client()
    token = server.get_tokens(owner)["refresh_token"]
    assert server.refresh(thief, token).json["error"] == "invalid_grant"
    assert server.refresh(owner, token).status == 200


def test_a_refresh_token_is_for_one_resource() -> None:
    with running_server() as server:
        client = server.new_client()
        token = server.get_tokens(client)["refresh_token"]
        assert server.refresh(client, token, resource="https://other.example/mcp").json["error"] == "invalid_target"
        with changed_settings({"MCP_RESOURCE_URL": "https://mcp.example/other"}):
            answer = server.refresh(client, token, resource="https://mcp.example/other")
            assert answer.json["error"] == "invalid_grant"


def test_a_refreshed_token_may_have_less_scope_and_never_more(server: OAuthServer) -> None:
    client = server.new_client()
    both = server.get_tokens(client, scope="items.read items.write")["refresh_token"]
    less = server.refresh(client, both, scope="items.read").json
    assert less["scope"] == "items.read"
    assert set(token_claims(less["access_token"])["scope"].split()) == {"openid", "items.read"}
    read = server.get_tokens(client, scope="items.read")["refresh_token"]
    assert server.refresh(client, read, scope="items.read items.write").json["error"] == "invalid_scope"
    assert server.refresh(client, read).status == 200  # the provider was not asked


def test_a_refresh_token_does_not_show_the_providers(server: OAuthServer) -> None:
    token = server.get_tokens(server.new_client())["refresh_token"]
    assert token.startswith("ks1.")


def test_a_provider_that_does_not_rotate_keeps_its_refresh_token_valid() -> None:
    with running_server(behaviour=Behaviour(rotates_refresh_tokens=False)) as server:
        client = server.new_client()
        first = server.get_tokens(client)["refresh_token"]
        assert server.refresh(client, first).status == 200
        assert server.refresh(client, first).status == 200


def test_after_a_revocation_refreshing_fails(server: OAuthServer) -> None:
    client = server.new_client()
    token = server.get_tokens(client)["refresh_token"]
    assert server.revoke(client, token).status == 200
    assert server.refresh(client, token).json["error"] == "invalid_grant"


def test_another_client_cannot_revoke_and_hears_nothing(server: OAuthServer) -> None:
    owner, other = server.new_client(), server.new_client()
    token = server.get_tokens(owner)["refresh_token"]
    assert server.revoke(other, token).status == 200
    assert server.revoke(other, "ks1.AAAA").status == 200
    assert server.refresh(owner, token).status == 200


def test_an_access_token_cannot_be_revoked_and_the_client_hears_it(server: OAuthServer) -> None:
    client = server.new_client()
    assert server.revoke(client, server.get_tokens(client)["access_token"]).json["error"] == "unsupported_token_type"


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_a_client_with_a_secret_must_show_it_by_its_own_method(server: OAuthServer, method: str) -> None:
    client = server.register(token_endpoint_auth_method=method)
    secret = client["client_secret"]
    pair = f"{quote_plus(client['client_id'])}:{quote_plus(secret)}"
    basic = {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    code = server.get_code(client["client_id"])
    assert server.redeem(client["client_id"], code).json["error"] == "invalid_client"
    assert server.redeem(client["client_id"], code, client_secret="wrong").status == 401  # noqa: S106
    ways = {
        "client_secret_basic": lambda: server.redeem(client["client_id"], code, basic),
        "client_secret_post": lambda: server.redeem(client["client_id"], code, client_secret=secret),
    }
    other = next(name for name in ways if name != method)
    assert ways[other]().status == 401
    assert ways[method]().status == 200


def test_a_request_with_two_ways_of_authentication_is_refused(server: OAuthServer) -> None:
    client = server.register(token_endpoint_auth_method="client_secret_post")  # noqa: S106
    pair = f"{quote_plus(client['client_id'])}:{quote_plus(client['client_secret'])}"
    headers = {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    both = server.redeem(client["client_id"], "ks1.A", headers, client_secret=client["client_secret"])
    two = server.redeem("another", "ks1.A", headers)
    assert {both.json["error"], two.json["error"]} == {"invalid_request"}


def test_a_client_that_fails_at_basic_authentication_is_asked_for_it(server: OAuthServer) -> None:
    answer = server.redeem("c", "ks1.A", {"authorization": "Bearer planted-secret"})
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Basic")


@pytest.mark.parametrize("media", ["application/json", "multipart/form-data", ""])
def test_a_token_request_that_is_no_form_is_refused(server: OAuthServer, media: str) -> None:
    answer = server.send("POST", "/token", body="{}", headers={"content-type": media})
    assert (answer.status, answer.json["error"]) == (400, "invalid_request")


def test_a_parameter_of_a_form_that_is_there_twice_is_refused(server: OAuthServer) -> None:
    form = f"grant_type=authorization_code&code=a&code=b&code_verifier={VERIFIER}"
    assert server.send("POST", "/token", form=form).json["error"] == "invalid_request"


def test_a_form_that_is_too_large_is_refused(server: OAuthServer) -> None:
    assert server.send("POST", "/token", form="code=" + "x" * 40_000).status == 413


def test_a_token_for_the_query_is_no_request(server: OAuthServer) -> None:
    assert server.send("GET", f"/token?grant_type=authorization_code&resource={RESOURCE}").status == 405


def test_a_token_response_is_not_stored_and_a_page_of_a_host_may_read_it(server: OAuthServer) -> None:
    client = server.new_client()
    answer = server.redeem(client, server.get_code(client))
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["pragma"] == "no-cache"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers
