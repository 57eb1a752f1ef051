"""A handler declares the scopes that a token needs, and the operator configures which scope includes which.

`function` has handlers with and without scopes, once as one Lambda and once behind an endpoint. `send` sends a request
with a verified token, as API Gateway passes its claims.

Without `from __future__ import annotations`, because most authors' modules have none.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from mcp_functions import Elicit, prompt, resource, serve, settings, tool
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol import scopes
from mcp_functions_harness.testing import Conversation, deployed
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
    answer = elicit("sure", "Sure?", Sure)
    return f"{item} closed: {answer.sure}"


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


def send(function: LambdaFunction, method: str, params: Any, **claims: str) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Send a request with a token that has these claims."""
    event = gateways.by_jwt(wire.event(wire.message(method, params)), iss=ISSUER, sub="ann", **claims)
    return function(event, wire.Context("local_all"))


CLOSE = ("tools/call", {"name": "close", "arguments": {"item": 1}})
SUMMARY = ("prompts/get", {"name": "summary", "arguments": {"item": "1"}})
WORK = ("resources/read", {"uri": "work://1"})
COMPLETE = (
    "completion/complete",
    {"ref": {"type": "ref/prompt", "name": "summary"}, "argument": {"name": "item", "value": "1"}},
)


# The refusal


@pytest.mark.parametrize(
    ("call", "scope"),
    [
        pytest.param(CLOSE, "work:write work:sign", id="a tool"),
        pytest.param(SUMMARY, "work:read", id="a prompt"),
        pytest.param(WORK, "work:read", id="a resource"),
        pytest.param(COMPLETE, "work:read", id="a completion"),
    ],
)
def test_a_token_that_lacks_a_scope_gets_the_names_of_all_that_are_needed(
    call: tuple[str, dict[str, Any]], scope: str, function: LambdaFunction
) -> None:
    response = send(function, *call, scope="mail:read")
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
    "claims",
    [
        pytest.param({"scope": "work:write work:sign"}, id="scope"),
        pytest.param({"scope": "work:sign mail work:write"}, id="another order, and one scope more"),
        pytest.param({"scope": "[work:sign work:write]"}, id="a list, as API Gateway writes it"),
        pytest.param({"scp": "work:sign work:write"}, id="scp, as Microsoft Entra writes it"),
        pytest.param({"scp": "[work:sign work:write]"}, id="a list in scp"),
    ],
)
def test_a_token_with_every_scope_may_call(claims: dict[str, str], function: LambdaFunction) -> None:
    assert send(function, *CLOSE, **claims)["statusCode"] == 200


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param({}, id="no scope"),
        pytest.param({"scope": ""}, id="an empty scope"),
        pytest.param({"scope": "work:write"}, id="only the first"),
        pytest.param({"scope": "work:sign"}, id="only the second"),
        pytest.param({"scope": "work:writer work:signer"}, id="longer names"),
        pytest.param({"scope": "WORK:WRITE WORK:SIGN"}, id="capitals"),
        pytest.param({"scope": "mail", "scp": "work:sign work:write"}, id="scp beside scope"),
        pytest.param({"scopes": "work:sign work:write", "permissions": "work:sign work:write"}, id="other claims"),
    ],
)
def test_every_scope_is_required_and_compared_exactly(claims: dict[str, str], function: LambdaFunction) -> None:
    assert send(function, *CLOSE, **claims)["statusCode"] == 403


def test_a_handler_without_scopes_accepts_every_token(function: LambdaFunction) -> None:
    response = send(function, "tools/call", {"name": "look"})
    assert wire.read(response, "tools/call")["result"]["content"] == [{"type": "text", "text": "nothing to see"}]


def test_scopes_are_checked_before_the_arguments_and_the_state(function: LambdaFunction) -> None:
    params = {"name": "close", "arguments": {"item": "no number"}, "requestState": "no state"}
    assert send(function, "tools/call", params)["statusCode"] == 403


def test_an_unknown_name_is_unknown_to_every_token(function: LambdaFunction) -> None:
    response = send(function, "tools/call", {"name": "open"})
    assert response["statusCode"] == 200
    assert json.loads(response["body"])["error"]["message"] == "Unknown tool"


@pytest.mark.parametrize("method", ["tools/list", "prompts/list", "resources/templates/list", "server/discover"])
def test_lists_are_the_same_for_every_token(method: str, function: LambdaFunction) -> None:
    without_scopes = send(function, method, {}, scope="")
    with_scopes = send(function, method, {}, scope="work:read work:write work:sign")
    assert without_scopes == with_scopes
    assert wire.read(with_scopes, method)["result"]["cacheScope"] == "private"


# In a conversation


def test_a_conversation_without_the_scopes_is_refused() -> None:
    assert Conversation(serve(close), principal="ann").call(item=1).status == 403


def test_a_conversation_with_the_scopes_runs_to_its_end() -> None:
    talk = Conversation(serve(close), principal="ann", scopes=["work:write", "work:sign"]).call(item=1)
    assert talk.accept(sure={"sure": True}).text == "1 closed: True"


