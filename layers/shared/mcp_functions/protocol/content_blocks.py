"""Writes the parts of results as JSON: a content block, the contents of a resource, the messages of a prompt.

    block("done")                                  {"type": "text", "text": "done"}
    resource_contents(ResourceContents(…), uri)    {"uri": "note://1", "text": "Milk"}
    messages("Hello")                              [{"role": "user", "content": {"type": "text", "text": "Hello"}}]

A value may have a class of three libraries, and `to_wire` writes each in its own way:

    this toolkit        with its method `wire()`
    the official SDK    with pydantic, because its classes are pydantic models
    FastMCP             Image, Audio and File have a method that returns content of the official SDK

The JSON is checked after that, because an author may leave out a member or give it a wrong type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.json_writer import to_base64
from mcp_functions.protocol.plain_values import BYTES, content_kind, pydantic_to_json, to_json, type_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.wire_types import ContentBlock, JSONValue, PromptMessage

# FastMCP's Image, Audio and File have one of these methods each, which returns content of the official SDK.
FASTMCP_METHODS = ("to_image_content", "to_audio_content", "to_resource_content")
# The members that must be strings, for each type of a content block except "resource".
STRING_MEMBERS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
}


def block(value: object) -> ContentBlock:
    """Write text, or content of one of the three libraries, as a content block.

    Raise a DeveloperError for any other value, and for content that lacks a member of its type.
    """
    if isinstance(value, str):
        return {"type": "text", "text": value}
    if content_kind(value) != "block":
        allowed = "text, Text, Image, Audio, EmbeddedResource or ResourceLink"
        raise DeveloperError(f"content is {allowed}, not {type_name(value)}")
    content_block = to_wire(value)
    if not _is_block(content_block):
        reason = "a member is missing or of a wrong type"
        raise DeveloperError(f"{type_name(value)} is no content as the protocol has it: {reason}")
    return content_block


def resource_contents(value: object, uri: str) -> ContentBlock:
    """Write the contents of a resource, which are of this toolkit or the official SDK.

    Only the SDK's ReadResourceContents have no URI, and get the one that the client reads. Raise a DeveloperError for
    any other value, and for contents that lack a member of their type.
    """
    if content_kind(value) != "resource contents":
        allowed = "text, bytes, JSON, ResourceContents or a list of them"
        raise DeveloperError(f"{type_name(value)} is no part of a resource: it returns {allowed}")
    if not hasattr(value, "uri"):
        read: Any = value
        return write_contents(uri, read.content, read.mime_type, getattr(read, "meta", None))
    contents = to_wire(value)
    if not _is_resource_contents(contents):
        raise DeveloperError(f"{type_name(value)} needs a uri, and text or bytes")
    return contents


def write_contents(
    uri: str, contents: str | bytes, mime_type: str | None, meta: Mapping[str, Any] | None
) -> ContentBlock:
    """Write TextResourceContents or BlobResourceContents; raise a TypeError or ValueError for what JSON cannot hold."""
    members: ContentBlock = {"uri": uri}
    if mime_type is not None:
        members["mimeType"] = mime_type
    if meta is not None:
        members["_meta"] = to_json(dict(meta))
    if isinstance(contents, str):
        return {**members, "text": contents}
    return {**members, "blob": write_bytes(contents)}


def write_bytes(data: bytes) -> str:
    """Write bytes as base64, or raise a TypeError for any other value."""
    if not isinstance(data, BYTES):
        raise TypeError("its data must be bytes")
    return to_base64(data)


def messages(value: object) -> list[PromptMessage]:
    """Write text, content or a message as messages. A message with several blocks becomes one for each block.

    Raise a DeveloperError for any other value, and for a message whose `role` the protocol does not know.
    """
    if isinstance(value, str) or content_kind(value) == "block":
        return [{"role": "user", "content": block(value)}]
    if content_kind(value) != "message":
        raise DeveloperError(f"a prompt returns text, messages or content, not {type_name(value)}")
    message: Any = value
    if message.role not in ("user", "assistant"):
        raise DeveloperError(f'the role of a {type_name(value)} is "user" or "assistant"')
    blocks = message.content if isinstance(message.content, list | tuple) else [message.content]
    return [{"role": message.role, "content": block(item)} for item in blocks]


def to_wire(value: object) -> JSONValue:
    """Return a part of a result, or a whole result, as JSON values, or raise a DeveloperError."""
    model: Any = value
    for method in FASTMCP_METHODS:
        if hasattr(value, method):
            model = getattr(value, method)()
    is_of_toolkit = hasattr(model, "wire")
    try:
        return model.wire() if is_of_toolkit else pydantic_to_json(model)
    except (TypeError, ValueError) as error:
        # The toolkit's own text may quote one member. pydantic's text would quote the whole value, so it is not shown.
        reason = error if is_of_toolkit else type(error).__name__
        rule = "{type} is no content as the protocol has it: {reason}"
        raise DeveloperError(rule, type=type_name(value), reason=reason) from None


def _is_block(value: JSONValue) -> TypeGuard[ContentBlock]:
    if not isinstance(value, dict):
        return False
    if value.get("type") == "resource":
        return _is_resource_contents(value.get("resource"))
    if value.get("type") not in STRING_MEMBERS:
        return False
    return all(isinstance(value.get(member), str) for member in STRING_MEMBERS[value["type"]])


def _is_resource_contents(value: JSONValue) -> TypeGuard[ContentBlock]:
    if not isinstance(value, dict) or not isinstance(value.get("uri"), str):
        return False
    contents = [value[member] for member in ("text", "blob") if member in value]
    return len(contents) == 1 and isinstance(contents[0], str)
