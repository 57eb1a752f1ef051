"""What providers answer at the token endpoint when they refuse, and what the client and the operator get for it.

The provider is the local issuer on loopback: each case changes its answer to one that a provider documents. Nothing
here was tried at a provider.

    refused      the person has to sign in again: `invalid_grant`, charged to the caller, no alarm
    trouble      the provider is in trouble: 503 with Retry-After, so the client asks again
    operator     only the operator can mend it: 500, which raises the alarm
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import pytest

from mcp_functions_harness.issuer.jwts import Signer
from mcp_functions_harness.loopback import HttpRequest, HttpResponse, json_response
from tests.support import filters

if TYPE_CHECKING:
    from tests.oauth.oauth_server import OAuthServer

REFUSED, TROUBLE, OPERATOR = (400, "invalid_grant"), (503, "temporarily_unavailable"), (500, "server_error")


ALARMS = {TROUBLE: {"Outages"}, OPERATOR: {"Misconfigured", "Outages"}}


class Case(NamedTuple):
    """One answer of a provider."""

    provider: str
    status: int
    body: dict[str, Any]
    expected: tuple[int, str]
    source: str


ENTRA_CODES = "MicrosoftDocs/entra-docs, v2-oauth2-auth-code-flow.md, 0c1ac842, read 2026-11-29"
KEYCLOAK = "keycloak/keycloak, RefreshTokenGrantType.java at 091ec956, issues 37961 and 43734, read 2026-11-29"
AUTH0 = "mintlify.com/auth0/nextjs-auth0/advanced/mfa, read 2026-11-29"
COGNITO = "a stored copy of the Cognito developer guide, The token issuer endpoint, read 2026-11-29"
RFC = "RFC 6749, 4.1.2.1 and 5.2; OpenID Connect Core 1.0, 3.1.2.6"
UNVERIFIED = "not verified: reported by others, no source could be read"
CASES = [
    Case("Entra ID", 400, {"error": "invalid_grant", "suberror": "bad_token"}, REFUSED, ENTRA_CODES),
    Case("Entra ID", 400, {"error": "interaction_required", "error_codes": [50076]}, REFUSED, ENTRA_CODES),
    Case("Entra ID", 400, {"error": "consent_required", "error_codes": [65001]}, REFUSED, ENTRA_CODES),
    Case("Entra ID", 400, {"error": "invalid_scope", "error_codes": [70011]}, (400, "invalid_scope"), ENTRA_CODES),
    Case("Entra ID", 400, {"error": "temporarily_unavailable"}, TROUBLE, ENTRA_CODES),
    Case("Entra ID", 400, {"error": "server_error"}, TROUBLE, UNVERIFIED),
    Case("Entra ID", 401, {"error": "invalid_client", "error_codes": [7000222]}, OPERATOR, ENTRA_CODES),
    Case("Entra ID", 400, {"error": "unauthorized_client", "error_codes": [700016]}, OPERATOR, ENTRA_CODES),
    Case("Entra ID", 400, {"error": "invalid_resource"}, OPERATOR, ENTRA_CODES),
    Case("Keycloak", 400, {"error": "invalid_grant", "error_description": "Session not active"}, REFUSED, KEYCLOAK),
    Case("Keycloak", 400, {"error": "invalid_grant", "error_description": "Token is not active"}, REFUSED, KEYCLOAK),
    Case("Keycloak", 400, {"error": "invalid_scope"}, (400, "invalid_scope"), KEYCLOAK),
    Case("Keycloak", 401, {"error": "unauthorized_client"}, OPERATOR, UNVERIFIED),
    Case("Auth0", 403, {"error": "mfa_required", "mfa_token": "planted"}, REFUSED, AUTH0),
    Case("Auth0", 403, {"error": "access_denied"}, REFUSED, UNVERIFIED),
    Case("Auth0", 403, {"error": "invalid_grant"}, REFUSED, UNVERIFIED),
    Case("Auth0", 429, {"error": "too_many_requests"}, TROUBLE, UNVERIFIED),
    Case("Cognito", 400, {"error": "invalid_grant"}, REFUSED, COGNITO),
    Case("Cognito", 400, {"error": "invalid_request"}, REFUSED, COGNITO),
    Case("Cognito", 400, {"error": "unauthorized_client"}, OPERATOR, COGNITO),
    Case("Cognito", 400, {"error": "invalid_client"}, OPERATOR, COGNITO),
    Case("any", 400, {"error": "login_required"}, REFUSED, RFC),
    Case("any", 400, {"error": "account_selection_required"}, REFUSED, RFC),
    Case("any", 401, {"error": "access_denied"}, REFUSED, RFC),
    Case("any", 400, {"error": "unsupported_grant_type"}, OPERATOR, RFC),
    Case("any", 500, {"error": "server_error"}, TROUBLE, RFC),
    Case("any", 408, {}, TROUBLE, "RFC 9110, 15.5.9"),
    Case("a gateway before it", 403, {"message": "Forbidden"}, TROUBLE, UNVERIFIED),
    Case("a gateway before it", 400, {"error": {"code": 400}}, TROUBLE, UNVERIFIED),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.provider} {case.status} {case.body.get('error')}")
def test_a_refused_refresh_is_the_persons_the_providers_or_the_operators(
    server: OAuthServer, client: str, case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    token = server.get_tokens(client)["refresh_token"]
    caplog.set_level("INFO")
    caplog.clear()
    server.provider.refusal = (case.status, case.body)
    answer = server.refresh(client, token)
    assert (answer.status, answer.json["error"]) == case.expected
    assert ("retry-after" in answer.headers) == (case.expected == TROUBLE)
    lines = [vars(record) for record in caplog.records if record.name == "mcp_functions"]
    assert [bool(line.get("misconfigured")) for line in lines] == [case.expected == OPERATOR]
    counted = filters.count_metrics(lines).keys() & filters.alarm_metrics()
    assert counted == ALARMS.get(case.expected, set()), "no refusal of a person raises an alarm"
    assert "planted" not in answer.body + caplog.text
    server.provider.refusal = None
    assert server.refresh(client, token).status == 200  # the client has lost nothing


def test_refusals_are_charged_to_the_caller_whoever_can_mend_them(server: OAuthServer, client: str) -> None:
    token = server.get_tokens(client)["refresh_token"]
    server.keep_process()
    for error in ("interaction_required", "unauthorized_client"):
        server.provider.refusal = (400, {"error": error})
        before = len(server.provider.requests)
        statuses = [server.refresh(client, token).status for _ in range(60)]
        assert statuses.count(503) == 30
        assert len([request for request in server.provider.requests[before:] if request.method == "POST"]) == 30
        server.clock.advance(60)


@pytest.mark.parametrize(
    ("error", "forwarded"),
    [("interaction_required", "access_denied"), ("login_required", "access_denied"), ("server_error", "server_error")],
)
def test_a_person_who_may_not_sign_in_is_the_clients_error_after_the_providers_page(
    server: OAuthServer, client: str, error: str, forwarded: str, caplog: pytest.LogCaptureFixture
) -> None:
    browser = server.new_browser()
    state = browser.allow(browser.authorize(client)).parameters["state"]
    caplog.set_level("INFO")
    caplog.clear()
    answer = browser.get("/callback?" + urlencode({"state": state, "error": error, "iss": server.provider.url}))
    assert answer.parameters["error"] == forwarded
    assert not any(vars(record).get("misconfigured") for record in caplog.records)


def test_a_provider_that_cannot_revoke_a_token_is_no_misconfiguration(server: OAuthServer, client: str) -> None:
    token = server.get_tokens(client)["refresh_token"]
    server.provider.refusal = (400, {"error": "unsupported_token_type"})
    answer = server.revoke(client, token)
    assert (answer.status, answer.json["error"]) == (400, "unsupported_token_type")


# What a provider publishes


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/jwks"])
def test_the_last_documents_of_a_silent_provider_are_used_for_a_day(
    server: OAuthServer, client: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = server.provider.issuer.answer

    def answer_badly(request: HttpRequest) -> HttpResponse:
        return json_response(503, {}) if request.target == path else answer(request)

    server.keep_process()
    server.get_tokens(client)
    server.clock.advance(3601)
    monkeypatch.setattr(server.provider.issuer, "answer", answer_badly)
    assert server.get_tokens(client)["access_token"]
    server.clock.advance(24 * 3600)
    code = server.get_code(client) if path == "/jwks" else ""
    browser = server.new_browser()
    status = server.redeem(client, code).status if code else browser.allow(browser.authorize(client)).status
    assert status == 503
    monkeypatch.undo()
    server.clock.advance(60)
    assert server.get_tokens(client)["access_token"]


def test_keys_that_the_provider_has_just_changed_are_fetched_once_more(
    server: OAuthServer, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.keep_process()
    server.get_tokens(client)
    monkeypatch.setattr(server.provider.issuer, "_signer", Signer())
    before = len(server.provider.requests)
    for _ in range(2):
        assert server.get_tokens(client)["access_token"]
    targets = [request.target for request in server.provider.requests[before:]]
    assert targets.count("/jwks") == 1
