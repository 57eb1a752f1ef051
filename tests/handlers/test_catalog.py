"""The catalog: lists, their pages, and the function that answers a name.

No `from __future__ import annotations` here, because most authors' modules have none.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_functions import Header, Log, prompt, resource, serve, tool
from mcp_functions.handlers import catalog, lists, lookup
from mcp_functions.handlers.tools import Tool
from mcp_functions.protocol.errors import HeaderMismatch, InvalidParams, MethodNotFound, ResourceNotFound, UnknownName
from mcp_functions.settings import Settings
from tests.support import wire

CACHE = {"ttlMs": 5, "cacheScope": "private"}


def named(name: str) -> Tool[[], str]:
    @tool(name=name)
    def function() -> str:
        return name

    return function


@tool
def add(a: int) -> int:
    """Add one."""
    return a + 1


@tool
def regional(region: Annotated[str, Header("Region")], *, log: Log) -> str:
    log.info("asked")
    return region


@prompt
def brief(topic: str) -> str:
    return topic


@resource("config://app")
def config() -> str:
    return ""


@resource("tickets://{project}/{number}")
def ticket(project: str, number: int) -> str:
    return f"{project}{number}"


EVERYTHING = catalog.build([regional, add, brief, config, ticket], "all")


def listed(result: dict[str, Any], method: str) -> None:
    meta = {"_meta": {wire.PREFIX + "serverInfo": {"name": "s", "version": "1"}}}
    wire.check({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", **result, **meta}}, method)


def ask(
    offered: Mapping[str, Any],
    method: str = "server/discover",
    params: Mapping[str, Any] | None = None,
    *,
    size: int = 100,
    instructions: str = "",
) -> dict[str, Any]:
    """Answer discovery or a list from a catalog, without the members that every result has."""
    found = lists.Lists(offered, Settings(stack="local", page_size=size, list_ttl_ms=5), {"instructions": instructions})
    result = dict(found.answer(method, {**(params or {}), "_meta": {}}).result)
    del result["resultType"], result["_meta"]
    return result


def test_a_catalog_is_json_and_the_same_for_the_same_handlers() -> None:
    again = catalog.build([ticket, config, brief, add, regional], "all")
    assert json.dumps(again) == json.dumps(EVERYTHING)
    assert json.loads(json.dumps(EVERYTHING)) == EVERYTHING


def test_a_catalog_names_the_function_of_everything() -> None:
    assert EVERYTHING["functions"] == {
        "tools": {"add": "all", "regional": "all"},
        "prompts": {"brief": "all"},
        "resources": {"config://app": "all"},
        "resourceTemplates": {"tickets://{project}/{number}": "all"},
    }


def test_names_are_unique_in_a_function() -> None:
    with pytest.raises(ValueError, match="two tools named 'add': names are unique"):
        catalog.build([add, named("add")])


def test_names_are_unique_among_functions() -> None:
    with pytest.raises(ValueError, match="two tools named 'add', in one and in two: names are unique"):
        catalog.merge([catalog.build([add], "one"), catalog.build([named("add")], "two")])


def test_a_tool_and_a_prompt_may_share_a_name() -> None:
    @prompt(name="add")
    def addition() -> str:
        return ""

    assert catalog.build([add, addition])["functions"]["prompts"] == {"add": ""}


def test_merging_is_the_same_in_any_order() -> None:
    parts = [catalog.build([handler], handler.name) for handler in (add, regional, brief, config, ticket)]
    merged = catalog.merge(parts)
    assert json.dumps(catalog.merge(reversed(parts))) == json.dumps(merged)
    assert {entry["name"] for entry in merged["tools"]} == {"add", "regional"}
    assert merged["functions"]["tools"] == {"add": "add", "regional": "regional"}
    assert merged["logging"] is True
    assert catalog.merge([]) == catalog.build([])


# server/discover


def test_only_the_kinds_of_handlers_of_the_catalog_are_advertised() -> None:
    assert ask(catalog.build([add]))["capabilities"] == {"tools": {}}
    assert ask(catalog.build([ticket]))["capabilities"] == {"resources": {}}
    assert ask(catalog.build([]))["capabilities"] == {}
    assert ask(EVERYTHING)["capabilities"] == {
        "tools": {},
        "prompts": {},
        "resources": {},
        "logging": {},
    }


def test_completions_are_advertised_when_a_handler_completes() -> None:
    @prompt
    def greet(name: str) -> str:
        return name

    @greet.complete("name")
    def names(_value: str, _arguments: Mapping[str, str]) -> list[str]:
        return ["Ann"]

    assert ask(catalog.build([greet]))["capabilities"] == {"prompts": {}, "completions": {}}
    assert names("", {}) == ["Ann"]


def test_discovery_says_what_the_specification_requires() -> None:
    result = ask(EVERYTHING, instructions="Be nice")
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["instructions"] == "Be nice"
    assert CACHE.items() <= result.items()
    listed(result, "server/discover")
    assert "instructions" not in ask(EVERYTHING)


def test_a_function_tells_the_clients_of_its_own_endpoint_how_to_use_it() -> None:
    function = serve(add, instructions="Add with care.")
    response = function(wire.event(wire.message("server/discover")), wire.Context("local_add"))
    assert wire.messages(response)[0]["result"]["instructions"] == "Add with care."


# Lists


@pytest.mark.parametrize(
    ("method", "key", "names"),
    [
        ("tools/list", "tools", ["add", "regional"]),
        ("prompts/list", "prompts", ["brief"]),
        ("resources/list", "resources", ["config"]),
        ("resources/templates/list", "resourceTemplates", ["ticket"]),
    ],
)
def test_a_list_is_sorted_and_names_its_cache_lifetime(method: str, key: str, names: list[str]) -> None:
    result = ask(EVERYTHING, method)
    assert [entry["name"] for entry in result[key]] == names
    assert result.keys() == {key, "ttlMs", "cacheScope"}
    listed(result, method)


@pytest.mark.parametrize("method", ["tools/list", "prompts/list", "resources/list", "resources/templates/list"])
def test_a_list_that_is_not_advertised_is_an_unknown_method(method: str) -> None:
    with pytest.raises(MethodNotFound):
        ask(catalog.build([]), method)


def test_resources_are_one_capability_with_two_lists() -> None:
    assert ask(catalog.build([ticket]), "resources/list")["resources"] == []
    assert ask(catalog.build([config]), "resources/templates/list")["resourceTemplates"] == []


@given(st.integers(0, 12), st.integers(1, 5))
def test_pages_hold_every_entry_once_and_in_order(count: int, size: int) -> None:
    offered = catalog.build([add, *(named(f"t{number:02}") for number in range(count))])
    seen: list[str] = []
    params: dict[str, Any] = {}
    for _page in range(count + 2):
        result = ask(offered, "tools/list", params, size=size)
        assert 0 < len(result["tools"]) <= size
        assert CACHE.items() <= result.items()
        seen += [entry["name"] for entry in result["tools"]]
        if "nextCursor" not in result:
            break
        params = {"cursor": result["nextCursor"]}
    assert seen == [entry["name"] for entry in offered["tools"]]


@pytest.mark.parametrize("cursor", ["", "0", "1", "x-1", None, 1, [], {}])
def test_a_cursor_that_was_never_issued_is_refused(cursor: Any) -> None:  # noqa: ANN401
    offered = catalog.build([named(f"t{number}") for number in range(5)])
    with pytest.raises(UnknownName, match="Unknown cursor"):
        ask(offered, "tools/list", {"cursor": cursor}, size=2)


def test_a_cursor_of_another_deployment_is_refused() -> None:
    before = catalog.build([named(f"t{number}") for number in range(5)])
    after = catalog.build([named(f"t{number}") for number in range(6)])
    cursor = ask(before, "tools/list", size=2)["nextCursor"]
    assert ask(before, "tools/list", {"cursor": cursor}, size=2)["tools"][0]["name"] == "t2"
    with pytest.raises(UnknownName):
        ask(after, "tools/list", {"cursor": cursor}, size=2)


# Which function answers


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "add"}),
        ("prompts/get", {"name": "brief"}),
        ("resources/read", {"uri": "config://app"}),
        ("resources/read", {"uri": "tickets://A/1"}),
    ],
)
def test_a_name_leads_to_its_function(method: str, params: dict[str, Any]) -> None:
    assert lookup.find(EVERYTHING, method, params).function == "all"


def test_a_resource_takes_precedence_over_a_matching_template() -> None:
    @resource("a://{x}")
    def some(x: str) -> str:
        return x

    @resource("a://b")
    def exact() -> str:
        return ""

    offered = catalog.merge([catalog.build([some], "some"), catalog.build([exact], "exact")])
    assert lookup.find(offered, "resources/read", {"uri": "a://b"}).function == "exact"
    assert lookup.find(offered, "resources/read", {"uri": "a://c"}).function == "some"


@pytest.mark.parametrize(("method", "text"), [("tools/call", "Unknown tool"), ("prompts/get", "Unknown prompt")])
@pytest.mark.parametrize("name", ["Add", "", "config", "../add"])
def test_an_unknown_name_leads_to_no_function(method: str, text: str, name: str) -> None:
    with pytest.raises(UnknownName, match=text) as caught:
        lookup.find(EVERYTHING, method, {"name": name})
    assert (caught.value.code, caught.value.status, caught.value.data) == (-32602, 200, None)


@pytest.mark.parametrize("uri", ["config://App", "tickets://A", "", "file:///etc/passwd"])
def test_an_unknown_resource_is_named_in_the_error(uri: str) -> None:
    with pytest.raises(ResourceNotFound) as caught:
        lookup.find(EVERYTHING, "resources/read", {"uri": uri})
    assert (caught.value.code, caught.value.data) == (-32602, {"uri": uri})


@pytest.mark.parametrize(
    ("method", "key"), [("tools/call", "name"), ("prompts/get", "name"), ("resources/read", "uri")]
)
@pytest.mark.parametrize("value", [None, 7, [], {}, True])
def test_a_name_is_a_string(method: str, key: str, value: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidParams, match=f"params.{key} must be a string"):
        lookup.find(EVERYTHING, method, {key: value})
    with pytest.raises(InvalidParams, match=f"params.{key} must be a string"):
        lookup.find(EVERYTHING, method, {})


@pytest.mark.parametrize(
    ("method", "key"), [("tools/call", "name"), ("prompts/get", "name"), ("resources/read", "uri")]
)
def test_a_call_that_is_not_advertised_is_an_unknown_method(method: str, key: str) -> None:
    with pytest.raises(MethodNotFound):
        lookup.find(catalog.build([]), method, {key: "x"})


def test_a_call_repeats_in_headers_the_arguments_that_the_schema_marks() -> None:
    def check_headers(offered: Any, params: dict[str, Any], received: dict[str, str]) -> None:  # noqa: ANN401 - a catalog
        lookup.check_headers(lookup.header_arguments(offered, params["name"]), params, received)

    params = {"name": "regional", "arguments": {"region": "eu"}}
    check_headers(EVERYTHING, params, {"mcp-param-region": "eu"})
    check_headers(EVERYTHING, {"name": "add", "arguments": {"a": 1}}, {"mcp-param-region": "eu"})
    with pytest.raises(HeaderMismatch, match="mcp-param-region is missing"):
        check_headers(EVERYTHING, params, {})
    with pytest.raises(HeaderMismatch, match="the argument is not"):
        check_headers(EVERYTHING, {"name": "regional"}, {"mcp-param-region": "eu"})


@pytest.mark.parametrize(
    ("ref", "reads"),
    [
        ({"type": "ref/prompt", "name": "brief"}, ("prompts/get", "brief")),
        ({"type": "ref/resource", "uri": "a://{x}"}, ("resources/read", "a://{x}")),
    ],
)
def test_a_reference_names_a_prompt_or_a_resource(ref: dict[str, str], reads: tuple[str, str]) -> None:
    assert lookup.read_reference({"ref": ref}) == reads


@pytest.mark.parametrize(
    "ref", [None, "brief", {}, {"type": "ref/tool", "name": "add"}, {"type": "ref/prompt", "uri": "x"}, {"type": ["x"]}]
)
def test_any_other_reference_is_refused(ref: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidParams, match=r"params\.ref must be"):
        lookup.read_reference({"ref": ref})
