"""The parts of results as JSON: a content block, the contents of a resource, and the messages of a prompt.

    block("done")                                  {"type": "text", "text": "done"}
    resource_contents(ResourceContents(…), uri)    {"uri": "note://1", "text": "Milk"}
    messages("Hello")                              [{"role": "user", "content": {"type": "text", "text": "Hello"}}]

A value may be of three libraries, and `to_wire` writes each in its own way:

    this toolkit        its method `wire()`
    the official SDK    pydantic
    FastMCP             Image, Audio and File have a method that returns content of the official SDK

The JSON is checked, because an author may leave out or mistype a member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.plain_values import BLOCK, MESSAGE, RESOURCE, content_kind, pydantic_to_json, type_name

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import JSONObject, JSONValue

# FastMCP's Image, Audio and File have one of these methods each.
FASTMCP_METHODS = ("to_image_content", "to_audio_content", "to_resource_content")
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
        value: the text, or a value whose part is BLOCK.

    Raises:
        DeveloperError: the value is neither, or lacks a member of its type.
    """
    if isinstance(value, str):
        return {"type": "text", "text": value}
    if content_kind(value) != BLOCK:
        allowed = "text, Text, Image, Audio, EmbeddedResource or ResourceLink"
        raise DeveloperError(rule=f"content is {allowed}, not {type_name(value)}")
    written = to_wire(value)
    if not _is_block(written):
        reason = "a member is missing or of a wrong type"
        raise DeveloperError(rule=f"{type_name(value)} is no content as the protocol has it: {reason}")
    return written


def resource_contents(value: object, uri: str) -> JSONObject:
    """Return the contents of a resource.

    Args:
        value: a value whose part is RESOURCE.
        uri: the URI that was read, for a type that has no URI.

    Raises:
        DeveloperError: the value is another part, or lacks a member of its type.
    """
    if content_kind(value) != RESOURCE:
        allowed = "text, bytes, JSON, ResourceContents or a list of them"
        raise DeveloperError(rule=f"{type_name(value)} is no part of a resource: it returns {allowed}")
    resource: Any = value
    lacks_uri = not hasattr(resource, "uri")  # only ReadResourceContents of the official SDK has none
    if lacks_uri:
        from mcp_functions.protocol.content import ResourceContents  # noqa: PLC0415 - other types do not need it

        resource = ResourceContents(uri, resource.content, resource.mime_type, getattr(resource, "meta", None))
    written = to_wire(resource)
    if not _is_resource_contents(written):
        raise DeveloperError(rule=f"{type_name(resource)} needs a uri, and text or bytes")
    return written


def messages(value: object) -> list[JSONObject]:
    """Return a value of a prompt as messages. A message with several blocks becomes one message for each block.

    Args:
        value: the text, or a value whose part is BLOCK or MESSAGE.

    Raises:
        DeveloperError: the value is none of these, or a message whose `role` the protocol does not know.
    """
    if isinstance(value, str) or content_kind(value) == BLOCK:
        return [{"role": "user", "content": block(value)}]
    if content_kind(value) != MESSAGE:
        raise DeveloperError(rule=f"a prompt returns text, messages or content, not {type_name(value)}")
    message: Any = value
    if message.role not in ("user", "assistant"):
        raise DeveloperError(rule=f'the role of a {type_name(value)} is "user" or "assistant"')
    blocks = message.content if isinstance(message.content, list | tuple) else [message.content]
    return [{"role": message.role, "content": block(each)} for each in blocks]


def to_wire(value: object) -> JSONValue:
    """Return a part of a result, or a whole one, as JSON values.

    Raises:
        DeveloperError: the value cannot be written.
    """
    model: Any = _to_sdk_content(value)
    is_ours = hasattr(model, "wire")
    try:
        return model.wire() if is_ours else pydantic_to_json(model)
    except (TypeError, ValueError) as error:
        # The author reads our own reason, which may quote a member. pydantic's would quote the whole value.
        reason = error if is_ours else type(error).__name__
        # The log gets the rule without the values.
        rule = "{type} is no content as the protocol has it: {reason}"
        raise DeveloperError(rule, type=type_name(value), reason=reason) from None


def _to_sdk_content(value: object) -> object:
    """Convert FastMCP's Image, Audio or File; return any other value as it is."""
    for method in FASTMCP_METHODS:
        if hasattr(value, method):
            return getattr(value, method)()
    return value


def _is_block(written: object) -> TypeGuard[JSONObject]:
    if not isinstance(written, dict) or written.get("type") not in STRING_MEMBERS:
        return False
    if written["type"] == "resource":
        return _is_resource_contents(written.get("resource"))
    return all(isinstance(written.get(member), str) for member in STRING_MEMBERS[written["type"]])


def _is_resource_contents(written: object) -> TypeGuard[JSONObject]:
    if not isinstance(written, dict) or not isinstance(written.get("uri"), str):
        return False
    members = [written[member] for member in ("text", "blob") if member in written]
    return len(members) == 1 and isinstance(members[0], str)
