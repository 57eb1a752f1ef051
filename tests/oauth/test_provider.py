"""The server checks each response of the provider before it responds to the client.

A test gives `running_server` a function that changes the provider's JSON answers.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import pytest

from mcp_functions_harness.issuer import Issuer
from mcp_functions_harness.loopback import HttpRequest, HttpResponse, Loopback, json_response
from tests.oauth.oauth_server import (
    CLIENT_AT_PROVIDER,
    RESOURCE,
    SECRET,
    VERIFIER,
    OAuthServer,
    changed_settings,
    running_server,
    token_claims,
)
from tests.support import filters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


ARN = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:provider-AbCdEf"


def sign_in(server: OAuthServer) -> tuple[int, str]:
    """Sign in, and redeem the code; return the status and the error of `/token`."""
    client = server.new_client()
    answer = server.redeem(client, server.get_code(client))
    return answer.status, answer.json.get("error", "")


ID_TOKENS: dict[str, Callable[[Issuer], str | None]] = {
    "of another sign-in": lambda issuer: issuer.token(aud=CLIENT_AT_PROVIDER, nonce="another"),
    "without a nonce": lambda issuer: issuer.token(aud=CLIENT_AT_PROVIDER),
    "unreadable": lambda _issuer: "a.b.c",
    "of another key": lambda issuer: Issuer(issuer.url, RESOURCE).token(aud=CLIENT_AT_PROVIDER),
}


@pytest.mark.parametrize("kind", ID_TOKENS)
def test_an_id_token_of_another_sign_in_is_refused(kind: str) -> None:
    def change(path: str, answer: dict[str, Any], issuer: Issuer) -> None:
        if path == "/token":
            answer["id_token"] = ID_TOKENS[kind](issuer)

    with running_server(change_answer=change) as server:
        assert sign_in(server) == (400, "invalid_grant")


@pytest.mark.parametrize(
    "changed",
    [
        {"aud": "another"},
        {"iss": "https://evil.example"},
        {"exp": 1},
        {"aud": [CLIENT_AT_PROVIDER, "other"]},
        {"aud": [CLIENT_AT_PROVIDER, 5]},
    ],
)
def test_an_id_token_with_other_claims_is_refused(changed: dict[str, object]) -> None:
    def change(path: str, answer: dict[str, Any], issuer: Issuer) -> None:
        if path == "/token" and "id_token" in answer:
            nonce = token_claims(answer["id_token"])["nonce"]
            answer["id_token"] = issuer.token(**{"aud": CLIENT_AT_PROVIDER, "nonce": nonce, **changed})

    with running_server(change_answer=change) as server:
        assert sign_in(server) == (400, "invalid_grant")


ACCESS_TOKENS: dict[str, Callable[[Issuer, str], str]] = {
    "opaque": lambda _issuer, _id_token: "opaque",
    "the ID token": lambda _issuer, id_token: id_token,
    "of another audience": lambda issuer, _id_token: issuer.token(aud="https://other.example/mcp"),
    "of another issuer": lambda issuer, _id_token: issuer.token(iss="https://other.example"),
    "without a subject": lambda issuer, _id_token: issuer.token(sub=None),
    "without audience and client": lambda issuer, _id_token: issuer.token(aud=None, client_id=None),
    "of another client, without audience": lambda issuer, _id_token: issuer.token(aud=None, client_id="another"),
}


@pytest.mark.parametrize("kind", ACCESS_TOKENS)
def test_tokens_of_a_provider_that_are_not_bound_to_this_server_are_refused(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    def change(path: str, answer: dict[str, Any], issuer: Issuer) -> None:
        if path == "/token":
            answer["access_token"] = ACCESS_TOKENS[kind](issuer, answer["id_token"])

    with running_server(change_answer=change) as server:
        assert sign_in(server) == (500, "server_error")
    assert "provider:" in caplog.text


@pytest.mark.parametrize(
    ("audience", "claims", "expected"),
    [
        (CLIENT_AT_PROVIDER, {"aud": None, "client_id": CLIENT_AT_PROVIDER}, (200, "")),
        ("api://shared", {"aud": "api://shared", "client_id": None, "cid": CLIENT_AT_PROVIDER}, (200, "")),
        ("api://shared", {"aud": "api://shared", "client_id": None, "cid": "another"}, (500, "server_error")),
    ],
)
def test_tokens_of_a_provider_may_be_bound_by_the_client_id(
    audience: str, claims: dict[str, Any], expected: tuple[int, str]
) -> None:
    def change(path: str, answer: dict[str, Any], issuer: Issuer) -> None:
        if path == "/token":
            answer["access_token"] = issuer.token(**claims)

    settings = {"MCP_OAUTH_BINDING": "client_id", "MCP_JWT_AUDIENCE": audience}
    with running_server(settings, change_answer=change) as server:
        assert sign_in(server) == expected


def test_an_unknown_token_binding_is_a_misconfiguration(caplog: pytest.LogCaptureFixture) -> None:
    with running_server({"MCP_OAUTH_BINDING": "none"}) as server:
        answer = server.send("GET", "/.well-known/oauth-authorization-server")
    assert answer.status == 500
    assert "MCP_OAUTH" not in answer.body
    assert "MCP_OAUTH_BINDING must be" in caplog.text


@pytest.mark.parametrize(
    "changed",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://evil.example/token"},
        {"authorization_endpoint": None},
        {"jwks_uri": "ftp://127.0.0.1/keys"},
    ],
)
def test_untrusted_metadata_of_the_provider_stops_the_sign_in(changed: dict[str, Any]) -> None:
    def change(path: str, answer: dict[str, Any], _issuer: Issuer) -> None:
        if path.endswith("openid-configuration"):
            answer |= changed

    with running_server(change_answer=change) as server:
        browser = server.new_browser()
        answer = browser.allow(browser.authorize(server.new_client()))
        assert answer.status == 500
        assert not answer.location


def test_an_empty_document_of_the_provider_is_not_cached() -> None:
    is_empty = [True]

    def change(path: str, answer: dict[str, Any], _issuer: Issuer) -> None:
        if path.endswith("openid-configuration") and is_empty:
            answer.clear()

    with running_server(change_answer=change) as server:
        server.keep_process()
        browser = server.new_browser()
        client = server.new_client()
        assert browser.allow(browser.authorize(client)).status == 500
        is_empty.clear()
        assert browser.allow(browser.authorize(client)).status == 303


@pytest.mark.parametrize(
    ("answered", "expected"),
    [
        ({"status": 400, "error": "invalid_grant"}, (400, "invalid_grant")),
        ({"status": 400, "error": "invalid_request"}, (400, "invalid_grant")),
        ({"status": 401, "error": "invalid_client"}, (500, "server_error")),
        ({"status": 400, "error": "planted-secret"}, (500, "server_error")),
        ({"status": 503}, (503, "temporarily_unavailable")),
        ({"status": 429}, (503, "temporarily_unavailable")),
    ],
)
def test_an_error_of_the_provider_is_reported_without_its_text(
    answered: dict[str, Any], expected: tuple[int, str]
) -> None:
    def change(path: str, answer: dict[str, Any], _issuer: Issuer) -> None:
        if path == "/token":
            answer.clear()
            answer |= answered

    with running_server(change_answer=change) as server:
        assert sign_in(server) == expected


def test_a_provider_that_does_not_answer_leaves_the_code_valid(server: OAuthServer, client: str) -> None:
    code = server.get_code(client)
    with changed_settings({"MCP_JWT_ISSUER": "http://127.0.0.1:9"}):
        answer = server.redeem(client, code)
    assert (answer.status, answer.json["error"]) == (503, "temporarily_unavailable")
    assert answer.headers["retry-after"]
    assert server.redeem(client, code).status == 200


def test_the_client_gets_an_error_if_the_provider_cannot_revoke() -> None:
    def change(path: str, answer: dict[str, Any], _issuer: Issuer) -> None:
        if path.endswith("openid-configuration"):
            del answer["revocation_endpoint"]

    with running_server(change_answer=change) as server:
        client = server.new_client()
        token = server.get_tokens(client)["refresh_token"]
        assert server.revoke(client, token).json["error"] == "unsupported_token_type"


class Secrets:
    """Secrets Manager with one secret, and the number of requests for it."""

    def __init__(self, secret: str) -> None:
        self.secret, self.requests = secret, 0

    def answer(self, request: HttpRequest) -> HttpResponse:
        self.requests += 1
        assert request.header("x-amz-target") == "secretsmanager.GetSecretValue"
        if json.loads(request.body or b"{}") != {"SecretId": ARN}:
            return json_response(400, {"__type": "ResourceNotFoundException"})
        return json_response(200, {"SecretString": self.secret})


@pytest.fixture
def secrets() -> Iterator[tuple[Secrets, str]]:
    with Loopback(max_body=4096) as loopback:
        held = Secrets(json.dumps({"client_secret": SECRET}))
        loopback.start(held.answer)
        yield held, loopback.url


def test_the_server_reads_its_client_secret_from_secrets_manager(secrets: tuple[Secrets, str]) -> None:
    held, url = secrets
    changes = {"MCP_OAUTH_SECRET_ARN": ARN, "AWS_ENDPOINT_URL_SECRETS_MANAGER": url}
    with running_server(changes, secret=SECRET) as server:
        server.keep_process()
        client = server.new_client()
        tokens = server.get_tokens(client)
        server.refresh(client, tokens["refresh_token"])
        assert held.requests == 1
        held.secret = "planted-unspeakable-wrong"  # noqa: S105
        server.clock.advance(301)
        assert sign_in(server) == (500, "server_error")
        held.secret = SECRET
        assert sign_in(server) == (200, "")


@pytest.mark.parametrize("member", ["client_secret", "ClientSecret", "secret"])
def test_the_secret_may_be_a_member_of_a_json_object(secrets: tuple[Secrets, str], member: str) -> None:
    held, url = secrets
    held.secret = json.dumps({"client_id": CLIENT_AT_PROVIDER, member: SECRET})
    changes = {"MCP_OAUTH_SECRET_ARN": ARN, "AWS_ENDPOINT_URL_SECRETS_MANAGER": url}
    with running_server(changes, secret=SECRET) as server:
        assert sign_in(server) == (200, "")


def test_a_secret_that_does_not_exist_is_a_misconfiguration(
    secrets: tuple[Secrets, str], caplog: pytest.LogCaptureFixture
) -> None:
    changes = {"MCP_OAUTH_SECRET_ARN": f"{ARN}X", "AWS_ENDPOINT_URL_SECRETS_MANAGER": secrets[1]}
    with running_server(changes, secret=SECRET) as server:
        assert sign_in(server) == (500, "server_error")
    assert "secretsmanager:ResourceNotFoundException" in caplog.text
    counted = filters.count_metrics(vars(record) for record in caplog.records)
    assert counted.keys() & filters.alarm_metrics() == {"Misconfigured", "Outages"}


def test_the_provider_gets_the_code_verifier_of_the_server_and_not_that_of_the_client(
    server: OAuthServer, client: str
) -> None:
    server.get_tokens(client)
    forms = [dict(parse_qsl((request.body or b"").decode())) for request in server.provider.requests]
    (redeemed,) = (form for form in forms if form.get("grant_type") == "authorization_code")
    assert redeemed["code_verifier"] != VERIFIER
    assert redeemed["client_id"] == CLIENT_AT_PROVIDER
