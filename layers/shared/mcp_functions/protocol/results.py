"""An author's return value as the result of its method.

Text stays text, and content stays content. Any other value of JSON becomes structured content, with its JSON beside it:
"For backwards compatibility, a tool that returns structured content SHOULD also return the serialized JSON in a
TextContent block" (server/tools). Everything else is refused and never becomes its `str()`.
"""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.plain_values import BYTES, NotJson, to_json, type_name

if TYPE_CHECKING:
    from collections.abc import Iterable

TOOL = "a tool returns text, content, a list with content in it, a CallToolResult, or a value that JSON can carry"
RESOURCE = "a resource returns text, bytes, ResourceContents or a list of them, or a value that JSON can carry"
PLAIN = (dict, list, tuple, str, int, float, bytes, type(None))  # none of them is a type of the protocol


def call_tool_result(value: object, *, promised: bool = False, lists: bool = False) -> dict[str, Any]:
    """Write the return value of a tool as CallToolResult.

    Args:
        value: text, content, a list with content in it, or any value that JSON can carry.
        promised: whether the tool's signature promises structured content, which text and None then are too.
        lists: whether its signature promises lists of content, which an empty list then is too.

    Raises:
        DeveloperError: the value is none of these.
    """
    if isinstance(value, str) and not promised:
        return _content([_text(value)])
    if value is None and not promised:
        return _content([])
    if isinstance(value, list | tuple):
        return _content(_blocks(value)) if lists or _holds_content(value) else _structured(value)
    role = _role(value)
    if role == "result":
        return _whole_result(value)
    return _content(_blocks([value])) if role else _structured(value)


def tool_error(text: str) -> dict[str, Any]:
    """Write a failure for the model: "tool execution errors" are results, and not JSON-RPC errors (server/tools)."""
    return {"content": [_text(text)], "isError": True}


def get_prompt_result(value: object, description: str | None) -> dict[str, Any]:
    """Write the return value of a prompt as GetPromptResult.

    Args:
        value: text, a message, content, a list of these, or a whole GetPromptResult.
        description: of the prompt, for a value without one.

    Raises:
        DeveloperError: the value is none of these.
    """
    from mcp_functions.protocol import content_blocks, foreign_types  # noqa: PLC0415 - other functions do not need it

    meta: dict[str, Any] = {}
    is_result = foreign_types.role(value) == foreign_types.RESULT and foreign_types.name(value) == "GetPromptResult"
    if is_result and hasattr(value, "messages"):
        whole = content_blocks.to_wire(value)
        description = whole.get("description", description)
        meta = {"_meta": whole["_meta"]} if "_meta" in whole else {}
        value = value.messages
    items = value if isinstance(value, list | tuple) else [value]
    return {
        **({"description": description} if description else {}),
        "messages": [message for item in items for message in content_blocks.messages(item)],
        **meta,
    }


def read_resource_contents(value: object, uri: str, mime_type: str | None) -> list[dict[str, Any]]:
    """Write the return value of a resource as `contents`.

    Args:
        value: text, bytes, ResourceContents or a list of them, or a value that JSON can carry.
        uri: of the resource.
        mime_type: of the resource, for a value without one.

    Raises:
        DeveloperError: the value is none of these.
    """
    items = value if isinstance(value, list | tuple) else [value]
    if _role(value) == "result" and hasattr(value, "contents"):
        items = value.contents
    if _role(value) or _holds_content(items):
        from mcp_functions.protocol import content_blocks  # noqa: PLC0415 - plain values do not need it

        return [content_blocks.contents(item, uri) for item in items]
    mime = {"mimeType": mime_type} if mime_type else {}
    if isinstance(value, BYTES):
        return [{"uri": uri, **mime, "blob": binascii.b2a_base64(value, newline=False).decode()}]
    if isinstance(value, str):
        return [{"uri": uri, "mimeType": "text/plain", **mime, "text": value}]
    return [{"uri": uri, "mimeType": "application/json", **mime, "text": _json(value, RESOURCE)[1]}]


def _role(value: object) -> str:
    if isinstance(value, PLAIN):
        return ""
    from mcp_functions.protocol import foreign_types  # noqa: PLC0415 - plain values do not need it

    return foreign_types.role(value)


def _holds_content(values: Iterable[object]) -> bool:
    return any(_role(item) for item in values)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _content(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    return {"content": blocks, "isError": False}


def _structured(value: object) -> dict[str, Any]:
    plain, text = _json(value, TOOL)
    return {"content": [_text(text)], "structuredContent": plain, "isError": False}


def _blocks(values: Iterable[object]) -> list[dict[str, Any]]:
    """Write a list of content. None in it is left out, and a value beside content becomes its JSON, as text."""
    from mcp_functions.protocol import content_blocks  # noqa: PLC0415 - plain values do not need it

    return [
        content_blocks.block(item) if isinstance(item, str) or _role(item) else _text(_json(item, TOOL)[1])
        for item in values
        if item is not None
    ]


def _whole_result(value: object) -> dict[str, Any]:
    """Write a CallToolResult, or FastMCP's ToolResult."""
    from mcp_functions.protocol import foreign_types  # noqa: PLC0415 - the author of a result has imported it

    if not hasattr(value, "content"):
        raise DeveloperError(rule=f"JSON cannot carry what the function returned ({type_name(value)}): {TOOL}")
    content = [value.content] if isinstance(value.content, str) else value.content
    result = {
        "content": _blocks(content),
        "isError": bool(_member(value, ("is_error", "isError"))),
    }
    structured = _member(value, ("structured_content", "structuredContent"))
    # Without structured content, other toolkits write None here, and ours writes `...`.
    is_absent = structured is None and not foreign_types.is_ours(type(value))
    if structured is not ... and not is_absent:
        result["structuredContent"] = _json(structured, TOOL)[0]
    if meta := getattr(value, "meta", None):
        result["_meta"] = _json(dict(meta), TOOL)[0]
    return result


def _member(value: object, names: tuple[str, str]) -> object:
    """Return a member by its new or its old name. FastMCP warns of the old one, so it is read only where it must be."""
    return next((getattr(value, name) for name in names if hasattr(value, name)), None)


def _json(value: object, allowed: str) -> tuple[Any, str]:
    """Write a value as plain JSON values, and as JSON."""
    try:
        plain = to_json(value)
        return plain, dumps(plain)
    except NotJson as error:
        reason = str(error)
    except TypeError:
        reason = type_name(value)
    except ValueError:
        reason = f"{type_name(value)} with NaN, Infinity or too many digits"
    raise DeveloperError(rule=f"JSON cannot carry what the function returned ({reason}): {allowed}")
