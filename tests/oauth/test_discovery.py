"""The metadata, routes, headers and log lines of the authorization server."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken

from tests.oauth.oauth_server import RESOURCE, SCOPES, URL, OAuthServer, changed_settings, running_server
from tests.support import filters

WELL_KNOWN = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")


@pytest.mark.parametrize("path", WELL_KNOWN)
def test_the_server_publishes_authorization_server_metadata(server: OAuthServer, path: str) -> None:
    answer = server.send("GET", path)
    assert answer.status == 200
    metadata = answer.json
    assert metadata["issuer"] == URL
    for name in ("authorize", "token", "register", "revoke"):
        assert f"{URL}/{name}" in metadata.values()
    assert metadata["code_challenge_methods_supported"] == ["S256"]
    assert metadata["authorization_response_iss_parameter_supported"] is True
    assert metadata["client_id_metadata_document_supported"] is True
    assert metadata["scopes_supported"] == SCOPES.split()
    assert metadata["protected_resources"] == [RESOURCE]
    assert metadata["response_types_supported"] == ["code"]
    assert "none" in metadata["token_endpoint_auth_methods_supported"]


def test_the_official_client_reads_the_metadata_the_registration_and_the_tokens(server: OAuthServer) -> None:
    OAuthMetadata.model_validate(server.send("GET", WELL_KNOWN[0]).json)
    client = server.register("https://host.example/callback", "http://localhost:3000/callback")
    OAuthClientInformationFull.model_validate(client)
    OAuthToken.model_validate(server.get_tokens(client["client_id"]))


def test_an_issuer_with_a_path_has_its_metadata_at_both_specified_urls() -> None:
    with running_server({"MCP_OAUTH_URL": f"{URL}/sign-in"}) as server:
        paths = (WELL_KNOWN[0] + "/sign-in", WELL_KNOWN[1] + "/sign-in", "/sign-in" + WELL_KNOWN[1])
        assert {server.send("GET", path).json["issuer"] for path in paths} == {f"{URL}/sign-in"}
        assert server.send("GET", WELL_KNOWN[0]).status == 404
        client = server.send("POST", "/sign-in/register", body={"redirect_uris": ["https://host.example/cb"]})
        assert client.status == 201
        page = server.new_browser().get(
            "/sign-in" + server.authorize_url(client.json["client_id"], redirect_uri="https://host.example/cb")
        )
        assert f'action="{URL}/sign-in/authorize"' in page.body


def test_the_server_has_no_jwks_because_it_signs_nothing(server: OAuthServer) -> None:
    url = server.send("GET", WELL_KNOWN[1]).json["jwks_uri"]
    assert server.send("GET", url.removeprefix(URL)).json == {"keys": []}


@pytest.mark.parametrize("path", ["/", "/login", "/token/", "/.well-known/other", "/mcp", "/AUTHORIZE"])
def test_any_other_path_is_not_found(server: OAuthServer, path: str) -> None:
    assert server.send("GET", path).status == 404


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/token", "POST"),
        ("GET", "/register", "POST"),
        ("GET", "/revoke", "POST"),
        ("POST", "/callback", "GET"),
        ("PUT", "/authorize", "GET, POST"),
        ("DELETE", "/register", "POST"),
    ],
)
def test_any_other_method_is_refused(server: OAuthServer, method: str, path: str, allowed: str) -> None:
    answer = server.send(method, path)
    assert (answer.status, answer.headers["allow"]) == (405, allowed)


def test_cors_allows_every_origin_to_call_client_endpoints_without_cookies(server: OAuthServer) -> None:
    for path in ("/token", "/register", "/revoke", WELL_KNOWN[0]):
        answer = server.send("OPTIONS", path, headers={"origin": "https://host.example"})
        assert answer.status == 204
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize("path", ["/authorize", "/callback"])
def test_cors_forbids_other_origins_to_read_browser_pages(server: OAuthServer, path: str) -> None:
    assert server.send("OPTIONS", path, headers={"origin": "https://host.example"}).status == 405
    answer = server.send("GET", path, headers={"origin": "https://host.example"})
    assert "access-control-allow-origin" not in answer.headers


def test_only_documents_may_be_cached_and_no_response_may_be_sniffed(server: OAuthServer, client: str) -> None:
    browser = server.new_browser()
    answers = [
        server.send("POST", "/register", body={"redirect_uris": ["https://host.example/cb"]}),
        browser.authorize(client),
        server.redeem(client, "ks1.A"),
        browser.get("/callback"),
        server.send("GET", "/nothing"),
    ]
    for answer in answers:
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["strict-transport-security"]
        assert answer.headers["referrer-policy"] in {"no-referrer", "same-origin"}
    assert server.send("GET", WELL_KNOWN[0]).headers["cache-control"] == "public, max-age=300"


def test_the_response_of_a_crash_has_no_details(server: OAuthServer, caplog: pytest.LogCaptureFixture) -> None:
    def crash(_operation: str) -> Exception:
        raise BaseException("planted-secret")  # noqa: TRY002 - whatever a library may raise

    server.kms.weather = crash
    answer = server.send("POST", "/register", body={"redirect_uris": ["https://host.example/cb"]})
    assert (answer.status, answer.json["error"]) == (500, "server_error")
    assert "planted" not in answer.body + caplog.text
    assert filters.count_metrics([vars(caplog.records[-1])])["Crashed"] == 1, (
        "without a dimension, nothing would be counted"
    )


def test_a_server_with_missing_or_invalid_settings_is_an_internal_error(
    server: OAuthServer, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("MCP_OAUTH_CLIENT_ID", "MCP_JWT_ISSUER", "MCP_JWT_AUDIENCE", "MCP_KMS_KEYS"):
        caplog.clear()
        with changed_settings({name: None}):
            assert server.send("GET", WELL_KNOWN[0]).status == 500
        assert name in caplog.text
    wrong = {
        "MCP_OAUTH_URL": "http://mcp.example",
        "MCP_OAUTH_CLIENTS": "{}}",
        "MCP_OAUTH_REGISTRATION": "yes",
        "MCP_OAUTH_RESOURCE_PARAMETER": "aud",
        "MCP_AUTH_MODE": "jwt",
    }
    for name, value in wrong.items():
        with changed_settings({name: value}):
            assert server.send("GET", WELL_KNOWN[0]).status == 500


def test_the_log_line_names_the_endpoint_but_no_value_of_the_request(
    server: OAuthServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "mcp_functions")
    client = server.new_client()
    server.sign_in(client, state="planted-unspeakable-state")
    lines = [vars(record) for record in caplog.records if record.name == "mcp_functions"]
    assert [line["method"] for line in lines] == ["register", "authorize", "authorize", "callback"]
    assert {line["outcome"] for line in lines} == {"complete"}
    assert client not in str(lines)


def test_a_stopped_server_responds_with_retry_after(server: OAuthServer, client: str) -> None:
    with changed_settings({"MCP_STOPPED_FUNCTIONS": "add, oauth"}):
        stopped = [server.send("POST", "/token", form={"client_id": client}), server.authorize(client)]
    assert [(answer.status, answer.headers["retry-after"]) for answer in stopped] == [(503, "300")] * 2
    assert stopped[0].json["error"] == "temporarily_unavailable"
    with changed_settings({"MCP_STOPPED_FUNCTIONS": "add"}):
        assert server.send("GET", WELL_KNOWN[0]).status == 200


PLANTED = "planted-unspeakable"
NAMES = (
    "client_id", "redirect_uri", "state", "code", "code_verifier", "code_challenge", "scope", "resource", "prompt",
    "request", "decision", "iss", "error", "error_description", "refresh_token", "token", "client_secret",
    "client_assertion", "client_name", "jwks_uri", PLANTED,
)  # fmt: skip


@pytest.mark.parametrize("path", ["/authorize", "/callback", "/token", "/revoke", "/register"])
def test_no_value_of_a_request_reaches_the_log_or_the_response(
    server: OAuthServer, client: str, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    secret = {name: f"{PLANTED}-{name}" for name in NAMES}
    valid = {"client_id": client, "resource": RESOURCE}
    known = {**secret, **valid, "client_assertion": "", "client_secret": ""}
    headers = dict.fromkeys(("origin", "referer", "user-agent", "x-forwarded-for", "traceparent"), PLANTED)
    for form in (secret, known, dict.fromkeys(NAMES, f"ks1.{PLANTED}"), dict.fromkeys(NAMES, f"https://{PLANTED}/x")):
        for authorization in ("", f"Bearer {PLANTED}", f"Basic {PLANTED}"):
            for grant in ("authorization_code", "refresh_token"):
                sent = {**headers, "authorization": authorization} if authorization else headers
                query = f"{path}?{urlencode(form)}"
                answers = [
                    server.send(
                        "GET", query, headers=sent, cookies=dict.fromkeys(("__Host-mcp-browser", "x"), PLANTED)
                    ),
                    server.send("POST", path, form={**form, "grant_type": grant}, headers=sent),
                    server.send("POST", path, body=form, headers=sent),
                ]
                assert PLANTED not in "".join(f"{answer.headers} {answer.body} {answer.cookies}" for answer in answers)
    assert PLANTED not in caplog.text