def test_a_conversation_continues_with_the_token_of_a_step_up(function: LambdaFunction) -> None:
    first = wire.Reply.of(send(function, *CLOSE, scope="work:write work:sign", jti="1"), "tools/call")
    answers = {"sure": {"action": "accept", "content": {"sure": True}}}
    params = CLOSE[1] | {"requestState": first.state, "inputResponses": answers}
    assert send(function, "tools/call", params, scope="work:read", jti="2")["statusCode"] == 403
    last = wire.Reply.of(send(function, "tools/call", params, scope="work:sign work:write", jti="3"), "tools/call")
    assert last.text == "1 closed: True"


# Where there are no tokens


def test_an_open_deployment_checks_no_scope() -> None:
    with deployed():
        assert Conversation(serve(close)).call(item=1).asked == ["sure"]


def call_signed(function: LambdaFunction, tool: str, arguments: Mapping[str, Any]) -> int:
    """Call a tool with a signed request, which has no token. Return the HTTP status."""
    message = wire.message("tools/call", {"name": tool, "arguments": arguments})
    event = gateways.by_iam(gateways.http_api(gateways.http_request(message)), "ann")
    status: int = function(event, wire.Context("local_all"))["statusCode"]
    return status


def test_signed_callers_have_no_scopes_so_the_operator_must_act(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MCP_AUTH_MODE", "iam")
    assert call_signed(serve(close), "close", {"item": 1}) == 500
    expected = "close needs scopes, which only tokens have: deploy with AuthMode jwt, or remove its scopes"
    assert expected in caplog.text


def test_signed_callers_may_call_a_handler_without_scopes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_AUTH_MODE", "iam")
    assert call_signed(serve(close, look), "look", {}) == 200


# Hierarchies


@pytest.mark.parametrize(
    ("granted", "status"),
    [
        pytest.param("work:admin", 200, id="includes both"),
        pytest.param("admin", 200, id="includes both over two steps"),
        pytest.param("work:write work:sign", 200, id="both"),
        pytest.param("work:write", 403, id="one of both"),
        pytest.param("mail", 403, id="another scope"),
    ],
)
def test_a_broader_scope_includes_a_narrower_one(granted: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chains = "admin > work:admin > work:write > work:read, work:admin > work:sign"
    for name, value in (JWT_SETTINGS | {"MCP_SCOPE_HIERARCHY": chains}).items():
        monkeypatch.setenv(name, value)
    assert send(serve(close), *CLOSE, scope=granted)["statusCode"] == status


def test_a_scope_hierarchy_may_have_several_levels() -> None:
    hierarchy = scopes.read_hierarchy(" a>b > c ,, d > b")
    assert {scope: scopes.expand([scope], hierarchy) for scope in "abcd"} == {
        "a": frozenset("abc"),
        "b": frozenset("bc"),
        "c": frozenset("c"),
        "d": frozenset("bcd"),
    }
    assert scopes.read_hierarchy("") == {}


def test_scopes_that_include_each_other_are_the_same() -> None:
    hierarchy = scopes.read_hierarchy("a > b > c > a")
    for scope in "abc":
        assert scopes.expand([scope], hierarchy) == frozenset("abc")


@pytest.mark.parametrize("text", ["a", "a >", "> a", "a > > b", 'a > "b"', "a > b c", "a > b > é"])
def test_an_invalid_hierarchy_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(ValueError, match=r".+") as caught:
        scopes.read_hierarchy(f"x > y, {text}")
    assert str(caught.value) == text


SCOPES = st.sampled_from("abcdef")


@given(st.lists(st.lists(SCOPES, min_size=2, max_size=4)), st.sets(SCOPES), SCOPES)
def test_an_additional_scope_never_removes_a_permission(chains: list[list[str]], granted: set[str], more: str) -> None:
    hierarchy = scopes.read_hierarchy(",".join(" > ".join(chain) for chain in chains))
    allowed = scopes.expand(granted, hierarchy)
    assert granted <= allowed
    assert allowed <= scopes.expand(granted | {more}, hierarchy)


# Declarations


def do_nothing() -> str:
    return ""


@pytest.mark.parametrize(
    "decorate",
    [
        pytest.param(lambda scopes: tool(scopes=scopes)(do_nothing), id="a tool"),
        pytest.param(lambda scopes: prompt(scopes=scopes)(do_nothing), id="a prompt"),
        pytest.param(lambda scopes: resource("a://b", scopes=scopes)(do_nothing), id="a resource"),
    ],
)
@pytest.mark.parametrize(
    "scopes",
    [
        pytest.param("work:write", id="a string"),
        pytest.param(["work write"], id="a blank"),
        pytest.param([""], id="an empty scope"),
        pytest.param(['"'], id="a quote"),
        pytest.param(["a\\b"], id="a backslash"),
        pytest.param(["é"], id="a letter outside ASCII"),
    ],
)
def test_an_invalid_scope_is_refused_at_decoration(decorate: Callable[[object], object], scopes: object) -> None:
    with pytest.raises(TypeError, match="scopes is a list of words without blanks or quotes"):
        decorate(scopes)


def test_scopes_may_be_urls() -> None:
    assert tool(scopes=["https://api.example/work.write"])(do_nothing).scopes == ("https://api.example/work.write",)


def test_a_handlers_description_omits_its_scopes() -> None:
    assert "scope" not in json.dumps([close.describe(), summary.describe(), work.describe()])


def test_no_hierarchy_is_the_default() -> None:
    assert settings.Settings({"MCP_STACK": "shop", **JWT_SETTINGS}).scope_hierarchy == {}
