"""`/authorize` checks the request of a host, and decides where an error goes.

`server.authorize` opens a valid request in a new browser. A keyword replaces one of its parameters; None removes it.
"""

from __future__ import annotations

import json

import pytest

from tests.oauth.oauth_server import (
    CLIENT_AT_PROVIDER,
    HOST_REDIRECT,
    LOOPBACK_REDIRECT,
    RESOURCE,
    URL,
    OAuthServer,
    changed_settings,
    pkce_challenge,
    running_server,
    token_claims,
)

EVIL = "https://evil.example/callback"
LONGEST_REDIRECT = "https://host.example/".ljust(512, "x")


@pytest.mark.parametrize(
    "redirect",
    [
        EVIL,
        f"{HOST_REDIRECT}/more",
        f"{HOST_REDIRECT}?a=b",
        HOST_REDIRECT.replace("https", "http"),
        "https://host.example:8443/callback",
        "https://host.example@evil.example/callback",
        HOST_REDIRECT.upper(),
        f"{HOST_REDIRECT}#fragment",
        None,
    ],
)
def test_the_server_does_not_redirect_to_an_unregistered_uri(
    server: OAuthServer, client: str, redirect: str | None
) -> None:
    answer = server.authorize(client, redirect_uri=redirect)
    assert answer.status == 400
    assert not answer.location
    assert "evil" not in answer.body


@pytest.mark.parametrize(
    "redirect",
    [
        "http://127.0.0.1:3000/other",
        "http://127.0.0.2:3000/callback",
        "http://localhost:3000/callback",
        "http://127.0.0.1:3000@evil.example/callback",
        "http://127.0.0.1.evil.example/callback",
        "https://127.0.0.1:3000/callback",
        "http://127.0.0.1:999999/callback",
    ],
)
def test_only_the_port_of_a_loopback_redirect_may_differ(server: OAuthServer, redirect: str) -> None:
    client = server.new_client(LOOPBACK_REDIRECT)
    assert server.authorize(client, redirect_uri=redirect).status == 400


def test_an_error_page_shows_nothing_of_the_request(server: OAuthServer) -> None:
    pages = [
        server.authorize("planted-secret-client"),
        server.authorize(server.new_client(), redirect_uri=EVIL),
        server.new_browser().get("/callback?code=c&state=s"),
        server.new_browser().get("/authorize"),
    ]
    assert {page.body for page in pages} == {pages[0].body}
    assert all(page.headers["content-type"].startswith("text/html") for page in pages)
    assert {page.headers["referrer-policy"] for page in pages} == {"no-referrer"}


WRONG: list[tuple[dict[str, str | None], str]] = [
    ({"code_challenge": None}, "invalid_request"),
    ({"code_challenge_method": None}, "invalid_request"),
    ({"code_challenge_method": "plain"}, "invalid_request"),
    ({"code_challenge": "short"}, "invalid_request"),
    ({"code_challenge": "x" * 44}, "invalid_request"),
    ({"response_type": "token"}, "unsupported_response_type"),
    ({"response_type": "code id_token"}, "unsupported_response_type"),
    ({"response_type": None}, "unsupported_response_type"),
    ({"response_mode": "fragment"}, "invalid_request"),
    ({"response_mode": "form_post"}, "invalid_request"),
    ({"resource": "https://other.example/mcp"}, "invalid_target"),
    ({"resource": f"{RESOURCE}/"}, "invalid_target"),
    ({"scope": "items.read admin"}, "invalid_scope"),
    ({"scope": 'items.read "'}, "invalid_scope"),
    ({"scope": "x" * 600}, "invalid_scope"),
    ({"prompt": "none"}, "interaction_required"),
    ({"request": "eyJ"}, "request_not_supported"),
    ({"request_uri": "https://evil.example/r"}, "request_not_supported"),
]
CLIENTS = json.dumps([{"client_id": "desk", "redirect_uris": [HOST_REDIRECT]}])


@pytest.mark.parametrize(("changed", "error"), WRONG)
def test_a_client_gets_the_error_of_its_authorization_request(
    server: OAuthServer, changed: dict[str, str | None], error: str
) -> None:
    with changed_settings({"MCP_OAUTH_CLIENTS": CLIENTS}):
        answer = server.authorize("desk", **changed)
    assert answer.status == 303
    assert answer.location.startswith(HOST_REDIRECT)
    assert (answer.parameters["error"], answer.parameters["state"], answer.parameters["iss"]) == (
        error,
        "host-state",
        URL,
    )


@pytest.mark.parametrize(("changed", "_error"), WRONG)
def test_an_error_does_not_redirect_to_a_self_registered_client(
    server: OAuthServer, client: str, changed: dict[str, str | None], _error: str
) -> None:
    answer = server.authorize(client, **changed)
    assert (answer.status, answer.location) == (400, "")


def test_an_error_redirects_to_the_client_if_the_browser_remembers_a_consent(server: OAuthServer, client: str) -> None:
    browser = server.new_browser()
    browser.allow(browser.authorize(client), remember="yes")
    assert browser.authorize(client, prompt="none").parameters["error"] == "interaction_required"
    assert server.authorize(client, prompt="none").status == 400
    assert browser.authorize(client, prompt="none", scope="items.write").status == 400
    assert browser.authorize(server.new_client(), prompt="none").status == 400


def test_an_authorization_request_without_a_resource_is_for_this_server(server: OAuthServer, client: str) -> None:
    assert token_claims(server.get_tokens(client, resource=None)["access_token"])["aud"] == RESOURCE


def test_a_resource_at_the_root_may_end_with_a_slash() -> None:
    with running_server({"MCP_RESOURCE_URL": URL}) as server:
        assert server.authorize(server.new_client(), resource=f"{URL}/").status == 200


def test_an_authorization_request_without_scopes_gets_those_of_the_server(server: OAuthServer, client: str) -> None:
    page = server.new_browser().get(server.authorize_url(client, scope="openid offline_access profile"))
    assert "items.read, items.write" in page.body


@pytest.mark.parametrize("scope", ["aws.cognito.signin.user.admin", "items.read", "openid items.read"])
def test_a_server_that_lists_no_scope_refuses_every_scope(scope: str) -> None:
    with running_server({"MCP_SCOPES_SUPPORTED": "", "MCP_OAUTH_CLIENTS": CLIENTS}) as server:
        assert server.authorize("desk", scope=scope).parameters["error"] == "invalid_scope"
        browser = server.new_browser()
        page = browser.authorize("desk", scope="openid offline_access")
        assert browser.allow(page).parameters["scope"] == "openid"


def test_a_repeated_parameter_is_refused(server: OAuthServer, client: str) -> None:
    url = server.authorize_url(client)
    assert server.new_browser().get(f"{url}&redirect_uri={EVIL}").status == 400
    assert server.new_browser().get(f"{url}&scope=items.write").status == 400


def test_a_state_that_is_too_long_for_a_url_is_refused(server: OAuthServer) -> None:
    answer = server.authorize(server.new_client(), state="s" * 2049)
    assert answer.status == 400
    foreign = server.authorize(server.new_client(), state="\U0001f600")
    assert foreign.status == 400
    for longest in ("s" * 2048, '"' * 2048):
        client = server.new_client(LONGEST_REDIRECT)
        answer = server.sign_in(client, state=longest, redirect_uri=LONGEST_REDIRECT)
        assert answer.parameters["state"] == longest


@pytest.mark.parametrize("query", ["a=%ff", "&".join(f"p{n}=1" for n in range(40)), "x=" + "y" * 40000])
def test_a_malformed_query_is_refused(server: OAuthServer, query: str) -> None:
    assert server.new_browser().get(f"/authorize?{query}").status == 400


def test_the_server_sends_its_own_pkce_challenge_nonce_and_state_to_the_provider(
    server: OAuthServer, client: str
) -> None:
    browser = server.new_browser()
    parameters = browser.allow(browser.authorize(client)).parameters
    assert parameters["client_id"] == CLIENT_AT_PROVIDER
    assert parameters["redirect_uri"] == f"{URL}/callback"
    assert parameters["code_challenge_method"] == "S256"
    assert parameters["code_challenge"] != pkce_challenge()
    assert parameters["state"].startswith("ks1.")
    assert "host-state" not in parameters["state"]
    assert len(parameters["nonce"]) == 43
    assert parameters["resource"] == RESOURCE
    assert parameters["scope"] == "openid items.read"


def test_each_sign_in_has_its_own_challenge_nonce_and_state(server: OAuthServer, client: str) -> None:
    browser = server.new_browser()
    first, second = (browser.allow(browser.authorize(client)).parameters for _ in range(2))
    assert first["nonce"] != second["nonce"]
    assert first["code_challenge"] != second["code_challenge"]
    assert first["nonce"] not in first["code_challenge"]


def test_a_browser_is_redirected_with_303_so_that_no_form_is_sent_to_the_provider(
    server: OAuthServer, client: str
) -> None:
    browser = server.new_browser()
    answer = browser.allow(browser.authorize(client))
    assert answer.status == 303
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_the_server_requests_scopes_with_the_prefix_of_the_provider() -> None:
    changes = {"MCP_OAUTH_SCOPE_PREFIX": "api://shop/", "MCP_OAUTH_EXTRA_SCOPES": "offline_access"}
    with running_server(changes) as server:
        browser, client = server.new_browser(), server.new_client()
        parameters = browser.allow(browser.authorize(client)).parameters
        assert parameters["scope"] == "openid offline_access api://shop/items.read"
        assert server.get_tokens(client)["scope"] == "items.read"
