"""The dispatcher finds what answers a request, by the method and by the name in the params.

`Client(add, …)` has a Lambda function with the handler `add`. `call` calls a tool; `send` sends any other request.
Both return the reply, which the official types have checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import (
    prompt,
    resource,
    tool,
)
from tests.support import wire
from tests.support.dispatching import Client

if TYPE_CHECKING:
    from collections.abc import Mapping

INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601


# Methods and parameters


@tool
def add(a: int, b: int) -> int:
    return a + b


@prompt
def explain(topic: str) -> str:
    return f"Explain {topic}."


@resource("docs://{page}")
def read_page(page: str) -> str:
    return f"The page {page}"


@pytest.fixture
def client() -> Client:
    """Return the client of a function whose handlers ask nothing."""
    return Client(add, explain, read_page)


def test_tools_call_returns_the_result_of_the_tool(client: Client) -> None:
    assert client.call("add", {"a": 1, "b": 2}).text == "3"


def test_prompts_get_returns_the_messages_of_the_prompt(client: Client) -> None:
    result = client.send("prompts/get", {"name": "explain", "arguments": {"topic": "tides"}}).result
    assert result["messages"][0]["content"]["text"] == "Explain tides."


def test_resources_read_returns_the_contents_of_the_resource(client: Client) -> None:
    result = client.send("resources/read", {"uri": "docs://start"}).result
    assert result["contents"][0]["text"] == "The page start"


@pytest.mark.parametrize(
    "method", ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"]
)
def test_the_dispatcher_answers_every_list(client: Client, method: str) -> None:
    reply = client.send(method)
    assert reply.status == 200
    assert reply.result["resultType"] == "complete"


@pytest.mark.parametrize(
    "method",
    [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/list",
        "tasks/result",
        "roots/list",
        "sampling/createMessage",
        "elicitation/create",
        "completion/complete",
        "subscriptions/listen",
        "",
        "TOOLS/LIST",
    ],
)
def test_any_other_method_is_404_with_a_json_rpc_body(client: Client, method: str) -> None:
    reply = client.send(method)
    assert reply.status == 404
    assert reply.error == {"code": METHOD_NOT_FOUND, "message": "Method not found"}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("prompts/get", {"name": "x"}),
        ("prompts/list", {}),
        ("resources/read", {"uri": "x://"}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
    ],
)
def test_a_method_that_is_not_advertised_is_404_too(method: str, params: dict[str, Any]) -> None:
    reply = Client(add).send(method, params)
    assert reply.status == 404
    assert reply.code == METHOD_NOT_FOUND


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "nothing"}),
        pytest.param("prompts/get", {"name": "add"}, id="the name of a tool"),
        ("resources/read", {"uri": "docs:///"}),
        ("tools/list", {"cursor": "x"}),
    ],
)
def test_an_unknown_name_is_a_200_with_an_error(client: Client, method: str, params: dict[str, Any]) -> None:
    reply = client.send(method, params)
    assert reply.status == 200
    assert reply.code == INVALID_PARAMS


def test_the_error_for_an_unknown_resource_has_its_uri(client: Client) -> None:
    reply = client.send("resources/read", {"uri": "docs:///"})
    assert reply.body["error"]["data"] == {"uri": "docs:///"}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        pytest.param("tools/call", {}, id="no name"),
        pytest.param("tools/call", {"name": 7}, id="a name that is a number"),
        pytest.param("tools/call", {"name": "add", "arguments": []}, id="arguments that are an array"),
        pytest.param("tools/call", {"name": "add", "arguments": "x"}, id="arguments that are a string"),
        pytest.param("prompts/get", {"name": "explain", "arguments": {"topic": 7}}, id="a number for a prompt"),
        pytest.param("resources/read", {"uri": None}, id="no uri"),
        pytest.param("tools/call", {"name": "add", "inputResponses": None}, id="answers that are null"),
        pytest.param("tools/call", {"name": "add", "inputResponses": []}, id="answers that are an array"),
        pytest.param("tools/call", {"name": "add", "inputResponses": {"x": 7}}, id="an answer that is a number"),
        pytest.param("tools/call", {"name": "add", "inputResponses": {"x": None}}, id="an answer that is null"),
    ],
)
def test_params_of_another_shape_are_400(client: Client, method: str, params: dict[str, Any]) -> None:
    reply = client.send(method, params)
    assert reply.status == 400
    assert reply.code == INVALID_PARAMS


@pytest.mark.parametrize(
    "meta",
    [
        {wire.PREFIX + "logLevel": "loud"},
        {wire.PREFIX + "logLevel": []},
        {"progressToken": 1.5},
        {"progressToken": True},
        {"progressToken": None},
    ],
)
def test_reserved_meta_of_another_shape_is_400(client: Client, meta: dict[str, Any]) -> None:
    reply = client.call("add", {"a": 1, "b": 2}, meta=meta)
    assert reply.status == 400
    assert reply.code == INVALID_PARAMS


def test_invalid_arguments_of_a_tool_are_an_error_result(client: Client) -> None:
    reply = client.call("add", {"a": 1})  # `b` is missing
    assert reply.status == 200
    assert reply.result["isError"] is True


@pytest.mark.parametrize("arguments", [{}, {"topic": "x", "more": "y"}])
def test_invalid_arguments_of_a_prompt_are_a_json_rpc_error(client: Client, arguments: dict[str, str]) -> None:
    assert client.send("prompts/get", {"name": "explain", "arguments": arguments}).code == INVALID_PARAMS


# Caching


@resource("notes://", ttl_ms=60_000, cache_scope="public")
def list_notes() -> str:
    return "none"


def test_a_resource_without_questions_has_its_authors_cache_lifetime() -> None:
    result = Client(list_notes).send("resources/read", {"uri": "notes://"}).result
    assert result["ttlMs"] == 60_000
    assert result["cacheScope"] == "public"


def test_a_resource_that_was_read_with_answers_must_not_be_cached() -> None:
    result = Client(list_notes).send("resources/read", {"uri": "notes://", "inputResponses": {}}).result
    assert result["ttlMs"] == 0
    assert result["cacheScope"] == "private"


def test_a_resource_takes_precedence_over_a_template_that_matches_its_uri() -> None:
    @resource("a://{x}")
    def template(x: str) -> str:
        return x

    @resource("a://b")
    def exact() -> str:
        return "exact"

    client = Client(template, exact)
    assert client.send("resources/read", {"uri": "a://b"}).result["contents"][0]["text"] == "exact"
    assert client.send("resources/read", {"uri": "a://c"}).result["contents"][0]["text"] == "c"


# Completions


@prompt
def translate(language: str) -> str:
    return f"Translate into {language}."


@translate.complete("language")
def _complete_language(value: str, arguments: Mapping[str, str]) -> list[str]:
    languages = ["german", "polish", "portuguese", *arguments.values()]
    return [language for language in languages if language.startswith(value)]


def complete(**changes: Any) -> wire.Reply:  # noqa: ANN401 - JSON
    """Complete "po", the beginning of a language. A keyword replaces a parameter of the request."""
    params = {"ref": {"type": "ref/prompt", "name": "translate"}, "argument": {"name": "language", "value": "po"}}
    return Client(translate, read_page).send("completion/complete", {**params, **changes})


def test_completion_complete_returns_the_values_of_an_argument() -> None:
    assert complete().result["completion"]["values"] == ["polish", "portuguese"]


def test_a_completion_may_depend_on_the_other_arguments() -> None:
    reply = complete(context={"arguments": {"other": "pomeranian"}})
    assert reply.result["completion"]["values"] == ["polish", "portuguese", "pomeranian"]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"ref": {"type": "ref/prompt", "name": "nobody"}}, id="an unknown prompt"),
        pytest.param({"ref": {"type": "ref/tool", "name": "translate"}}, id="an unknown type of reference"),
        pytest.param({"ref": None}, id="no reference"),
        pytest.param({"argument": {"name": "nothing", "value": ""}}, id="an unknown argument"),
        pytest.param({"argument": {"name": "language"}}, id="no value"),
        pytest.param({"argument": None}, id="no argument"),
        pytest.param({"context": []}, id="a context that is an array"),
        pytest.param({"context": {"arguments": {"x": 1}}}, id="an argument in the context that is a number"),
    ],
)
def test_an_invalid_completion_request_is_invalid_params(changes: dict[str, Any]) -> None:
    assert complete(**changes).code == INVALID_PARAMS


def test_a_completion_names_a_resource_by_its_template() -> None:
    reply = complete(ref={"type": "ref/resource", "uri": "docs://{page}"}, argument={"name": "page", "value": ""})
    assert reply.result["completion"]["values"] == []
