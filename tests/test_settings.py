"""A function reads its settings from the template's variables; the log names an invalid value."""

from __future__ import annotations

import pytest

from mcp_functions import Elicit, serve, tool
from mcp_functions.protocol.errors import Misconfigured
from mcp_functions.settings import Settings
from mcp_functions_harness.testing import Conversation
from tests.support.gateways import JWT_SETTINGS
from tests.support.settings import make_settings


def test_only_mcp_stack_is_required() -> None:
    settings = Settings({"MCP_STACK": "shop"})
    assert vars(settings) == vars(make_settings(stack="shop"))


def test_the_default_settings_require_iam_and_allow_no_origin() -> None:
    settings = Settings({"MCP_STACK": "shop"})
    assert settings.auth_mode == "iam"
    assert settings.allowed_origins == frozenset()
    assert settings.kms_keys == ()


def test_every_variable_is_read() -> None:
    settings = Settings(
        {
            "MCP_STACK": "shop",
            "MCP_KMS_KEYS": "arn:a, arn:b,",
            "MCP_STAGE": "test",
            "MCP_GENERATION": "7",
            "MCP_AUTH_MODE": "jwt",
            "MCP_JWT_ISSUER": "https://id.example/",
            "MCP_JWT_AUDIENCE": "https://mcp.example/mcp,another",
            "MCP_RESOURCE_URL": "https://mcp.example/mcp",
            "MCP_SCOPES_SUPPORTED": "work:read, mail:read",
            "MCP_SCOPE_HIERARCHY": "work:write > work:read",
            "MCP_ALLOWED_ORIGINS": "https://a.example,https://b.example",
            "MCP_SERVER_NAME": "The shop",
            "MCP_SERVER_VERSION": "1.2.3",
            "MCP_MAX_BODY_BYTES": "1000",
            "MCP_LIST_TTL_MS": "0",
            "MCP_EARLIER_REVISIONS": "off",
            "MCP_SESSION_SECONDS": "60",
            "MCP_QUESTION_SECONDS": "30",
            "MCP_QUESTIONS_SINCE": "2025-06-18",
        }
    )
    expected = make_settings(
        stack="shop",
        kms_keys=("arn:a", "arn:b"),
        stage="test",
        generation="7",
        auth_mode="jwt",
        jwt_issuer="https://id.example/",
        jwt_audiences=("https://mcp.example/mcp", "another"),
        resource_url="https://mcp.example/mcp",
        scopes_supported=("work:read", "mail:read"),
        scope_hierarchy={"work:write": frozenset({"work:read"})},
        allowed_origins=frozenset({"https://a.example", "https://b.example"}),
        server_name="The shop",
        server_version="1.2.3",
        max_body_bytes=1000,
        list_ttl_ms=0,
        earlier_revisions=False,
        session_seconds=60,
        question_seconds=30,
        questions_since="2025-06-18",
    )
    assert vars(settings) == vars(expected)


@pytest.mark.parametrize("environ", [{}, {"MCP_STACK": ""}])
def test_a_missing_mcp_stack_is_a_misconfiguration(environ: dict[str, str]) -> None:
    with pytest.raises(Misconfigured) as caught:
        Settings(environ)
    assert caught.value.reason == "MCP_STACK is not set: the template sets it to the stack's name"


