"""The return value of an author's function becomes the result of tools/call, prompts/get or resources/read."""

from __future__ import annotations

import base64
import enum
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel, Field

from mcp_functions.content import CallToolResult, Image, PromptMessage, ResourceContents, ResourceLink, Text
from mcp_functions.protocol import results
from mcp_functions.protocol.errors import DeveloperError

TEXT = {"type": "text", "text": "hi"}


class Point(BaseModel):
    x: int
    y_axis: int = Field(default=0, alias="yAxis")


@dataclass
class Line:
    """A dataclass with a pydantic model inside."""

    start: Point
    ends: tuple[int, ...]


@dataclass
class Transfer:
    """An author's class with an attribute named like the method `wire` of our content types."""

    wire: bool = True
    wire_result: int = 7


class Colour(enum.Enum):
    """A class whose value pydantic writes."""

    RED = "red"


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("hi", [TEXT]),
        ("", [{"type": "text", "text": ""}]),
        (None, []),
        (Text("hi"), [TEXT]),
        ([Text("hi"), "hi"], [TEXT, TEXT]),
        ((Text("hi"), {"a": 1}), [TEXT, {"type": "text", "text": '{"a":1}'}]),
        ([Image(b"x", "image/png")], [{"type": "image", "data": "eA==", "mimeType": "image/png"}]),
    ],
)
def test_a_tool_that_returns_text_or_content_has_no_structured_content(value: Any, content: list[Any]) -> None:  # noqa: ANN401
    assert results.call_tool_result(value) == {"content": content, "isError": False}


@pytest.mark.parametrize(
    ("value", "structured", "text"),
    [
        ({"a": [1, None]}, {"a": [1, None]}, '{"a":[1,null]}'),
        ([], [], "[]"),
        (["a"], ["a"], '["a"]'),
        (7, 7, "7"),
        (1.5, 1.5, "1.5"),
        (False, False, "false"),
        (Point(x=1), {"x": 1, "yAxis": 0}, '{"x":1,"yAxis":0}'),
        ([Point(x=1)], [{"x": 1, "yAxis": 0}], '[{"x":1,"yAxis":0}]'),
        ({"ż": (1, 2)}, {"ż": [1, 2]}, '{"ż":[1,2]}'),
        (
            Line(Point(x=1), (1, 2)),
            {"start": {"x": 1, "yAxis": 0}, "ends": [1, 2]},
            '{"start":{"x":1,"yAxis":0},"ends":[1,2]}',
        ),
        (Transfer(), {"wire": True, "wire_result": 7}, '{"wire":true,"wire_result":7}'),
        ([Transfer()], [{"wire": True, "wire_result": 7}], '[{"wire":true,"wire_result":7}]'),
        (date(2026, 7, 28), "2026-07-28", '"2026-07-28"'),
        ([Colour.RED], ["red"], '["red"]'),
    ],
)
def test_any_other_value_is_structured_content_with_its_json_as_text(value: Any, structured: Any, text: str) -> None:  # noqa: ANN401
    assert results.call_tool_result(value) == {
        "content": [{"type": "text", "text": text}],
        "structuredContent": structured,
        "isError": False,
    }


def test_a_call_tool_result_keeps_all_its_members() -> None:
    whole = CallToolResult([Text("hi")], structured_content={"a": Point(x=1)}, is_error=True, meta={"com.example/k": 1})
    assert results.call_tool_result(whole) == {
        "content": [TEXT],
        "structuredContent": {"a": {"x": 1, "yAxis": 0}},
        "isError": True,
        "_meta": {"com.example/k": 1},
    }


@pytest.mark.parametrize(
    "value", [object(), {"hunter2": object()}, [print], float("nan"), {1: {"x": float("inf")}}, b"hunter2"]
)
def test_the_error_for_a_value_outside_json_names_its_class_but_does_not_quote_it(value: Any) -> None:  # noqa: ANN401
    with pytest.raises(DeveloperError, match=r"^JSON cannot carry what the function returned ") as caught:
        results.call_tool_result(value)
    assert type(value).__name__ in str(caught.value)
    assert str(caught.value).endswith(results.TOOL_RETURNS)
    assert "hunter2" not in str(caught.value)


def test_a_tool_error_is_a_result_that_the_model_can_read() -> None:
    assert results.tool_error("hi") == {"content": [TEXT], "isError": True}


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        ("hi", [{"role": "user", "content": TEXT}]),
        (Text("hi"), [{"role": "user", "content": TEXT}]),
        (PromptMessage("assistant", "hi"), [{"role": "assistant", "content": TEXT}]),
        (
            ["hi", PromptMessage("assistant", Text("hi"))],
            [{"role": "user", "content": TEXT}, {"role": "assistant", "content": TEXT}],
        ),
        ([], []),
    ],
)
def test_a_prompt_may_return_text_content_or_messages(value: Any, messages: list[Any]) -> None:  # noqa: ANN401
    assert results.get_prompt_result(value, None) == {"messages": messages}


def test_the_result_of_a_prompt_has_its_description() -> None:
    assert results.get_prompt_result("hi", "Says hi")["description"] == "Says hi"


@pytest.mark.parametrize(("value", "name"), [({"role": "user"}, "dict"), (None, "NoneType"), ([7], "int")])
def test_the_error_for_another_value_of_a_prompt_names_its_class(value: Any, name: str) -> None:  # noqa: ANN401
    with pytest.raises(DeveloperError, match=f"^a prompt returns text, messages or content, not {name}$"):
        results.get_prompt_result(value, None)


@pytest.mark.parametrize(
    ("value", "mime_type", "contents"),
    [
        ("hi", None, {"mimeType": "text/plain", "text": "hi"}),
        ("<p>", "text/html", {"mimeType": "text/html", "text": "<p>"}),
        (b"\x00\xff", "image/png", {"mimeType": "image/png", "blob": base64.b64encode(b"\x00\xff").decode()}),
        (b"", None, {"blob": ""}),
        ({"a": 1}, None, {"mimeType": "application/json", "text": '{"a":1}'}),
        ([], None, {"mimeType": "application/json", "text": "[]"}),
        (Point(x=1), "application/vnd.x+json", {"mimeType": "application/vnd.x+json", "text": '{"x":1,"yAxis":0}'}),
    ],
)
def test_the_contents_of_a_resource_have_the_uri_that_was_read(
    value: Any,  # noqa: ANN401
    mime_type: str | None,
    contents: dict[str, Any],
) -> None:
    assert results.read_resource_contents(value, "a://b", mime_type) == [{"uri": "a://b", **contents}]


def test_a_resource_may_return_several_contents() -> None:
    value = [ResourceContents("a://1", "x"), ResourceContents("a://2", b"y", "image/png")]
    assert results.read_resource_contents(value, "a://", "text/plain") == [
        {"uri": "a://1", "text": "x"},
        {"uri": "a://2", "mimeType": "image/png", "blob": "eQ=="},
    ]


@pytest.mark.parametrize("value", [Text("hi"), [Text("hi")], ResourceLink("a://b", "b"), Image(b"", "image/png")])
def test_a_resource_that_returns_content_of_a_tool_is_refused(value: Any) -> None:  # noqa: ANN401
    with pytest.raises(DeveloperError, match="is no part of a resource: it returns text, bytes, JSON"):
        results.read_resource_contents(value, "a://b", None)


def test_a_resource_that_returns_a_value_outside_json_is_refused() -> None:
    with pytest.raises(DeveloperError, match="JSON cannot carry"):
        results.read_resource_contents({"a": object()}, "a://b", None)
