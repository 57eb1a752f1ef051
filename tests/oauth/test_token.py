"""`/token` gives tokens for a code or a refresh token; `/revoke` ends a refresh token.

`server` and `client` are fixtures of conftest.py: the server under test, and the id of a client that has no secret.
`redeem`, `refresh` and `revoke` send a valid request. A keyword replaces a parameter of its form; None removes it.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote_plus, urlencode

import pytest

from mcp_functions.oauth.sealed_values import CODE, Purpose, SealedValues
from mcp_functions_harness.loopback import HttpRequest, json_response
from tests.oauth.oauth_server import (
    LOOPBACK_REDIRECT,
    RESOURCE,
    VERIFIER,
    OAuthServer,
    changed_settings,
    token_claims,
)

if TYPE_CHECKING:
    from mcp_functions_harness.loopback import HttpResponse
    from tests.oauth.browser import Answer

OTHER_RESOURCE = "https://mcp.example/other"
OTHER_VERIFIER = "other-verifier-other-verifier-other-verifier"  # PKCE needs at least 43 characters


def assert_error(answer: Answer, error: str, status: int = 400) -> None:
    assert answer.status == status
    assert answer.json["error"] == error


# A code


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        pytest.param({"redirect_uri": "https://other.example/callback"}, "invalid_grant", id="another redirect"),
        pytest.param({"code_verifier": OTHER_VERIFIER}, "invalid_grant", id="another verifier"),
        pytest.param({"code_verifier": None}, "invalid_grant", id="no verifier"),
        pytest.param({"code_verifier": "é" * 43}, "invalid_grant", id="a verifier that is not ASCII"),
        pytest.param({"resource": OTHER_RESOURCE}, "invalid_target", id="another resource"),
        pytest.param({"grant_type": "password"}, "unsupported_grant_type", id="the grant password"),
        pytest.param({"grant_type": "client_credentials"}, "unsupported_grant_type", id="the grant client_credentials"),
        pytest.param({"grant_type": None}, "unsupported_grant_type", id="no grant"),
    ],
)
def test_a_failed_request_does_not_invalidate_the_code(
    server: OAuthServer, client: str, changes: dict[str, str | None], error: str
) -> None:
    code = server.get_code(client)
    answer = server.redeem(client, code, **changes)
    assert_error(answer, error)
    assert answer.headers["cache-control"] == "no-store"
    assert server.redeem(client, code).status == 200


@pytest.mark.parametrize("code", ["ks1.AAAA", "code", None], ids=["a forged token", "another text", "no code"])
def test_a_forged_code_is_refused(server: OAuthServer, client: str, code: str | None) -> None:
    assert_error(server.redeem(client, code), "invalid_grant")


def test_a_code_can_be_redeemed_once(server: OAuthServer, client: str) -> None:
    code = server.get_code(client)
    assert server.redeem(client, code).status == 200
    assert_error(server.redeem(client, code), "invalid_grant")


def test_a_code_expires_after_two_minutes(server: OAuthServer, client: str) -> None:
    code = server.get_code(client)
    server.clock.advance(121)
    assert_error(server.redeem(client, code), "invalid_grant")


def test_a_code_of_another_client_is_refused(server: OAuthServer, client: str) -> None:
    code = server.get_code(client)
    assert_error(server.redeem(server.new_client(), code), "invalid_grant")
    assert server.redeem(client, code).status == 200


def test_an_injected_code_does_not_match_the_code_verifier(server: OAuthServer, client: str) -> None:
    attackers_code = server.get_code(client, person="mallory")
    assert_error(server.redeem(client, attackers_code, code_verifier=OTHER_VERIFIER), "invalid_grant")


def test_a_code_must_be_redeemed_with_the_loopback_port_of_its_authorization(server: OAuthServer) -> None:
    client = server.new_client(LOOPBACK_REDIRECT)
    other_port = LOOPBACK_REDIRECT.replace("3000", "4000")  # an authorization accepts any port (RFC 8252, 7.3)
    code = server.get_code(client, redirect_uri=other_port)
    assert_error(server.redeem(client, code, redirect_uri=LOOPBACK_REDIRECT), "invalid_grant")
    assert server.redeem(client, code, redirect_uri=other_port).status == 200


def test_a_code_that_version_0_1_0_sealed_is_redeemed(
    server: OAuthServer, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal = SealedValues.seal

    def seal_as_before(self: SealedValues, purpose: Purpose, claims: dict[str, str], *bound_to: str) -> str:
        if purpose is CODE:
            redirect = claims.pop("redirect")
            bound_to = (bound_to[0], redirect, bound_to[2])
        return seal(self, purpose, claims, *bound_to)

    monkeypatch.setattr(SealedValues, "seal", seal_as_before)
    code = server.get_code(client)
    monkeypatch.undo()
    assert_error(server.redeem(client, code, redirect_uri=None), "invalid_grant")
    assert_error(server.redeem(client, code, redirect_uri="https://other.example/callback"), "invalid_grant")
    assert server.redeem(client, code).status == 200


# A refresh token


def test_a_refresh_token_of_another_client_is_refused(server: OAuthServer, client: str) -> None:
    token = server.get_tokens(client)["refresh_token"]
    assert_error(server.refresh(server.new_client(), token), "invalid_grant")
    assert server.refresh(client, token).status == 200


def test_a_refresh_for_another_resource_is_refused(server: OAuthServer, client: str) -> None:
    token = server.get_tokens(client)["refresh_token"]
    assert_error(server.refresh(client, token, resource=OTHER_RESOURCE), "invalid_target")


def test_a_refresh_token_is_invalid_after_the_resource_of_the_server_changed(server: OAuthServer, client: str) -> None:
    token = server.get_tokens(client)["refresh_token"]
    with changed_settings({"MCP_RESOURCE_URL": OTHER_RESOURCE}):
        assert_error(server.refresh(client, token, resource=OTHER_RESOURCE), "invalid_grant")


def test_a_refresh_may_request_fewer_scopes(server: OAuthServer, client: str) -> None:
    token = server.get_tokens(client, scope="items.read items.write")["refresh_token"]
    refreshed = server.refresh(client, token, scope="items.read").json
    assert refreshed["scope"] == "items.read"
    assert set(token_claims(refreshed["access_token"])["scope"].split()) == {"openid", "items.read"}


def test_a_refresh_for_more_scopes_is_refused_and_does_not_invalidate_the_token(
    server: OAuthServer, client: str
) -> None:
    token = server.get_tokens(client, scope="items.read")["refresh_token"]
    assert_error(server.refresh(client, token, scope="items.read items.write"), "invalid_scope")
    assert server.refresh(client, token).status == 200


def test_a_refresh_token_does_not_show_that_of_the_provider(server: OAuthServer, client: str) -> None:
    assert server.get_tokens(client)["refresh_token"].startswith("ks1.")


def test_the_refresh_token_of_a_provider_that_does_not_rotate_stays_valid(
    server: OAuthServer, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = server.provider.issuer.answer
    newest: dict[str, str] = {}  # the refresh token that stays valid -> the one that the issuer knows now

    def answer_without_rotating(request: HttpRequest) -> HttpResponse:
        form = dict(parse_qsl((request.body or b"").decode()))
        token = form.get("refresh_token", "")
        if not token:
            return answer(request)
        form["refresh_token"] = newest.get(token, token)
        tokens = json.loads(answer(HttpRequest("POST", "/token", (), urlencode(form).encode())).body)
        newest[token] = tokens.pop("refresh_token")
        return json_response(200, tokens)

    monkeypatch.setattr(server.provider.issuer, "answer", answer_without_rotating)
    token = server.get_tokens(client)["refresh_token"]
    assert server.refresh(client, token).status == 200
    assert server.refresh(client, token).status == 200


# A revocation


def test_after_a_revocation_refreshing_fails(server: OAuthServer, client: str) -> None:
    token = server.get_tokens(client)["refresh_token"]
    assert server.revoke(client, token).status == 200
    assert_error(server.refresh(client, token), "invalid_grant")


def test_a_revocation_by_another_client_succeeds_without_effect(server: OAuthServer, client: str) -> None:
    token = server.get_tokens(client)["refresh_token"]
    assert server.revoke(server.new_client(), token).status == 200
    assert server.refresh(client, token).status == 200


def test_an_unknown_token_counts_as_revoked(server: OAuthServer, client: str) -> None:
    assert server.revoke(client, "ks1.AAAA").status == 200  # RFC 7009, 2.2


def test_revoking_an_access_token_is_an_error(server: OAuthServer, client: str) -> None:
    assert_error(server.revoke(client, server.get_tokens(client)["access_token"]), "unsupported_token_type")


# A client with a secret. It shows its secret in the form, or in the header of Basic authentication.


def basic(client: dict[str, Any]) -> dict[str, str]:
    credentials = f"{quote_plus(client['client_id'])}:{quote_plus(client['client_secret'])}"
    return {"authorization": f"Basic {base64.b64encode(credentials.encode()).decode()}"}


def test_a_client_with_a_secret_must_send_it(server: OAuthServer) -> None:
    client = server.new_client(token_endpoint_auth_method="client_secret_post")  # noqa: S106
    code = server.get_code(client)
    assert_error(server.redeem(client, code), "invalid_client", status=401)
    assert_error(server.redeem(client, code, client_secret="wrong"), "invalid_client", status=401)  # noqa: S106


def test_a_client_that_registered_basic_authentication_must_use_it(server: OAuthServer) -> None:
    client = server.register(token_endpoint_auth_method="client_secret_basic")  # noqa: S106
    id_ = client["client_id"]
    code = server.get_code(id_)
    assert server.redeem(id_, code, client_secret=client["client_secret"]).status == 401
    assert server.redeem(id_, code, basic(client)).status == 200


def test_a_client_that_registered_the_form_must_use_it(server: OAuthServer) -> None:
    client = server.register(token_endpoint_auth_method="client_secret_post")  # noqa: S106
    id_ = client["client_id"]
    code = server.get_code(id_)
    assert server.redeem(id_, code, basic(client)).status == 401
    assert server.redeem(id_, code, client_secret=client["client_secret"]).status == 200


def test_a_secret_in_the_header_and_in_the_form_is_refused(server: OAuthServer) -> None:
    client = server.register(token_endpoint_auth_method="client_secret_post")  # noqa: S106
    answer = server.redeem(client["client_id"], "ks1.A", basic(client), client_secret=client["client_secret"])
    assert_error(answer, "invalid_request")


def test_two_client_ids_in_one_request_are_refused(server: OAuthServer) -> None:
    client = server.register(token_endpoint_auth_method="client_secret_post")  # noqa: S106
    assert_error(server.redeem("another", "ks1.A", basic(client)), "invalid_request")


def test_failed_basic_authentication_gets_a_www_authenticate_header(server: OAuthServer) -> None:
    answer = server.redeem("c", "ks1.A", {"authorization": "Bearer planted-secret"})
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Basic")


# The HTTP request and response


@pytest.mark.parametrize("media_type", ["application/json", "multipart/form-data", ""])
def test_a_token_request_in_another_content_type_is_refused(server: OAuthServer, media_type: str) -> None:
    answer = server.send("POST", "/token", body="{}", headers={"content-type": media_type})
    assert_error(answer, "invalid_request")


def test_a_repeated_parameter_of_a_form_is_refused(server: OAuthServer) -> None:
    form = f"grant_type=authorization_code&code=a&code=b&code_verifier={VERIFIER}"
    assert_error(server.send("POST", "/token", form=form), "invalid_request")


def test_a_form_that_is_too_large_is_refused(server: OAuthServer) -> None:
    assert server.send("POST", "/token", form="code=" + "x" * 40_000).status == 413


def test_a_token_request_cannot_be_a_get(server: OAuthServer) -> None:
    assert server.send("GET", f"/token?grant_type=authorization_code&resource={RESOURCE}").status == 405


def test_a_token_response_may_not_be_cached_and_every_origin_may_read_it(server: OAuthServer, client: str) -> None:
    answer = server.redeem(client, server.get_code(client))
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["pragma"] == "no-cache"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers
