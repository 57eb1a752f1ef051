"""Values of protocol types as JSON: content blocks, the contents of a resource, and the messages of a prompt.

A value comes from an author's function. It is a text, a type of this toolkit (`content`), of the official SDK, or of
FastMCP; `plain_values.role` tells which part of a result it can be. What comes out is checked, because such types let
an author leave out or mistype a member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.plain_values import CONTENT, CONTENTS, MESSAGE, dump, protocol_name, role, type_name

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import JSONObject, JSONValue

# FastMCP's Image, Audio and File have one of these methods; it returns content of the official SDK.
HELPER_METHODS = ("to_image_content", "to_audio_content", "to_resource_content")
# The types of content blocks, each with its members that must be strings.
STRING_MEMBERS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": (),
}


def block(value: object) -> JSONObject:
    """Return one content block, as JSON.

    Args:
        value: the text, or a value whose role is CONTENT.

    Raises:
        DeveloperError: the value is neither, or lacks a member of its type.
    """
    if isinstance(value, str):
        return {"type": "text", "text": value}
    if role(value) != CONTENT:
        message = f"content is text, Text, Image, Audio, EmbeddedResource or ResourceLink, not {type_name(value)}"
        raise DeveloperError(message)
    helper_methods = [name for name in HELPER_METHODS if hasattr(value, name)]
    content = getattr(value, helper_methods[0])() if helper_methods else value
    written = to_wire(content)
    if not _is_block(written):
        message = f"{type_name(value)} is no content as the protocol has it: a member is missing or of a wrong type"
        raise DeveloperError(message)
    return written


def contents(value: object, uri: str) -> JSONObject:
    """Return the contents of a resource.

    Args:
        value: a value whose role is CONTENTS.
        uri: the URI that was read, for a type that has no URI.

    Raises:
        DeveloperError: the value has another role, or lacks a member of its type.
    """
    if role(value) != CONTENTS:
        allowed = "text, bytes, JSON, ResourceContents or a list of them"
        raise DeveloperError(rule=f"{type_name(value)} is no part of a resource: it returns {allowed}")
    if protocol_name(type(value)) == "ReadResourceContents":  # this type of the official SDK has no URI
        from mcp_functions.protocol.content import ResourceContents  # noqa: PLC0415 - other types need it not

        read: Any = value
        value = ResourceContents(uri, read.content, read.mime_type, getattr(read, "meta", None))
    written = to_wire(value)
    if not _is_contents(written):
        raise DeveloperError(rule=f"{type_name(value)} needs a uri, and text or bytes")
    return written


def messages(value: object) -> list[JSONObject]:
    """Return a value of a prompt as messages. A message with several blocks becomes one message for each block.

    Args:
        value: the text, or a value whose role is CONTENT or MESSAGE.

    Raises:
        DeveloperError: the value is none of these, or its `role` is unknown to the protocol.
    """
    if isinstance(value, str) or role(value) == CONTENT:
        return [{"role": "user", "content": block(value)}]
    if role(value) != MESSAGE:
        raise DeveloperError(rule=f"a prompt returns text, messages or content, not {type_name(value)}")
    message: Any = value
    if message.role not in ("user", "assistant"):
        raise DeveloperError(rule=f'the role of a {type_name(value)} is "user" or "assistant"')
    blocks = message.content if isinstance(message.content, list | tuple) else [message.content]
    return [{"role": message.role, "content": block(each)} for each in blocks]


def to_wire(value: object) -> JSONValue:
    """Return a value of a protocol type as JSON values.

    Raises:
        DeveloperError: the value cannot be written.
    """
    rule = "{type} is no content as the protocol has it: {reason}"
    if hasattr(value, "wire"):  # a type of this toolkit
        try:
            return value.wire()
        except (TypeError, ValueError) as error:
            raise DeveloperError(rule, type=type_name(value), reason=error) from None
    try:
        return dump(value)
    except ValueError as error:  # hidden, because pydantic's text quotes the value
        raise DeveloperError(rule, type=type_name(value), reason=type(error).__name__) from None


def _is_block(written: object) -> TypeGuard[JSONObject]:
    if not isinstance(written, dict) or written.get("type") not in STRING_MEMBERS:
        return False
    if written["type"] == "resource":
        return _is_contents(written.get("resource"))
    return all(isinstance(written.get(member), str) for member in STRING_MEMBERS[written["type"]])


def _is_contents(written: object) -> TypeGuard[JSONObject]:
    if not isinstance(written, dict) or not isinstance(written.get("uri"), str):
        return False
    members = [written[member] for member in ("text", "blob") if member in written]
    return len(members) == 1 and isinstance(members[0], str)
