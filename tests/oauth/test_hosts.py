"""Hosts as they are: requests that honest hosts send, and what they get.

`HOSTS` is the table: what a host does, and the answer. Each row was reported for a host, or is allowed by a standard.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

import pytest

from tests.oauth.oauth_server import (
    HOST_REDIRECT,
    RESOURCE,
    URL,
    VERIFIER,
    OAuthServer,
    changed_settings,
    running_server,
)
from tests.support import https_site
from tests.support.https_site import CLIENT, PATH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.oauth.browser import Answer

WELL_KNOWN = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
CURSOR = [
    "cursor://anysphere.cursor-mcp/oauth/callback",
    "https://www.cursor.com/agents/mcp/oauth/callback",
]
VS_CODE = [
    "https://insiders.vscode.dev/redirect", "https://vscode.dev/redirect", "http://localhost/", "http://127.0.0.1/",
    "http://localhost:33418/", "http://127.0.0.1:33418/",
]  # fmt: skip


def register(server: OAuthServer, **metadata: object) -> Answer:
    return server.send("POST", "/register", body={"redirect_uris": [HOST_REDIRECT], **metadata})


def authorize(server: OAuthServer, extra: str) -> Answer:
    url = server.authorize_url(server.new_client(), resource=None)
    return server.new_browser().get(f"{url}{extra}")


def redeem(server: OAuthServer, extra: str, **headers: str) -> Answer:
    """Redeem a code without `resource`, with a further part of the form."""
    client = server.new_client()
    code = server.get_code(client)
    form = f"grant_type=authorization_code&client_id={quote(client)}&code={quote(code)}&code_verifier={VERIFIER}{extra}"
    return server.send("POST", "/token", form=form, headers=headers)


def resource(*urls: str) -> str:
    return "".join(f"&resource={quote_plus(url)}" for url in urls)


def redirect(url: str) -> str:
    return f"&redirect_uri={quote_plus(url)}"


def basic(server: OAuthServer, secret: str) -> Answer:
    client = server.new_client()
    pair = base64.b64encode(f"{quote_plus(client)}:{secret}".encode()).decode()
    code = server.get_code(client)
    return server.redeem(client, code, {"authorization": f"Basic {pair}"}, client_id=None)


Row = tuple[str, "Callable[[OAuthServer], Answer]", int, str]
HOSTS: list[Row] = [
    # what the host does, the request, the status, and the error or a part of the body
    ("resource twice at /authorize", lambda s: authorize(s, resource(RESOURCE, RESOURCE)), 200, "Allow access?"),
    ("two resources at /authorize", lambda s: authorize(s, resource(RESOURCE, f"{URL}/x/y")), 400, "stopped"),
    ("resource twice at /token", lambda s: redeem(s, resource(RESOURCE, RESOURCE)), 200, "access_token"),
    ("two resources at /token", lambda s: redeem(s, resource(RESOURCE, f"{URL}/x/y")), 400, "invalid_target"),
    ("another parameter twice", lambda s: redeem(s, f"&code_verifier={VERIFIER}"), 400, "invalid_request"),
    ("the host in capitals", lambda s: redeem(s, resource("HTTPS://MCP.Example/mcp")), 200, "access_token"),
    ("the port of https", lambda s: redeem(s, resource("https://mcp.example:443/mcp")), 200, "access_token"),
    ("an escape that is not needed", lambda s: redeem(s, resource(f"{URL}/%6Dcp")), 200, "access_token"),
    ("one function's own URL", lambda s: redeem(s, resource(f"{RESOURCE}/add")), 200, "access_token"),
    ("another port", lambda s: redeem(s, resource("https://mcp.example:444/mcp")), 400, "invalid_target"),
    ("a query", lambda s: redeem(s, resource(f"{RESOURCE}?x=1")), 400, "invalid_target"),
    ("a user", lambda s: redeem(s, resource("https://mcp.example@evil.example/mcp")), 400, "invalid_target"),
    ("another path", lambda s: redeem(s, resource(f"{URL}/mcpx")), 400, "invalid_target"),
    ("no URL", lambda s: redeem(s, resource("https://[")), 400, "invalid_target"),
    ("no redirect_uri at /token (OAuth 2.1)", lambda s: redeem(s, ""), 200, "access_token"),
    ("the same redirect_uri", lambda s: redeem(s, redirect(HOST_REDIRECT)), 200, "access_token"),
    ("another redirect_uri", lambda s: redeem(s, redirect(f"{HOST_REDIRECT}/x")), 400, "invalid_grant"),
    (
        "nulls",
        lambda s: register(s, grant_types=None, response_types=None, token_endpoint_auth_method=None),
        201,
        "ks1",
    ),
    (
        "null for all the rest",
        lambda s: register(s, client_name=None, jwks=None, jwks_uri=None, scope=None),
        201,
        "ks1",
    ),
    ("null for what is needed", lambda s: register(s, redirect_uris=None), 400, "invalid_redirect_uri"),
    ("an empty scope", lambda s: register(s, scope=""), 201, "ks1"),
    (
        "a redirect that is refused",
        lambda s: register(s, redirect_uris=["x:/", HOST_REDIRECT]),
        400,
        "invalid_redirect",
    ),
    ("the redirects of Cursor", lambda s: register(s, redirect_uris=CURSOR), 201, CURSOR[0]),
    ("the redirects of VS Code", lambda s: register(s, redirect_uris=VS_CODE), 201, VS_CODE[-1]),
    ("Basic with an empty secret", lambda s: basic(s, ""), 200, "access_token"),
    ("Basic with a secret of no client", lambda s: basic(s, "x"), 401, "invalid_client"),
    ("offline_access", lambda s: authorize(s, ""), 200, "Allow access?"),
]


@pytest.mark.parametrize(("send", "status", "part"), [row[1:] for row in HOSTS], ids=[row[0] for row in HOSTS])
def test_a_host_as_it_is(server: OAuthServer, send: Callable[[OAuthServer], Answer], status: int, part: str) -> None:
    answer = send(server)
    assert (answer.status, part in answer.body) == (status, True), answer.body[:300]


def test_a_client_of_a_function_signs_in_for_the_functions_own_url(server: OAuthServer) -> None:
    tokens = server.get_tokens(server.new_client(), resource=f"{RESOURCE}/add")
    assert tokens["access_token"]


def test_a_loopback_client_of_oauth_2_1_needs_no_redirect_uri_at_the_token_endpoint(server: OAuthServer) -> None:
    client = server.new_client("http://127.0.0.1:1/cb")
    code = server.get_code(client, redirect_uri="http://127.0.0.1:49152/cb")
    assert server.redeem(client, code, redirect_uri=None).status == 200


@pytest.mark.parametrize("path", WELL_KNOWN)
def test_the_head_of_the_metadata_has_no_body(server: OAuthServer, path: str) -> None:
    head, whole = server.send("HEAD", path), server.send("GET", path)
    assert (head.status, head.body, head.headers) == (200, "", whole.headers)


def test_a_preflight_allows_the_headers_of_a_trace(server: OAuthServer) -> None:
    answer = server.send("OPTIONS", "/token", headers={"origin": "https://inspector.example"})
    allowed = answer.headers["access-control-allow-headers"]
    assert {"traceparent", "tracestate", "baggage"} <= set(allowed.split(", "))


def test_a_refresh_token_that_is_too_long_to_be_sealed_is_left_out(server: OAuthServer, client: str) -> None:
    def answer_with_long_token(path: str, answer: dict[str, object], _issuer: object) -> None:
        if path == "/token":
            answer["refresh_token"] = "r" * 6000

    server.provider.change_answer = answer_with_long_token
    tokens = server.get_tokens(client)
    assert tokens["access_token"]
    assert "refresh_token" not in tokens


def test_only_the_redirect_of_the_request_matters_in_a_document(tmp_path: Path) -> None:
    others = ["javascript:alert(1)", *(f"https://other.example/{number}" for number in range(40))]
    document = {"client_id": CLIENT, "redirect_uris": [*others, HOST_REDIRECT]}
    with https_site.serving(tmp_path) as site, running_server(network=site.network) as server:
        site.documents[PATH] = document
        assert server.get_tokens(CLIENT)["access_token"]
        assert server.authorize(CLIENT, redirect_uri=others[0]).status == 400
        with changed_settings({"MCP_OAUTH_BLOCKED_HOSTS": "other.example"}):
            assert server.authorize(CLIENT).status == 400


# What strangers register


@pytest.mark.parametrize(
    "uri",
    [
        "cursor://anysphere.cursor-deeplink/mcp/install?config=x",
        "goose://extension?cmd=x",
        "vscode:extension/callback",
        "vscode:mcp/install?x",
        "vscode://file/c:/windows",
        "raycast://extensions/x/y",
        "warp://action/new_tab",
        "claude://new?q=x",
        "cursor://x/../install/callback",
        "windsurf://oauth/callback%2f..%2finstall",
    ],
)
def test_an_applications_deep_link_is_no_redirect(server: OAuthServer, uri: str) -> None:
    assert register(server, redirect_uris=[uri]).json["error"] == "invalid_redirect_uri"


def test_a_state_may_have_2048_characters_with_everything_else_at_its_longest(server: OAuthServer) -> None:
    scopes = " ".join(f"items.{'x' * 80}{number}" for number in range(5))
    longest = "https://host.example/".ljust(512, "x")
    with changed_settings({"MCP_SCOPES_SUPPORTED": scopes}):
        client = server.new_client(longest)
        state = '"' * 2048
        prompt = "login select_account consent"
        answer = server.sign_in(client, state=state, redirect_uri=longest, scope=scopes, prompt=prompt)
    assert answer.parameters["state"] == state