@pytest.mark.parametrize("mode", ["", "IAM", "OAuth", "iam "])
def test_an_unknown_auth_mode_is_a_misconfiguration(mode: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        Settings({"MCP_STACK": "shop", "MCP_AUTH_MODE": mode})
    assert caught.value.reason == "MCP_AUTH_MODE must be iam, jwt, oauth or none"


@pytest.mark.parametrize("url", ["http://a.example", "https://A.example", "https://a.example?x", "a.example", "/"])
def test_an_invalid_mcp_oauth_url_is_a_misconfiguration(url: str) -> None:
    front = {"MCP_OAUTH_CLIENT_ID": "front", "MCP_AUTH_MODE": "oauth"}
    with pytest.raises(Misconfigured) as caught:
        Settings({"MCP_STACK": "shop", **JWT_SETTINGS, **front, "MCP_OAUTH_URL": url})
    assert "MCP_OAUTH_URL" in caught.value.reason
    assert Settings({"MCP_STACK": "shop", **JWT_SETTINGS, **front, "MCP_OAUTH_URL": ""}).oauth_url == ""


@pytest.mark.parametrize("name", ["MCP_JWT_ISSUER", "MCP_JWT_AUDIENCE"])
@pytest.mark.parametrize("value", [None, "", " ,"])
def test_the_mode_jwt_requires_an_issuer_and_an_audience(name: str, value: str | None) -> None:
    environ = {
        key: text for key, text in {"MCP_STACK": "shop", **JWT_SETTINGS, name: value}.items() if text is not None
    }
    with pytest.raises(Misconfigured) as caught:
        Settings(environ)
    assert caught.value.reason == f"AuthMode is jwt, but {name} is not set: a token could be for anybody"


@pytest.mark.parametrize(
    "url",
    [
        *("mcp.example/mcp", "http://mcp.example/mcp", "ftp://mcp.example/mcp", "https://", "https:///mcp"),
        *(
            "https://MCP.example/mcp",
            "HTTPS://mcp.example/mcp",
            "https://mcp.example/mcp#top",
            "https://mcp.example/?a",
        ),
        *("https://ann@mcp.example/mcp", 'https://mcp.example/"mcp', "https://mcp.example/m cp"),
    ],
)
def test_an_invalid_resource_url_is_a_misconfiguration(url: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        Settings({"MCP_STACK": "shop", **JWT_SETTINGS, "MCP_RESOURCE_URL": url})
    assert caught.value.reason.startswith("MCP_RESOURCE_URL must be the URL that clients connect to")


@pytest.mark.parametrize("url", ["https://mcp.example", "https://mcp.example:8443/a/b", "http://127.0.0.1:8000/mcp"])
def test_a_resource_may_have_a_port_and_a_path_and_be_on_loopback(url: str) -> None:
    assert Settings({"MCP_STACK": "shop", **JWT_SETTINGS, "MCP_RESOURCE_URL": url}).resource_url == url


def test_an_invalid_scope_hierarchy_is_a_misconfiguration_that_quotes_it() -> None:
    with pytest.raises(Misconfigured) as caught:
        Settings({"MCP_STACK": "shop", "MCP_SCOPE_HIERARCHY": "a > b, c"})
    assert caught.value.reason == (
        "MCP_SCOPE_HIERARCHY holds c: write chains, the broadest scope first, as in a > b > c, d > b"
    )


@pytest.mark.parametrize("name", ["MCP_MAX_BODY_BYTES", "MCP_LIST_TTL_MS"])
@pytest.mark.parametrize("value", ["", "-1", "1.5", "many"])
def test_a_limit_that_is_no_whole_number_is_a_misconfiguration(name: str, value: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        Settings({"MCP_STACK": "shop", name: value})
    assert caught.value.reason == f"{name} must be a whole number"


def test_a_state_length_of_0_is_a_misconfiguration(monkeypatch: pytest.MonkeyPatch) -> None:
    @tool
    def book(*, elicit: Elicit) -> str:
        return elicit("seat", "Where?", str)

    monkeypatch.setenv("MCP_MAX_STATE_CHARS", "0")
    talk = Conversation(serve(book)).call()
    assert talk.error["message"] == "Internal error"


def test_a_revision_that_is_no_date_is_a_misconfiguration() -> None:
    with pytest.raises(Misconfigured) as caught:
        Settings({"MCP_STACK": "shop", "MCP_QUESTIONS_SINCE": "never"})
    assert caught.value.reason == "MCP_QUESTIONS_SINCE must be a revision, as in 2025-11-25"


def test_the_error_for_an_invalid_token_binding_explains_the_allowed_claims() -> None:
    with pytest.raises(Misconfigured) as caught:
        Settings({"MCP_STACK": "shop", "MCP_OAUTH_BINDING": "sub"})
    text = "MCP_OAUTH_BINDING must be aud or client_id"
    assert caught.value.reason == text


def test_a_switch_that_is_neither_on_nor_off_is_a_misconfiguration() -> None:
    with pytest.raises(Misconfigured) as caught:
        Settings({"MCP_STACK": "shop", "MCP_EARLIER_REVISIONS": "true"})
    assert caught.value.reason == "MCP_EARLIER_REVISIONS must be on or off"


def test_the_client_does_not_see_a_misconfiguration() -> None:
    with pytest.raises(Misconfigured) as caught:
        Settings({})
    assert caught.value.message == "Internal error"
    assert caught.value.data is None


def test_the_server_names_itself_with_name_and_version() -> None:
    settings = Settings({"MCP_STACK": "shop", "MCP_SERVER_VERSION": "2"})
    assert settings.server_info == {"name": "shop", "version": "2"}


@pytest.mark.parametrize(("mode", "scope"), [("iam", "private"), ("jwt", "private"), ("none", "public")])
def test_lists_have_a_public_cache_scope_only_without_sign_in(mode: str, scope: str) -> None:
    settings = Settings({"MCP_STACK": "shop", **JWT_SETTINGS, "MCP_AUTH_MODE": mode, "MCP_LIST_TTL_MS": "5"})
    assert settings.cache_hints == {"ttlMs": 5, "cacheScope": scope}
