"""Clients register, and nothing is stored: the id is the sealed metadata. The operator can end and block them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from mcp_functions.oauth.client_authentication import ASSERTION
from tests.oauth.oauth_server import (
    HOST_REDIRECT,
    LOOPBACK_REDIRECT,
    RESOURCE,
    URL,
    OAuthServer,
    changed_settings,
    running_server,
)
from tests.oauth.signing import Signer

DAYS = 24 * 3600
STRANGER = "https://evil.example/callback"


def refused(server: OAuthServer, metadata: object) -> tuple[int, str]:
    """Send a registration, and return the status and the error."""
    answer = server.send("POST", "/register", body=metadata)
    return answer.status, answer.json["error"]


def test_a_registration_response_has_the_members_of_rfc_7591(server: OAuthServer) -> None:
    client = server.register(HOST_REDIRECT, LOOPBACK_REDIRECT, application_type="web", logo_uri="https://x.example/i")
    assert client["client_id"].startswith("ks1.")
    assert client["redirect_uris"] == [HOST_REDIRECT, LOOPBACK_REDIRECT]
    assert client["token_endpoint_auth_method"] == "none"  # noqa: S105
    assert client["response_types"] == ["code"]
    assert client["client_id_issued_at"] == int(server.clock())
    assert "client_secret" not in client
    assert "logo_uri" not in client


def test_two_registrations_of_the_same_metadata_are_two_clients(server: OAuthServer) -> None:
    assert server.new_client() != server.new_client()


def test_many_registrations_call_kms_once(server: OAuthServer) -> None:
    server.keep_process()
    for _ in range(20):
        server.register()
    assert len(server.kms.calls) == 1


REFUSED_REDIRECTS = {
    "plain HTTP": ["http://host.example/callback", "http://192.168.0.1/callback"],
    "a fragment": ["https://host.example/#fragment"],
    "a user": ["https://user@host.example/callback", "https://host.example\\@evil.example/callback"],
    "no host": ["https:///callback", "https://", "https://[", "//host.example/callback", "/callback", ""],
    "a scheme that runs code": ["javascript:/alert(1)", "data:/text/html,x", "vbscript:/x", "intent:/x"],
    "a scheme of the system": ["file:///etc/passwd", "ms-msdt:/id", "search-ms:/query=x", "itms-services:/x"],
    "a scheme of browsers": ["chrome-extension:/x"],
    "a scheme that names no application": ["x:/", "data+x:/", ".app:/cb", "app.:/cb"],
    "this machine over HTTPS": ["https://localhost/cb", "https://LOCALHOST:8443/cb", "https://app.localhost"],
    "a loopback address over HTTPS": ["https://127.0.0.1/cb", "https://127.1", "https://[::1]/cb"],
    "a loopback address as a number": ["https://2130706433/cb", "https://0x7f000001/cb"],
    "a character that a URL cannot have": ["https://host.example/<script>", 'https://*.example/callback*"'],
    "a blank or a line end": ["https://host.example/ callback", "https://host.example/\ncallback"],
    "a letter outside ASCII": ["https://host.examplé/callback"],
    "a parameter of the response": [
        "https://host.example/callback?code=planted",
        "https://host.example/callback?x=1&%73tate",
        "https://host.example/callback?iss=https://evil.example",
        "com.example.app:/callback?error=x",
        "http://127.0.0.1/callback?error_description=x",
    ],
    "too many characters": ["https://host.example/" + "x" * 600],
}


@pytest.mark.parametrize("reason", REFUSED_REDIRECTS)
def test_an_unsafe_redirect_uri_cannot_be_registered(server: OAuthServer, reason: str) -> None:
    for redirect in REFUSED_REDIRECTS[reason]:
        assert refused(server, {"redirect_uris": [redirect]}) == (400, "invalid_redirect_uri"), redirect


@pytest.mark.parametrize(
    "redirect",
    [
        "https://host.example/cb?tenant=1&codec=2",
        "http://[::1]/cb",
        "http://localhost",
        "http://localhost?x=1",
        "vscode://vscode.mcp/cb",
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "raycast://oauth?package_name=Extension",
        "com.example.app:/cb",
    ],
)
def test_an_https_or_application_redirect_uri_can_be_registered(server: OAuthServer, redirect: str) -> None:
    assert server.register(redirect)["redirect_uris"] == [redirect]


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ([], "invalid_client_metadata"),
        ({}, "invalid_redirect_uri"),
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": "https://host.example/cb"}, "invalid_redirect_uri"),
        ({"redirect_uris": [1]}, "invalid_redirect_uri"),
        ({"redirect_uris": [f"https://host.example/{n}" for n in range(11)]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://host.example/" + "x" * 450] * 3}, "invalid_redirect_uri"),
        (
            {"redirect_uris": [HOST_REDIRECT], "token_endpoint_auth_method": "tls_client_auth"},
            "invalid_client_metadata",
        ),
        ({"redirect_uris": [HOST_REDIRECT], "grant_types": ["implicit"]}, "invalid_client_metadata"),
        ({"redirect_uris": [HOST_REDIRECT], "response_types": ["token"]}, "invalid_client_metadata"),
        (
            {"redirect_uris": [HOST_REDIRECT], "token_endpoint_auth_method": "private_key_jwt"},
            "invalid_client_metadata",
        ),
        (
            {
                "redirect_uris": [HOST_REDIRECT],
                "token_endpoint_auth_method": "private_key_jwt",
                "jwks_uri": "https://x.example/\u00e9",
            },
            "invalid_client_metadata",
        ),
        ({"redirect_uris": [], "token_endpoint_auth_method": "private_key_jwt"}, "invalid_client_metadata"),
        ("{", "invalid_client_metadata"),
        ('{"redirect_uris": [], "redirect_uris": []}', "invalid_client_metadata"),
    ],
)
def test_invalid_client_metadata_is_refused(server: OAuthServer, metadata: object, error: str) -> None:
    assert refused(server, metadata) == (400, error)


def test_a_registration_that_is_too_large_is_refused(server: OAuthServer) -> None:
    assert server.send("POST", "/register", body="x" * 20_000).status == 413


def test_the_client_id_of_the_largest_registration_fits_into_a_url(server: OAuthServer) -> None:
    redirects = [f"https://host.example/{n}{'x' * 95}" for n in range(10)]
    keys = {"keys": [{"kty": "EC", "x": "x" * 1160}]}
    method = "private_key_jwt"
    client = server.register(*redirects, client_name="\U0001f600" * 200, token_endpoint_auth_method=method, jwks=keys)
    assert len(client["client_id"]) < 6144
    url = server.authorize_url(client["client_id"], redirect_uri=redirects[9], state='"' * 1536)
    assert server.new_browser().get(url).status == 200


def test_a_client_id_expires(server: OAuthServer, client: str) -> None:
    server.clock.advance(179 * DAYS)
    assert server.authorize(client).status == 200
    server.clock.advance(2 * DAYS)
    assert server.authorize(client).status == 400
    assert server.redeem(client, "ks1.A").json["error"] == "invalid_client"


def test_a_new_client_generation_invalidates_only_registrations(server: OAuthServer, client: str) -> None:
    with changed_settings({"MCP_OAUTH_CLIENT_GENERATION": "2"}):
        assert server.authorize(client).status == 400
        assert server.redeem(client, "ks1.A").status == 401
        assert server.get_tokens(server.new_client())["access_token"]
    assert server.authorize(client).status == 200


def test_an_operator_can_block_a_client_by_its_name_in_the_log(
    server: OAuthServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "mcp_functions")
    client, other = server.new_client(), server.new_client()
    token = server.get_tokens(client)["refresh_token"]
    caplog.clear()
    server.authorize(client)
    (record,) = (each for each in caplog.records if each.name == "mcp_functions")
    with changed_settings({"MCP_OAUTH_BLOCKED_CLIENTS": vars(record)["flow"]}):
        assert server.authorize(client).status == 400
        assert server.refresh(client, token).json["error"] == "invalid_client"
        assert server.authorize(other).status == 200


def test_an_operator_can_block_the_host_of_a_redirect_uri_and_its_refresh_tokens(server: OAuthServer) -> None:
    client, other = server.new_client(STRANGER), server.new_client()
    both = server.new_client(HOST_REDIRECT, STRANGER)
    token, code = server.get_tokens(both)["refresh_token"], server.get_code(both)
    with changed_settings({"MCP_OAUTH_BLOCKED_HOSTS": "evil.example, worse.example"}):
        assert server.authorize(client, redirect_uri=STRANGER).status == 400
        assert server.refresh(both, token).json["error"] == "invalid_client"
        assert server.redeem(both, code).json["error"] == "invalid_client"
        assert refused(server, {"redirect_uris": ["https://EVIL.example/x"]}) == (400, "invalid_redirect_uri")
        assert server.authorize(other).status == 200


def test_registration_can_be_switched_off() -> None:
    clients = json.dumps([{"client_id": "desk", "client_name": "Desk", "redirect_uris": [HOST_REDIRECT]}])
    with running_server({"MCP_OAUTH_REGISTRATION": "off", "MCP_OAUTH_CLIENTS": clients}) as server:
        assert server.send("POST", "/register", body={"redirect_uris": [HOST_REDIRECT]}).status == 404
        document = server.send("GET", "/.well-known/oauth-authorization-server").json
        assert "registration_endpoint" not in document
        assert server.get_tokens("desk")["access_token"]
        assert server.authorize("desk", redirect_uri=STRANGER).status == 400


def test_a_pre_registered_client_may_have_a_secret_that_the_template_does_not_show() -> None:
    hashed = hashlib.sha256(b"their-own-secret").hexdigest()
    known = {"client_id": "desk", "redirect_uris": [HOST_REDIRECT], "client_secret_sha256": hashed}
    clients = json.dumps([{**known, "token_endpoint_auth_method": "client_secret_post"}])
    with running_server({"MCP_OAUTH_CLIENTS": clients}) as server:
        code = server.get_code("desk")
        assert server.redeem("desk", code, client_secret="another").status == 401  # noqa: S106
        assert server.redeem("desk", code, client_secret="their-own-secret").status == 200  # noqa: S106


def assertion(signer: Signer, server: OAuthServer, client_id: str, **changed: Any) -> dict[str, str]:  # noqa: ANN401
    claims = {"iss": client_id, "sub": client_id, "aud": URL, "exp": int(server.clock()) + 300, "jti": "1", **changed}
    return typed(signer.sign(claims))


def typed(token: str) -> dict[str, str]:
    return {"client_assertion": token, "client_assertion_type": ASSERTION}


@pytest.mark.parametrize(
    "audience", [{URL: 1}, [[URL]], [{}], [], None, 5, True, f"{URL} ", [1, "https://other.example"]]
)
def test_an_assertion_with_an_audience_of_another_type_is_refused(server: OAuthServer, audience: object) -> None:
    signer = Signer("ES256")
    client = server.new_client(token_endpoint_auth_method="private_key_jwt", jwks=signer.jwks)  # noqa: S106
    answer = server.redeem(client, "ks1.A", **assertion(signer, server, client, aud=audience))
    assert (answer.status, answer.json["error"]) == (401, "invalid_client")


@pytest.mark.parametrize("kind", [None, "", "urn:ietf:params:oauth:client-assertion-type:saml2-bearer"])
def test_an_assertion_of_another_type_is_refused(server: OAuthServer, kind: str | None) -> None:
    signer = Signer("ES256")
    client = server.new_client(token_endpoint_auth_method="private_key_jwt", jwks=signer.jwks)  # noqa: S106
    code = server.get_code(client)
    signed: dict[str, str | None] = {**assertion(signer, server, client)}
    assert server.redeem(client, code, **{**signed, "client_assertion_type": kind}).json["error"] == "invalid_client"
    assert server.redeem(client, code, **signed).status == 200


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_a_client_may_authenticate_with_its_own_key(server: OAuthServer, algorithm: str) -> None:
    signer = Signer(algorithm)
    client = server.new_client(token_endpoint_auth_method="private_key_jwt", jwks=signer.jwks)  # noqa: S106
    code = server.get_code(client)
    for changed in (
        {"aud": "https://other.example"},
        {"iss": "somebody"},
        {"sub": "somebody"},
        {"exp": int(server.clock()) - 61},
        {"exp": int(server.clock()) + 3600},
        {"exp": None},
    ):
        assert (
            server.redeem(client, code, **assertion(signer, server, client, **changed)).json["error"]
            == "invalid_client"
        )
    stranger = Signer(algorithm)
    assert server.redeem(client, code, **assertion(stranger, server, client)).status == 401
    assert server.redeem(client, code).status == 401
    assert server.redeem(client, code, **assertion(signer, server, client, aud=[f"{URL}/token"])).status == 200


@pytest.mark.parametrize(
    "token", ["", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", "eyJhbGciOiJIUzI1NiJ9.e30.AAAA", "x" * 20_000]
)
def test_an_unsigned_assertion_is_refused(server: OAuthServer, token: str) -> None:
    client = server.new_client(token_endpoint_auth_method="private_key_jwt", jwks=Signer("ES256").jwks)  # noqa: S106
    assert server.redeem(client, "ks1.A", **typed(token)).json["error"] == "invalid_client"


def test_a_symmetric_signature_with_the_public_key_is_refused(server: OAuthServer) -> None:
    signer = Signer("RS256")
    client = server.new_client(token_endpoint_auth_method="private_key_jwt", jwks=signer.jwks)  # noqa: S106
    forged = signer.confused({"iss": client, "sub": client, "aud": URL, "exp": int(server.clock()) + 60})
    assert server.redeem(client, "ks1.A", **typed(forged)).status == 401


@pytest.mark.parametrize("client_id", [None, "", "desk", "ks1.", "ks1.AAAA", "x" * 5000, "http://host.example/client"])
def test_an_unknown_client_is_refused(server: OAuthServer, client_id: str | None) -> None:
    answer = server.post("/token", {"grant_type": "authorization_code", "client_id": client_id, "resource": RESOURCE})
    assert (answer.status, answer.json["error"]) == (401, "invalid_client")
