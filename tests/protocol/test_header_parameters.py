"""The headers Mcp-Param-<name> repeat arguments of a call, as `x-mcp-header` in the tool's inputSchema declares.

`find` reads the declarations of a schema. `check` compares the headers of a call with its arguments.
"""

from __future__ import annotations

from typing import Any

import pytest

from mcp_functions.protocol import header_parameters
from mcp_functions.protocol.errors import HeaderMismatch
from tests.support import wire

SCHEMA: Any = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "limit": {"type": "integer", "x-mcp-header": "limit"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
        "where": {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}},
        "free": {"type": "string"},
    },
}


def check(arguments: dict[str, Any], headers: dict[str, str]) -> None:
    header_parameters.check(header_parameters.find(SCHEMA), arguments, headers)


def test_find_returns_each_header_with_the_path_of_its_argument() -> None:
    assert header_parameters.find(SCHEMA) == {
        "mcp-param-region": ("region",),
        "mcp-param-limit": ("limit",),
        "mcp-param-dry-run": ("dry",),
        "mcp-param-zone": ("where", "zone"),
    }


@pytest.mark.parametrize(
    ("member", "rule"),
    [
        ({"type": "string", "x-mcp-header": ""}, "must be an RFC 9110 token"),
        ({"type": "string", "x-mcp-header": "a b"}, "must be an RFC 9110 token"),
        ({"type": "string", "x-mcp-header": "é"}, "must be an RFC 9110 token"),
        ({"type": "string", "x-mcp-header": 1}, "must be an RFC 9110 token"),
        ({"type": "number", "x-mcp-header": "a"}, "only strings, integers and booleans"),
        ({"type": ["string", "null"], "x-mcp-header": "a"}, "only strings, integers and booleans"),
        ({"type": "array", "items": {"type": "string", "x-mcp-header": "a"}}, "reached through `properties` alone"),
        ({"anyOf": [{"type": "string", "x-mcp-header": "a"}]}, "reached through `properties` alone"),
        ({"type": "object", "properties": {"x": {"type": "string", "x-mcp-header": "REGION"}}}, "must be unique"),
    ],
)
def test_a_declaration_that_breaks_a_rule_of_the_specification_is_refused(member: dict[str, Any], rule: str) -> None:
    properties = {"region": SCHEMA["properties"]["region"], "other": member}
    with pytest.raises(ValueError, match=rule):
        header_parameters.find({"type": "object", "properties": properties})


@pytest.mark.parametrize(
    "properties",
    [
        pytest.param({"x-mcp-header": {"type": "string"}}, id="a property"),
        pytest.param({"a": {"type": "object", "default": {"x-mcp-header": "b"}}}, id="a default"),
    ],
)
def test_a_name_outside_a_schema_declares_no_header(properties: dict[str, Any]) -> None:
    assert header_parameters.find({"type": "object", "properties": properties}) == {}


def test_headers_that_match_the_arguments_are_accepted() -> None:
    arguments = {"region": "żory", "limit": 42, "dry": True, "where": {"zone": "b"}, "free": "x"}
    headers = {
        "mcp-param-region": wire.header("żory"),
        "mcp-param-limit": "42",
        "mcp-param-dry-run": "true",
        "mcp-param-zone": "b",
        "mcp-param-unknown": "ignored",
    }
    check(arguments, headers)


@pytest.mark.parametrize("text", ["42", "42.0", "42.000", " 42 "])
def test_an_integer_is_compared_as_a_number(text: str) -> None:
    check({"limit": 42}, {"mcp-param-limit": text})


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        pytest.param({"region": "a"}, {}, id="no header"),
        pytest.param({"dry": False}, {}, id="no header for false"),
        pytest.param({"where": {"zone": "b"}}, {}, id="no header for an inner argument"),
        pytest.param({}, {"mcp-param-region": "a"}, id="no argument"),
        pytest.param({"region": None}, {"mcp-param-region": "null"}, id="an argument that is null"),
        pytest.param({"where": "text"}, {"mcp-param-zone": "b"}, id="no object around the argument"),
        pytest.param({"region": "a"}, {"mcp-param-region": "b"}, id="another text"),
        pytest.param({"region": "a"}, {"mcp-param-region": "=?base64?YQ?="}, id="base64 without padding"),
        pytest.param({"region": "1.0"}, {"mcp-param-region": "1"}, id="a string compared as a number"),
        pytest.param({"limit": 42}, {"mcp-param-limit": "42.5"}, id="a fraction"),
        pytest.param({"limit": 42}, {"mcp-param-limit": "0x2a"}, id="hexadecimal"),
        pytest.param({"dry": True}, {"mcp-param-dry-run": "True"}, id="a boolean in capitals"),
        pytest.param({"dry": True}, {"mcp-param-dry-run": "true.0"}, id="a boolean compared as a number"),
    ],
)
def test_headers_that_differ_from_the_arguments_are_refused(arguments: dict[str, Any], headers: dict[str, str]) -> None:
    with pytest.raises(HeaderMismatch, match=r"^The header mcp-param-"):
        check(arguments, headers)


def test_an_argument_that_is_null_needs_no_header() -> None:
    check({"region": None}, {})


def test_the_error_quotes_neither_the_header_nor_the_argument() -> None:
    with pytest.raises(HeaderMismatch) as caught:
        check({"region": "hunter2"}, {"mcp-param-region": "hunter3"})
    assert "hunter" not in f"{caught.value} {caught.value.data} {caught.value.reason}"
