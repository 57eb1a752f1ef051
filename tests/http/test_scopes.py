"""A handler declares the scopes that it needs; the operator configures which scope includes which.

No `from __future__ import annotations` here, because most authors' modules have none.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from mcp_functions import Elicit, prompt, resource, serve, settings, tool
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol import scopes
from mcp_functions.testing import Conversation, deployed
from tests.support import gateways, wire
from tests.support.gateways import JWT_SETTINGS
from tests.support.placements import PLACEMENTS, place

ISSUER = JWT_SETTINGS["MCP_JWT_ISSUER"]
METADATA = "https://mcp.example/.well-known/oauth-protected-resource/mcp"


class Sure(BaseModel):
    sure: bool


@tool(scopes=["work:write", "work:sign"])
def close(item: int, *, elicit: Elicit) -> str:
    """Close a work item."""
    return f"{item} closed: {elicit('sure', 'Sure?', Sure).sure}"


@tool
def look() -> str:
    """Look around."""
    return "nothing to see"


@prompt(scopes=["work:read"])
def summary(item: str) -> str:
    """Summarize a work item."""
    return f"Summarize {item}."


@summary.complete("item")
def items(value: str, _known: object) -> list[str]:
    return [f"{value}-secret"]


@resource("work://{item}", scopes=["work:read"])
def work(item: str) -> str:
    """Read a work item."""
    return f"all of {item}"


@pytest.fixture(params=PLACEMENTS)
def function(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> LambdaFunction:
    for name, value in JWT_SETTINGS.items():
        monkeypatch.setenv(name, value)
    return place(request.param, close, look, summary, work)


def ask(function: LambdaFunction, method: str, params: Any, **claims: str) -> dict[str, Any]:  # noqa: ANN401 - JSON
    event = gateways.by_jwt(wire.event(wire.message(method, params)), iss=ISSUER, sub="ann", **claims)
    return function(event, wire.Context("local_all"))


CLOSE = ("tools/call", {"name": "close", "arguments": {"item": 1}})
SUMMARY = ("prompts/get", {"name": "summary", "arguments": {"item": "1"}})
WORK = ("resources/read", {"uri": "work://1"})
COMPLETE = (
    "completion/complete",
    {"ref": {"type": "ref/prompt", "name": "summary"}, "argument": {"name": "item", "value": "1"}},
)


# --- the refusal --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "scope"),
    [(CLOSE, "work:write work:sign"), (SUMMARY, "work:read"), (WORK, "work:read"), (COMPLETE, "work:read")],
)
def test_a_token_that_lacks_a_scope_gets_the_names_of_all_that_are_needed(
    call: tuple[str, dict[str, Any]], scope: str, function: LambdaFunction
) -> None:
    response = ask(function, *call, scope="mail:read")
    assert response["statusCode"] == 403
    assert response["headers"]["www-authenticate"] == (
        f'Bearer error="insufficient_scope", scope="{scope}", resource_metadata="{METADATA}"'
    )
    assert wire.read(response, call[0]) == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {
            "code": -32600,
            "message": "The access token lacks a scope",
            "data": {"reason": "insufficient_scope", "scope": scope},
        },
    }


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({}, 403),
        ({"scope": ""}, 403),
        ({"scope": "work:write"}, 403),
        ({"scope": "work:sign"}, 403),
        ({"scope": "work:writer work:signer"}, 403),
        ({"scope": "WORK:WRITE WORK:SIGN"}, 403),
        ({"scope": "work:write work:sign"}, 200),
        ({"scope": "work:sign mail work:write"}, 200),
        ({"scope": "[work:sign work:write]"}, 200),  # a list, as API Gateway writes it
        ({"scp": "work:sign work:write"}, 200),
        ({"scp": "[work:sign work:write]"}, 200),
        ({"scope": "mail", "scp": "work:sign work:write"}, 403),
        ({"scopes": "work:sign work:write", "permissions": "work:sign work:write"}, 403),
    ],
)
def test_every_scope_is_required_and_compared_exactly(
    claims: dict[str, str], status: int, function: LambdaFunction
) -> None:
    assert ask(function, *CLOSE, **claims)["statusCode"] == status


def test_a_handler_without_scopes_accepts_every_token(function: LambdaFunction) -> None:
    response = ask(function, "tools/call", {"name": "look"})
    assert wire.read(response, "tools/call")["result"]["content"] == [{"type": "text", "text": "nothing to see"}]


def test_a_refusal_omits_arguments_and_state(function: LambdaFunction) -> None:
    params = {"name": "close", "arguments": {"item": "no number"}, "requestState": "no state"}
    assert ask(function, "tools/call", params)["statusCode"] == 403


def test_an_unknown_name_is_unknown_to_every_token(function: LambdaFunction) -> None:
    response = ask(function, "tools/call", {"name": "open"})
    assert (response["statusCode"], json.loads(response["body"])["error"]["message"]) == (200, "Unknown tool")


@pytest.mark.parametrize("method", ["tools/list", "prompts/list", "resources/templates/list", "server/discover"])
def test_lists_are_the_same_for_every_token(method: str, function: LambdaFunction) -> None:
    few, many = (ask(function, method, {}, scope=scope) for scope in ("", "work:read work:write work:sign"))
    assert few == many
    assert wire.read(few, method)["result"]["cacheScope"] == "private"


# --- in a conversation --------------------------------------------------------------------------------------------


def test_an_author_tests_a_scope_in_a_conversation() -> None:
    handler = serve(close)
    assert Conversation(handler, principal="ann").call(item=1).status == 403
    talk = Conversation(handler, principal="ann", scopes=["work:write", "work:sign"]).call(item=1)
    assert talk.accept(sure={"sure": True}).text == "1 closed: True"


def test_a_conversation_continues_with_the_token_of_a_step_up(function: LambdaFunction) -> None:
    asked = wire.read(ask(function, *CLOSE, scope="work:write work:sign", jti="1"), "tools/call")["result"]
    answers = {"sure": {"action": "accept", "content": {"sure": True}}}
    params = CLOSE[1] | {"requestState": asked["requestState"], "inputResponses": answers}
    assert ask(function, "tools/call", params, scope="work:read", jti="2")["statusCode"] == 403
    done = ask(function, "tools/call", params, scope="work:read work:sign work:write", jti="3")
    assert wire.read(done, "tools/call")["result"]["content"][0]["text"] == "1 closed: True"


# --- where there are no tokens ------------------------------------------------------------------------------------


def test_an_open_deployment_checks_no_scope() -> None:
    with deployed():
        assert Conversation(serve(close)).call(item=1).asked == ["sure"]


def test_signed_callers_have_no_scopes_so_the_operator_must_act(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MCP_AUTH_MODE", "iam")
    function = serve(close, look)
    event = gateways.by_iam(gateways.http_api(gateways.http_request(wire.message(*CLOSE))), "ann")
    assert function(event, wire.Context("local_all"))["statusCode"] == 500
    expected = "close needs scopes, which only tokens have: deploy with AuthMode jwt, or remove its scopes"
    assert expected in caplog.text
    event = gateways.by_iam(
        gateways.http_api(gateways.http_request(wire.message("tools/call", {"name": "look"}))), "ann"
    )
    assert function(event, wire.Context("local_all"))["statusCode"] == 200


# --- hierarchies --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("granted", "status"),
    [("work:admin", 200), ("admin", 200), ("work:write", 403), ("work:write work:sign", 200), ("mail", 403)],
)
def test_a_broader_scope_is_enough(granted: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chains = "admin > work:admin > work:write > work:read, work:admin > work:sign"
    for name, value in (JWT_SETTINGS | {"MCP_SCOPE_HIERARCHY": chains}).items():
        monkeypatch.setenv(name, value)
    assert ask(serve(close), *CLOSE, scope=granted)["statusCode"] == status


def test_a_hierarchy_reaches_over_several_steps() -> None:
    assert scopes.read_hierarchy(" a>b > c ,, d > b") == {
        "a": frozenset("bc"),
        "b": frozenset("c"),
        "d": frozenset("bc"),
    }
    assert scopes.read_hierarchy("") == {}


def test_scopes_that_include_each_other_are_the_same() -> None:
    known = scopes.read_hierarchy("a > b > c > a")
    assert [scopes.expand([scope], known) for scope in "abc"] == [frozenset("abc")] * 3


@pytest.mark.parametrize("text", ["a", "a >", "> a", "a > > b", 'a > "b"', "a > b c", "a > b > é"])
def test_an_invalid_hierarchy_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(ValueError, match=r".+") as caught:
        scopes.read_hierarchy(f"x > y, {text}")
    assert str(caught.value) == text


WORDS = st.sampled_from("abcdef")


@given(st.lists(st.lists(WORDS, min_size=2, max_size=4)), st.sets(WORDS), WORDS)
def test_a_scope_more_never_allows_less(chains: list[list[str]], granted: set[str], more: str) -> None:
    known = scopes.read_hierarchy(",".join(" > ".join(chain) for chain in chains))
    allowed = scopes.expand(granted, known)
    assert granted <= allowed <= scopes.expand(granted | {more}, known)
    assert scopes.expand(allowed, known) == allowed


# --- declaring them -----------------------------------------------------------------------------------------------


def never() -> str:
    return ""


@pytest.mark.parametrize(
    "decorate",
    [
        lambda given: tool(scopes=given)(never),
        lambda given: prompt(scopes=given)(never),
        lambda given: resource("a://b", scopes=given)(never),
    ],
)
@pytest.mark.parametrize("given", ["work:write", ["work write"], [""], ['"'], ["a\\b"], ["é"]])
def test_scopes_are_a_list_of_strings(decorate: Callable[[Any], object], given: Any) -> None:  # noqa: ANN401
    with pytest.raises(TypeError, match="scopes is a list of words without blanks or quotes"):
        decorate(given)


def test_scopes_may_be_urls() -> None:
    assert tool(scopes=["https://api.example/work.write"])(never).scopes == ("https://api.example/work.write",)


def test_the_list_omits_scopes() -> None:
    assert "scope" not in json.dumps([close.describe(), summary.describe(), work.describe()])


def test_no_hierarchy_is_the_default() -> None:
    assert settings.read({"MCP_STACK": "shop", **JWT_SETTINGS}).scope_hierarchy == {}
