"""The page "Writing a conversation", on what a function returns.

No `from __future__ import annotations` here: the functions below are read as an author writes them.
"""

from datetime import date
from typing import Any

import mcp_types as sdk
import pytest
from pydantic import BaseModel

from mcp_functions import prompt, resource, tool
from mcp_functions.content import CallToolResult, Image, ResourceContents, Text
from mcp_functions.protocol.errors import DeveloperError

PICTURE = {"type": "image", "data": "AA==", "mimeType": "image/png"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def result_of(value: object, annotation: object = object) -> dict[str, Any]:
    """Call a tool that returns a value."""

    def returning():  # type: ignore[no-untyped-def]  # noqa: ANN202 - the next line says it
        return value

    returning.__annotations__["return"] = annotation
    return tool(returning).call({}, None)


def test_a_string_is_a_text_block_and_none_gives_no_content() -> None:
    assert result_of("hi", str)["content"] == [text("hi")]
    assert result_of(None, None)["content"] == []


def test_a_content_object_alone_or_in_a_list_becomes_content() -> None:
    image = Image(b"\0", "image/png")
    assert result_of(image, Image)["content"] == [PICTURE]
    assert result_of(["a", image, None, {"b": 1}], list)["content"] == [text("a"), PICTURE, text('{"b":1}')]
    assert result_of([], list[Image]) == {"content": [], "isError": False}


def test_every_value_that_json_can_hold_is_structured_content() -> None:
    class Total(BaseModel):
        total: int

    for value, plain in [
        (7, 7),
        ({"a": (1,)}, {"a": [1]}),
        (Total(total=1), {"total": 1}),
        (date(2026, 7, 28), "2026-07-28"),
    ]:
        assert result_of(value)["structuredContent"] == plain
    assert result_of([], list[int])["structuredContent"] == []


def test_a_complete_result_is_returned_unchanged() -> None:
    result = result_of(CallToolResult("no", structured_content={"a": 1}, is_error=True, meta={"example.com/k": 1}))
    assert result == {
        "content": [text("no")],
        "structuredContent": {"a": 1},
        "isError": True,
        "_meta": {"example.com/k": 1},
    }


def test_content_and_results_of_the_official_sdk_are_sent_as_such() -> None:
    image = sdk.ImageContent(type="image", data="AA==", mime_type="image/png")
    assert result_of(["a", image])["content"] == [text("a"), PICTURE]
    assert result_of(sdk.CallToolResult(content=[image], is_error=True))["isError"] is True


@pytest.mark.parametrize("value", [b"x", iter([1]), object(), {"a": Image(b"", "image/png")}, float("nan"), Text])
def test_a_value_outside_json_is_refused_instead_of_converted_to_text(value: object) -> None:
    with pytest.raises(DeveloperError, match="JSON cannot carry what the function returned"):
        result_of(value)


def test_a_prompt_returns_messages_and_a_resource_contents() -> None:
    @prompt
    def greeting() -> object:
        return ["hi", sdk.PromptMessage(role="assistant", content=sdk.TextContent(type="text", text="hi"))]

    @resource("a://b")
    def blob() -> object:
        return [ResourceContents("a://b", b"\0"), sdk.TextResourceContents(uri="a://c", text="hi")]

    assert [message["role"] for message in greeting.call({}, None)["messages"]] == ["user", "assistant"]
    assert [each["uri"] for each in blob.call({"uri": "a://b"}, None)["contents"]] == ["a://b", "a://c"]


def test_a_misspelt_hint_is_refused() -> None:
    def plain() -> None:
        """Do nothing."""

    wrong: Any = {"readonlyHint": True}
    with pytest.raises(TypeError, match="known are: title, readOnlyHint"):
        tool(annotations=wrong)(plain)
