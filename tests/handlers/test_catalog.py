"""The catalog describes all tools, prompts and resources as JSON.

`handlers.lists` answers discovery and lists from the catalog. `handlers.lookup` finds in it which function serves a
request. So the front door, which is the endpoint of several functions, needs none of their code.

(This module has no `from __future__ import annotations`, because the decorators must find types in the annotations, and
not text.)
"""

import json
from typing import Annotated, Any, cast

import pytest

from mcp_functions import Log, prompt, resource, serve, tool
from mcp_functions.annotated import Header
from mcp_functions.handlers import catalog, lists, lookup
from mcp_functions.protocol.catalog_types import Catalog, ListName
from mcp_functions.protocol.errors import HeaderMismatch, InvalidParams, MethodNotFound, ResourceNotFound, UnknownName
from mcp_functions.protocol.wire_types import Params
from tests.support import wire
from tests.support.settings import make_settings


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


EVERYTHING = catalog.build([regional, add, brief, config, ticket], "all")  # of a function with the name "all"


@tool(name="add")
def another_tool_named_add() -> str:
    return ""


def discover(offered: Catalog, instructions: str = "") -> dict[str, Any]:
    return read_list(offered, "server/discover", instructions)


def read_list(offered: Catalog, method: str, instructions: str = "") -> dict[str, Any]:
    """Answer a method from a catalog. Return the members of the result, without those that every result has."""
    settings = make_settings(list_ttl_ms=5)
    answers = lists.Lists(cast("Catalog", {**offered, "endpoint": {"instructions": instructions}}), settings)
    result = dict(answers.answer(method, {"_meta": {}}).result)
    del result["resultType"], result["_meta"]
    return result


