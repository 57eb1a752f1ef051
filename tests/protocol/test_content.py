"""The content types are written as JSON as the specification's types define them.

BLOCKS pairs each content type with its JSON. `wire.check` validates a response with the official types.
"""

from __future__ import annotations

import base64
from typing import Any

import pytest

from mcp_functions.content import (
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


every_block = pytest.mark.parametrize("content", [content for content, _json in BLOCKS])


@pytest.mark.parametrize(("content", "json"), BLOCKS)
def test_content_has_the_members_of_the_specification(content: Any, json: dict[str, Any]) -> None:  # noqa: ANN401
    assert content.wire() == json


@every_block
def test_the_official_types_accept_each_block_in_a_tools_result(content: Any) -> None:  # noqa: ANN401
    result = {"resultType": "complete", **call_tool_result(CallToolResult([content])), **SERVER}
    wire.check({"jsonrpc": "2.0", "id": 1, "result": result}, "tools/call")


@every_block
def test_the_official_types_accept_each_block_in_a_prompts_message(content: Any) -> None:  # noqa: ANN401
    result = {"resultType": "complete", "messages": [PromptMessage("assistant", content).wire()], **SERVER}
    wire.check({"jsonrpc": "2.0", "id": 1, "result": result}, "prompts/get")


def test_empty_contents_of_a_resource_are_written() -> None:
    assert ResourceContents("a://b", "").wire() == {"uri": "a://b", "text": ""}
    assert ResourceContents("a://b", b"").wire() == {"uri": "a://b", "blob": ""}


def test_an_empty_result_has_no_structured_content() -> None:
    assert call_tool_result(CallToolResult()) == {"content": [], "isError": False}


def test_null_is_structured_content() -> None:
    assert call_tool_result(CallToolResult(structured_content=None))["structuredContent"] is None


def test_a_string_is_one_text_block() -> None:
    assert call_tool_result(CallToolResult("abc"))["content"] == [{"type": "text", "text": "abc"}]


def test_content_is_frozen() -> None:
    with pytest.raises(AttributeError):
        Text("x").text = "y"  # type: ignore[misc]
