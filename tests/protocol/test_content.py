"""The content types look on the wire as the specification's types say."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from mcp_functions import (
    Audio,
    CallToolResult,
    EmbeddedResource,
    Image,
    PromptMessage,
    ResourceContents,
    ResourceLink,
    Text,
)
from mcp_functions.protocol.results import call_tool_result
from tests.support import wire

BYTES = bytes(range(256))
ENCODED = base64.b64encode(BYTES).decode()
SERVER = {"_meta": {wire.PREFIX + "serverInfo": {"name": "s", "version": "1"}}}

BLOCKS: list[tuple[Any, dict[str, Any]]] = [
    (Text("żółw"), {"type": "text", "text": "żółw"}),
    (
        Text("x", annotations={"audience": ["user"], "priority": 0.5}, meta={"com.example/k": 1}),
        {
            "type": "text",
            "text": "x",
            "annotations": {"audience": ["user"], "priority": 0.5},
            "_meta": {"com.example/k": 1},
        },
    ),
    (Image(BYTES, "image/png"), {"type": "image", "data": ENCODED, "mimeType": "image/png"}),
    (Audio(b"", "audio/wav"), {"type": "audio", "data": "", "mimeType": "audio/wav"}),
    (
        EmbeddedResource(ResourceContents("a://b", "text", "text/plain")),
        {"type": "resource", "resource": {"uri": "a://b", "mimeType": "text/plain", "text": "text"}},
    ),
    (
        EmbeddedResource(ResourceContents("a://b", BYTES)),
        {"type": "resource", "resource": {"uri": "a://b", "blob": ENCODED}},
    ),
    (ResourceLink("a://b", "b"), {"type": "resource_link", "uri": "a://b", "name": "b"}),
    (
        ResourceLink(
            "a://b", "b", "B", "The b", "text/plain", 0, {"audience": ["assistant"]}, [{"src": "https://x.example/i"}]
        ),
        {
            "type": "resource_link",
            "uri": "a://b",
            "name": "b",
            "title": "B",
            "description": "The b",
            "mimeType": "text/plain",
            "size": 0,
            "annotations": {"audience": ["assistant"]},
            "icons": [{"src": "https://x.example/i"}],
        },
    ),
]


@pytest.mark.parametrize(("content", "written"), BLOCKS)
def test_content_is_written_as_the_specification_names_it(content: Any, written: dict[str, Any]) -> None:  # noqa: ANN401
    assert content.wire() == written


@pytest.mark.parametrize("content", [content for content, _written in BLOCKS])
def test_the_official_types_take_all_of_it_in_a_tools_result(content: Any) -> None:  # noqa: ANN401
    result = {"resultType": "complete", **call_tool_result(CallToolResult([content])), **SERVER}
    wire.check({"jsonrpc": "2.0", "id": 1, "result": result}, "tools/call")


@pytest.mark.parametrize("content", [content for content, _written in BLOCKS])
def test_the_official_types_take_all_of_it_in_a_prompts_message(content: Any) -> None:  # noqa: ANN401
    result = {"resultType": "complete", "messages": [PromptMessage("assistant", content).wire()], **SERVER}
    wire.check({"jsonrpc": "2.0", "id": 1, "result": result}, "prompts/get")


@pytest.mark.parametrize("contents", ["", "text", b"", BYTES])
def test_empty_contents_are_contents(contents: str | bytes) -> None:
    written = ResourceContents("a://b", contents).wire()
    assert written.keys() == {"uri", "text" if isinstance(contents, str) else "blob"}


def test_a_message_may_be_a_string() -> None:
    assert PromptMessage("user", "hi").wire() == {"role": "user", "content": {"type": "text", "text": "hi"}}


def test_a_result_has_an_error_flag_and_structured_content_only_if_given() -> None:
    assert call_tool_result(CallToolResult()) == {"content": [], "isError": False}
    assert call_tool_result(CallToolResult(["no"], is_error=True)) == {
        "content": [{"type": "text", "text": "no"}],
        "isError": True,
    }


def test_null_is_structured_content() -> None:
    assert call_tool_result(CallToolResult(structured_content=None))["structuredContent"] is None


def test_one_string_is_one_block() -> None:
    assert call_tool_result(CallToolResult("abc"))["content"] == [{"type": "text", "text": "abc"}]


def test_a_result_has_its_meta() -> None:
    assert call_tool_result(CallToolResult("x", meta={"com.example/k": 1}))["_meta"] == {"com.example/k": 1}


def test_content_is_frozen() -> None:
    with pytest.raises(AttributeError):
        Text("x").text = "y"  # type: ignore[misc]
