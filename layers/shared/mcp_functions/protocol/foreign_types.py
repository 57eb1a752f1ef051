"""Values whose classes are types of the protocol: of this toolkit, of the official SDK, or of FastMCP.

A class is known by the package it comes from and by its name. So `mcp` is never imported, and an author's own model
that happens to have a field `type` stays a value. A dict stays a value too, whatever it holds.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.plain_values import to_json, type_name

if TYPE_CHECKING:
    from collections.abc import Iterator

HOMES = frozenset({"mcp_functions", "mcp_types", "mcp", "fastmcp"})
CONTENT, MESSAGE, CONTENTS, RESULT = "content", "message", "contents", "result"
ROLES = {
    **dict.fromkeys(("Text", "TextContent", "Image", "ImageContent", "Audio", "AudioContent", "File"), CONTENT),
    **dict.fromkeys(("EmbeddedResource", "ResourceLink"), CONTENT),
    **dict.fromkeys(("PromptMessage", "SamplingMessage", "Message"), MESSAGE),
    **dict.fromkeys(("ResourceContents", "ReadResourceContents"), CONTENTS),
    **dict.fromkeys(("CallToolResult", "ToolResult", "GetPromptResult", "ReadResourceResult"), RESULT),
}
# FastMCP's helpers write themselves as content of the official SDK.
HELPERS = ("to_image_content", "to_audio_content", "to_resource_content")
# "type" of a content block -> the texts that it must have
MEMBERS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": (),
}


class Model(Protocol):
    """A model of the official SDK, for type checkers."""

    def model_dump(self, *, mode: str, by_alias: bool, exclude_none: bool) -> dict[str, Any]:
        """Write it as a dict."""


def role(value: object) -> str:
    """Say what part a value has in the protocol: CONTENT, MESSAGE, CONTENTS or RESULT; "" if it is no such type."""
    return role_of(type(value))


def role_of(kind: type) -> str:
    """Say the same of a class, which may inherit from a type of the protocol."""
    return next((ROLES[base.__name__] for base in _bases(kind)), "")


def is_protocol(kind: type) -> bool:
    """Tell a class that comes from a package of MCP, or inherits from one."""
    return any(_is_at_home(base) for base in kind.__mro__)


def is_ours(kind: type) -> bool:
    """Tell a class of this toolkit's content, or one that inherits from it."""
    return any(base.__module__ == "mcp_functions.protocol.content" for base in kind.__mro__)


def is_of_a_server(kind: type) -> bool:
    """Tell a class that another toolkit's servers work with, which is no data."""
    return kind.__module__.startswith(("mcp.server.", "fastmcp."))


def _bases(kind: type) -> Iterator[type]:
    return (base for base in kind.__mro__ if base.__name__ in ROLES and _is_at_home(base))


def _is_at_home(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in HOMES


def name(value: object) -> str:
    """Name the protocol's type that a value is, without the author's subclass."""
    return next(base.__name__ for base in _bases(type(value)))


def block(value: object) -> dict[str, Any]:
    """Write one block of content.

    Args:
        value: text, or a value whose role is CONTENT.

    Raises:
        DeveloperError: it is neither, or lacks what its type must have.

    """
    if isinstance(value, str):
        return {"type": "text", "text": value}
    if role(value) != CONTENT:
        message = f"content is text, Text, Image, Audio, EmbeddedResource or ResourceLink, not {type_name(value)}"
        raise DeveloperError(message)
    helper = next((method for method in HELPERS if callable(getattr(value, method, None))), None)
    written: dict[str, Any] = wire(getattr(value, helper)() if helper else value)
    if not _is_block(written):
        message = f"{type_name(value)} is no content as the protocol has it: a member is missing or of a wrong type"
        raise DeveloperError(message)
    return written


def _is_block(written: object) -> bool:
    if not isinstance(written, dict) or written.get("type") not in MEMBERS:
        return False
    if written["type"] == "resource":
        return _is_contents(written.get("resource"))
    return all(isinstance(written.get(member), str) for member in MEMBERS[written["type"]])


def contents(value: Any, uri: str) -> dict[str, Any]:  # noqa: ANN401 - the author's own value
    """Write what a resource holds.

    Args:
        value: a value whose role is CONTENTS.
        uri: that was read, for a type that does not say it.

    Raises:
        DeveloperError: it is none, or lacks what its type must have.

    """
    if role(value) != CONTENTS:
        allowed = "text, bytes, JSON, ResourceContents or a list of them"
        message = f"{type_name(value)} is no part of a resource: it returns {allowed}"
        raise DeveloperError(message)
    written = _read_contents(value, uri) if name(value) == "ReadResourceContents" else wire(value)
    if not _is_contents(written):
        message = f"{type_name(value)} needs a uri, and text or bytes"
        raise DeveloperError(message)
    return written


def _read_contents(value: Any, uri: str) -> dict[str, Any]:  # noqa: ANN401 - the SDK's helper, which has no uri
    held, mime_type, meta = value.content, value.mime_type, getattr(value, "meta", None)
    return {
        "uri": uri,
        **({"mimeType": mime_type} if mime_type else {}),
        **({"text": held} if isinstance(held, str) else {"blob": base64.b64encode(held).decode()}),
        **({"_meta": to_json(dict(meta))} if meta else {}),
    }


def _is_contents(written: object) -> TypeGuard[dict[str, Any]]:
    if not isinstance(written, dict) or not isinstance(written.get("uri"), str):
        return False
    held = [written[member] for member in ("text", "blob") if member in written]
    return len(held) == 1 and isinstance(held[0], str)


def messages(value: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - the author's own value
    """Write one value of a prompt as messages. A message with several blocks becomes one message for each block.

    Args:
        value: text, or a value whose role is CONTENT or MESSAGE.

    Raises:
        DeveloperError: it is none of these, or has a role that the protocol does not know.

    """
    part = role(value)
    if isinstance(value, str) or part == CONTENT:
        return [{"role": "user", "content": block(value)}]
    if part != MESSAGE:
        message = f"a prompt returns text, messages or content, not {type_name(value)}"
        raise DeveloperError(message)
    if value.role not in ("user", "assistant"):
        message = f'the role of a {name(value)} is "user" or "assistant"'
        raise DeveloperError(message)
    blocks = value.content if isinstance(value.content, list | tuple) else [value.content]
    return [{"role": value.role, "content": block(each)} for each in blocks]


def wire(value: Any) -> Any:  # noqa: ANN401 - the author's own value
    """Write a type of the protocol as it goes over the wire.

    Raises:
        DeveloperError: it cannot be written.

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
