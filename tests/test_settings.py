"""What the template sets is what a function decides by; a value that means nothing is said so, in the log."""

from __future__ import annotations

import pytest

from mcp_functions import settings
from mcp_functions.errors import Misconfigured


def test_the_stack_is_all_that_must_be_set() -> None:
    found = settings.read({"MCP_STACK": "shop"})
    assert found == settings.Settings(stack="shop", server_name="shop")


def test_the_default_is_closed() -> None:
    found = settings.read({"MCP_STACK": "shop"})
    assert found.auth_mode == "iam"
    assert found.allowed_origins == frozenset()
    assert found.kms_keys == ()


def test_every_variable_is_read() -> None:
    found = settings.read(
        {
            "MCP_STACK": "shop",
            "MCP_KMS_KEYS": "arn:a, arn:b,",
            "MCP_STAGE": "test",
            "MCP_GENERATION": "7",
            "MCP_AUTH_MODE": "jwt",
            "MCP_ALLOWED_ORIGINS": "https://a.example,https://b.example",
            "MCP_SERVER_NAME": "The shop",
            "MCP_SERVER_VERSION": "1.2.3",
            "MCP_MAX_BODY_BYTES": "1000",
            "MCP_LIST_TTL_MS": "0",
        }
    )
    assert found == settings.Settings(
        stack="shop",
        kms_keys=("arn:a", "arn:b"),
        stage="test",
        generation="7",
        auth_mode="jwt",
        allowed_origins=frozenset({"https://a.example", "https://b.example"}),
        server_name="The shop",
        server_version="1.2.3",
        max_body_bytes=1000,
        list_ttl_ms=0,
    )


@pytest.mark.parametrize("environ", [{}, {"MCP_STACK": ""}])
def test_without_a_stack_nothing_starts(environ: dict[str, str]) -> None:
    with pytest.raises(Misconfigured) as caught:
        settings.read(environ)
    assert caught.value.reason == "MCP_STACK is not set: the template sets it to the stack's name"


@pytest.mark.parametrize("mode", ["", "IAM", "oauth", "iam "])
def test_an_unknown_auth_mode_is_not_taken_for_none(mode: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        settings.read({"MCP_STACK": "shop", "MCP_AUTH_MODE": mode})
    assert caught.value.reason == "MCP_AUTH_MODE must be iam, jwt or none"


@pytest.mark.parametrize("name", ["MCP_MAX_BODY_BYTES", "MCP_LIST_TTL_MS"])
@pytest.mark.parametrize("value", ["", "-1", "1.5", "many"])
def test_a_limit_is_a_whole_number(name: str, value: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        settings.read({"MCP_STACK": "shop", name: value})
    assert caught.value.reason == f"{name} must be a whole number"


def test_the_operators_mistake_is_not_told_to_the_client() -> None:
    with pytest.raises(Misconfigured) as caught:
        settings.read({})
    assert caught.value.message == "Internal error"
    assert caught.value.data is None


def test_the_server_names_itself_with_name_and_version() -> None:
    found = settings.read({"MCP_STACK": "shop", "MCP_SERVER_VERSION": "2"})
    assert found.server_info == {"name": "shop", "version": "2"}


@pytest.mark.parametrize(("mode", "scope"), [("iam", "private"), ("jwt", "private"), ("none", "public")])
def test_lists_are_shared_only_where_nobody_signs_in(mode: str, scope: str) -> None:
    found = settings.read({"MCP_STACK": "shop", "MCP_AUTH_MODE": mode, "MCP_LIST_TTL_MS": "5"})
    assert found.cache == {"ttlMs": 5, "cacheScope": scope}