def check_official_type(result: dict[str, Any], method: str) -> None:
    """Check that the official types accept a result."""
    meta = {"_meta": {wire.PREFIX + "serverInfo": {"name": "s", "version": "1"}}}
    wire.check({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", **result, **meta}}, method)


# The catalog


def test_a_catalog_is_unchanged_by_json() -> None:
    assert json.loads(json.dumps(EVERYTHING)) == EVERYTHING


def test_the_order_of_the_handlers_does_not_change_a_catalog() -> None:
    reordered = catalog.build([ticket, config, brief, add, regional], "all")
    assert json.dumps(reordered) == json.dumps(EVERYTHING)


def test_a_catalog_names_the_function_of_each_handler() -> None:
    assert EVERYTHING["functions"] == {
        "tools": {"add": "all", "regional": "all"},
        "prompts": {"brief": "all"},
        "resources": {"config://app": "all"},
        "resourceTemplates": {"tickets://{project}/{number}": "all"},
    }


def test_names_are_unique_in_a_function() -> None:
    with pytest.raises(ValueError, match="two tools named 'add': names are unique"):
        catalog.build([add, another_tool_named_add])


def test_names_are_unique_among_functions() -> None:
    with pytest.raises(ValueError, match="two tools named 'add', in one and in two: names are unique"):
        catalog.build_project({"one": [add], "two": [another_tool_named_add]})


def test_a_tool_and_a_prompt_may_share_a_name() -> None:
    @prompt(name="add")
    def addition() -> str:
        return ""

    assert catalog.build([add, addition])["functions"]["prompts"] == {"add": ""}


def test_the_order_of_the_functions_does_not_change_a_catalog() -> None:
    functions = {handler.name: [handler] for handler in (add, regional, brief, config, ticket)}
    project = catalog.build_project(functions)
    reordered = dict(reversed(functions.items()))
    assert json.dumps(catalog.build_project(reordered)) == json.dumps(project)
    assert {entry["name"] for entry in project["tools"]} == {"add", "regional"}
    assert project["functions"]["tools"] == {"add": "add", "regional": "regional"}
    assert project["logging"] is True


def test_a_project_without_functions_has_an_empty_catalog() -> None:
    assert catalog.build_project({}) == catalog.build([])


# server/discover


@pytest.mark.parametrize(
    ("offered", "capabilities"),
    [
        (catalog.build([add]), {"tools": {}}),
        (catalog.build([ticket]), {"resources": {}}),
        (catalog.build([]), {}),
        (EVERYTHING, {"tools": {}, "prompts": {}, "resources": {}, "logging": {}}),
    ],
    ids=["tool", "template", "nothing", "everything"],
)
def test_a_capability_is_advertised_if_a_handler_has_it(offered: Catalog, capabilities: dict[str, Any]) -> None:
    assert discover(offered)["capabilities"] == capabilities


def test_completions_are_advertised_when_a_handler_completes() -> None:
    @prompt
    def greet(name: str) -> str:
        return name

    greet.complete("name")(lambda _value, _arguments: ["Ann"])
    assert discover(catalog.build([greet]))["capabilities"] == {"prompts": {}, "completions": {}}


def test_discovery_has_the_members_of_the_specification() -> None:
    result = discover(EVERYTHING, instructions="Be nice")
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["instructions"] == "Be nice"
    assert result["ttlMs"] == 5
    assert result["cacheScope"] == "private"
    check_official_type(result, "server/discover")


def test_without_instructions_discovery_has_none() -> None:
    assert "instructions" not in discover(EVERYTHING)


def test_a_function_gives_its_own_instructions_at_its_own_endpoint() -> None:
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
    result = read_list(EVERYTHING, method)
    assert [entry["name"] for entry in result[key]] == names
    assert result.keys() == {key, "ttlMs", "cacheScope"}
    check_official_type(result, method)


@pytest.mark.parametrize("method", ["tools/list", "prompts/list", "resources/list", "resources/templates/list"])
def test_a_list_that_is_not_advertised_is_an_unknown_method(method: str) -> None:
    with pytest.raises(MethodNotFound):
        read_list(catalog.build([]), method)


def test_resources_are_one_capability_with_two_lists() -> None:
    assert read_list(catalog.build([ticket]), "resources/list")["resources"] == []
    assert read_list(catalog.build([config]), "resources/templates/list")["resourceTemplates"] == []


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
def test_the_catalog_finds_the_function_of_a_name(method: str, params: Params) -> None:
    assert lookup.find(EVERYTHING, method, params).folder == "all"


def test_a_resource_takes_precedence_over_a_matching_template() -> None:
    @resource("a://{x}")
    def some(x: str) -> str:
        return x

    @resource("a://b")
    def exact() -> str:
        return ""

    offered = catalog.build_project({"some": [some], "exact": [exact]})
    assert lookup.find(offered, "resources/read", {"uri": "a://b"}).folder == "exact"
    assert lookup.find(offered, "resources/read", {"uri": "a://c"}).folder == "some"


@pytest.mark.parametrize(("method", "text"), [("tools/call", "Unknown tool"), ("prompts/get", "Unknown prompt")])
@pytest.mark.parametrize("name", ["Add", "", "config", "../add"])
def test_the_catalog_finds_no_function_of_an_unknown_name(method: str, text: str, name: str) -> None:
    with pytest.raises(UnknownName, match=text) as error:
        lookup.find(EVERYTHING, method, {"name": name})
    assert error.value.code == -32602
    assert error.value.status == 200
    assert error.value.data is None


@pytest.mark.parametrize("uri", ["config://App", "tickets://A", "", "file:///etc/passwd"])
def test_an_unknown_resource_is_named_in_the_error(uri: str) -> None:
    with pytest.raises(ResourceNotFound) as error:
        lookup.find(EVERYTHING, "resources/read", {"uri": uri})
    assert error.value.code == -32602
    assert error.value.data == {"uri": uri}


@pytest.mark.parametrize(
    ("method", "key"), [("tools/call", "name"), ("prompts/get", "name"), ("resources/read", "uri")]
)
@pytest.mark.parametrize("value", [None, 7, [], {}, True])
def test_a_name_that_is_no_string_is_refused(method: str, key: str, value: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidParams, match=f"params.{key} must be a string"):
        lookup.find(EVERYTHING, method, cast("Params", {key: value}))
    with pytest.raises(InvalidParams, match=f"params.{key} must be a string"):
        lookup.find(EVERYTHING, method, {})


@pytest.mark.parametrize(
    ("method", "key"), [("tools/call", "name"), ("prompts/get", "name"), ("resources/read", "uri")]
)
def test_a_call_that_is_not_advertised_is_an_unknown_method(method: str, key: str) -> None:
    with pytest.raises(MethodNotFound):
        lookup.find(catalog.build([]), method, cast("Params", {key: "x"}))


def check_headers(name: str, arguments: dict[str, Any], received: dict[str, str]) -> None:
    """Check the headers of a call; raise HeaderMismatch if they differ from its arguments."""
    names = lookup.header_arguments(EVERYTHING, name)
    lookup.check_headers(names, {"name": name, "arguments": arguments}, received)


def test_a_header_repeats_the_argument_that_the_schema_marks() -> None:
    check_headers("regional", {"region": "eu"}, {"mcp-param-region": "eu"})
    check_headers("add", {"a": 1}, {"mcp-param-region": "eu"})  # no argument of `add` has a header


def test_an_argument_without_its_header_is_refused() -> None:
    with pytest.raises(HeaderMismatch, match="mcp-param-region is missing"):
        check_headers("regional", {"region": "eu"}, {})


def test_a_header_without_its_argument_is_refused() -> None:
    with pytest.raises(HeaderMismatch, match="the argument is not"):
        check_headers("regional", {}, {"mcp-param-region": "eu"})


COMPLETABLE: Catalog = {**EVERYTHING, "completions": True}


@pytest.mark.parametrize(
    ("ref", "list_name", "key"),
    [
        ({"type": "ref/prompt", "name": "brief"}, "prompts", "brief"),
        ({"type": "ref/resource", "uri": "config://app"}, "resources", "config://app"),
        ({"type": "ref/resource", "uri": "tickets://{project}/{number}"}, "resourceTemplates", ticket.key),
        ({"type": "ref/resource", "uri": "tickets://toolkit/7"}, "resourceTemplates", ticket.key),
    ],
)
def test_a_reference_names_a_prompt_a_resource_or_a_template(
    ref: dict[str, str], list_name: ListName, key: str
) -> None:
    assert lookup.find_reference(COMPLETABLE, {"ref": ref}) == lookup.Target(list_name, key, "all")


@pytest.mark.parametrize(
    "ref", [None, "brief", {}, {"type": "ref/tool", "name": "add"}, {"type": "ref/prompt", "uri": "x"}, {"type": ["x"]}]
)
def test_any_other_reference_is_refused(ref: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidParams, match=r"params\.ref must be"):
        lookup.find_reference(COMPLETABLE, {"ref": ref})
