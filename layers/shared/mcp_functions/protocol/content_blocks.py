"""Values of protocol types as JSON: content blocks, the contents of a resource, and the messages of a prompt."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Protocol, TypeGuard, cast

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.foreign_types import CONTENT, CONTENTS, MESSAGE, is_ours, name, role
from mcp_functions.protocol.plain_values import to_json, type_name

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import JSONObject, JSONValue

# Methods of FastMCP's helpers, which return content of the official SDK.
HELPERS = ("to_image_content", "to_audio_content", "to_resource_content")
# The type of a content block, and the members that must be strings.
MEMBERS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": (),
}


class _Message(Protocol):
    role: str
    content: object


class _ReadContents(Protocol):
    """The official SDK's ReadResourceContents, which has no URI."""

    content: str | bytes
    mime_type: str | None


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
    helpers = [getattr(value, method) for method in HELPERS if callable(getattr(value, method, None))]
    written = to_wire(helpers[0]() if helpers else value)
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
    is_without_uri = name(value) == "ReadResourceContents"
    written = _with_uri(cast("_ReadContents", value), uri) if is_without_uri else to_wire(value)
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
    part = role(value)
    if isinstance(value, str) or part == CONTENT:
        return [{"role": "user", "content": block(value)}]
    if part != MESSAGE:
        raise DeveloperError(rule=f"a prompt returns text, messages or content, not {type_name(value)}")
    message = cast("_Message", value)
    if message.role not in ("user", "assistant"):
        raise DeveloperError(rule=f'the role of a {name(value)} is "user" or "assistant"')
    blocks = message.content if isinstance(message.content, list | tuple) else [message.content]
    return [{"role": message.role, "content": block(each)} for each in blocks]


def to_wire(value: object) -> JSONValue:
    """Return a value of a protocol type as JSON values.

    Raises:
        DeveloperError: the value cannot be written.
    """
    try:
        if hasattr(value, "model_dump"):
            return value.model_dump(mode="json", by_alias=True, exclude_none=True, warnings=False)
        if hasattr(value, "wire"):
            return value.wire()
        reason = "it has no way to write itself"
    except (TypeError, ValueError) as error:
        reason = str(error) if is_ours(type(value)) else type(error).__name__
    rule = "{type} is no content as the protocol has it: {reason}"
    raise DeveloperError(rule, type=type_name(value), reason=reason)


def _with_uri(value: _ReadContents, uri: str) -> JSONObject:
    written: JSONObject = {"uri": uri}
    if value.mime_type:
        written["mimeType"] = value.mime_type
    if isinstance(value.content, str):
        written["text"] = value.content
    else:
        written["blob"] = base64.b64encode(value.content).decode()
    meta = getattr(value, "meta", None)
    if meta:
        written["_meta"] = to_json(dict(meta))
    return written


def _is_block(written: object) -> TypeGuard[JSONObject]:
    if not isinstance(written, dict) or written.get("type") not in MEMBERS:
        return False
    if written["type"] == "resource":
        return _is_contents(written.get("resource"))
    return all(isinstance(written.get(member), str) for member in MEMBERS[written["type"]])


def _is_contents(written: object) -> TypeGuard[JSONObject]:
    if not isinstance(written, dict) or not isinstance(written.get("uri"), str):
        return False
    members = [written[member] for member in ("text", "blob") if member in written]
    return len(members) == 1 and isinstance(members[0], str)
