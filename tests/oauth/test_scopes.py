"""A client gets no more than its user saw on the consent page, and is told the scopes of this server alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.oauth.oauth_server import OAuthServer, running_server

if TYPE_CHECKING:
    from mcp_functions_harness.issuer import Issuer


class Granting:
    """Changes what the provider grants: the scopes in the access token and in the answer; None leaves them out."""

    granted: str | None = None
    answered: str | None = None

    def __call__(self, path: str, answer: dict[str, Any], issuer: Issuer) -> None:
        if path == "/token" and "access_token" in answer:
            answer["access_token"] = issuer.token(scope=self.granted or "")
            answer.pop("scope", None)
            if self.answered is not None:
                answer["scope"] = self.answered


def sign_in(server: OAuthServer, scope: str = "items.read") -> tuple[int, str | None]:
    """Sign in for a scope; return the status of `/token`, and the scope or the error that the client is told."""
    client = server.new_client()
    answer = server.redeem(client, server.get_code(client, scope=scope))
    assert ("access_token" in answer.json) == (answer.status == 200)
    return answer.status, answer.json.get("scope", answer.json.get("error"))


@pytest.mark.parametrize(
    ("granted", "answered", "told"),
    [
        ("items.read", "items.read", "items.read"),
        ("openid items.read User.Read", "items.read User.Read", "items.read"),  # Entra ID
        ("email profile items.read", "openid email profile items.read", "items.read"),  # Keycloak's default scopes
        ("items.read", None, "items.read"),
        (None, "items.read", "items.read"),
        (None, None, "items.read"),
        ("profile", None, None),
    ],
)
def test_a_client_is_told_what_the_provider_grants_of_this_servers_scopes(
    granted: str | None, answered: str | None, told: str | None
) -> None:
    granting = Granting()
    granting.granted, granting.answered = granted, answered
    with running_server(change_answer=granting) as server:
        assert sign_in(server) == (200, told)


@pytest.mark.parametrize(
    ("granted", "answered"),
    [
        ("items.read items.write", "items.read"),
        ("items.read items.write", None),
        ("items.read", "items.read items.write"),
        (None, "items.read items.write"),
        ("items.write", None),
        ("admin", None),
    ],
)
def test_a_token_that_grants_more_than_the_page_showed_reaches_nobody(
    granted: str | None, answered: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    granting = Granting()
    granting.granted, granting.answered = granted, answered
    with running_server({"MCP_SCOPE_HIERARCHY": "admin > items.write > items.read"}, change_answer=granting) as server:
        assert sign_in(server) == (400, "invalid_scope")
    assert "the provider grants more than the consent page showed" in caplog.text


def test_a_scope_includes_what_the_page_did_not_name() -> None:
    granting = Granting()
    granting.granted = "items.read items.write"
    with running_server({"MCP_SCOPE_HIERARCHY": "items.write > items.read"}, change_answer=granting) as server:
        assert sign_in(server, "items.write") == (200, "items.read items.write")


def test_the_prefix_of_the_provider_hides_no_scope() -> None:
    granting = Granting()
    granting.granted = "api://shop/items.read api://shop/items.write"
    with running_server({"MCP_OAUTH_SCOPE_PREFIX": "api://shop/"}, change_answer=granting) as server:
        assert sign_in(server) == (400, "invalid_scope")
        assert sign_in(server, "items.read items.write") == (200, "items.read items.write")


def test_a_refresh_gets_no_more_than_the_page_showed() -> None:
    granting = Granting()
    granting.granted = "items.read"
    with running_server(change_answer=granting) as server:
        client = server.new_client()
        token = server.get_tokens(client)["refresh_token"]
        granting.granted = "items.read items.write"
        wider = server.refresh(client, token)
        assert (wider.status, wider.json["error"]) == (400, "invalid_scope")
        assert "access_token" not in wider.json


def test_a_provider_that_grants_no_part_of_its_scopes_has_all_of_them_on_the_page() -> None:
    granting = Granting()
    granting.granted = "items.read items.write"
    with running_server({"MCP_OAUTH_ALL_SCOPES": "on"}, change_answer=granting) as server:
        page = server.authorize(server.new_client(), scope="items.read")
        assert re.search("items.read, items.write", page.body)
        assert sign_in(server) == (200, "items.read items.write")


@pytest.mark.parametrize(
    ("asked", "extra", "sent"),
    [
        ("consent", "", None),
        ("login consent", "", "login"),
        ("select_account", "", "select_account"),
        (None, "consent", "consent"),
        ("login", "consent", "login consent"),
        ("consent", "consent", "consent"),
    ],
)
def test_a_host_cannot_make_the_provider_ask_for_consent_but_an_operator_can(
    asked: str | None, extra: str, sent: str | None
) -> None:
    with running_server({"MCP_OAUTH_EXTRA_PROMPT": extra}) as server:
        browser = server.new_browser()
        parameters = browser.allow(browser.authorize(server.new_client(), prompt=asked)).parameters
        assert parameters.get("prompt") == sent


def test_an_unknown_prompt_of_the_operator_is_a_misconfiguration(caplog: pytest.LogCaptureFixture) -> None:
    with running_server({"MCP_OAUTH_EXTRA_PROMPT": "none"}) as server:
        assert server.authorize("desk").status == 500
    assert "MCP_OAUTH_EXTRA_PROMPT" in caplog.text
