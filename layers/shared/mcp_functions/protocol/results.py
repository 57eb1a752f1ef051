"""An author's return value as the result of its method.

Text stays text, and content stays content. Any other value that JSON can hold becomes structured content, with its JSON
beside it: "For backwards compatibility, a tool that returns structured content SHOULD also return the serialized JSON
in a TextContent block" (server/tools). Any other value is refused; it never becomes its `str()`.
"""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING, Any, Protocol, cast

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.plain_values import BYTES, NotJson, to_json, type_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_functions.protocol.wire_types import JSONObject, JSONValue

TOOL = "a tool returns text, content, a list with content in it, a CallToolResult, or a value that JSON can carry"
RESOURCE = "a resource returns text, bytes, ResourceContents or a list of them, or a value that JSON can carry"
PLAIN = (dict, list, tuple, str, int, float, bytes, type(None))


class _WholeResult(Protocol):
    """A CallToolResult of this toolkit or of the official SDK, or FastMCP's ToolResult."""

    content: str | Sequence[object]


class _WithMessages(Protocol):
    messages: Sequence[object]


def call_tool_result(value: object, *, promised: bool = False, lists: bool = False) -> JSONObject:
    """Return the CallToolResult of a tool's return value.

    Args:
        value: text, content, a list with content in it, or any value that JSON can hold.
        promised: whether the tool's signature promises structured content; then text and None are structured too.
        lists: whether its signature promises lists of content; then an empty list is one.

    Raises:
        DeveloperError: the value is none of these.

    """
    if isinstance(value, str) and not promised:
        return _content([_text(value)])
    if value is None and not promised:
        return _content([])
    if isinstance(value, list | tuple):
        return _content(_blocks(value)) if lists or _has_content(value) else _structured(value)
    role = _role(value)
    if role == "result":
        return _whole_result(value)
    return _content(_blocks([value])) if role else _structured(value)


def tool_error(text: str) -> JSONObject:
    """Return a failure that the model should read: a "tool execution error" is a result (server/tools)."""
    return {"content": [_text(text)], "isError": True}


def get_prompt_result(value: object, description: str | None) -> JSONObject:
    """Return the GetPromptResult of a prompt's return value: text, a message, content, a list, or a whole result.

    Raises:
        DeveloperError: the value is none of these.

    """
    from mcp_functions.protocol import content_blocks, foreign_types  # noqa: PLC0415 - only a prompt needs them

    meta = None
    if foreign_types.role(value) == foreign_types.RESULT and foreign_types.name(value) == "GetPromptResult":
        whole = content_blocks.to_wire(value)
        description, meta = whole.get("description", description), whole.get("_meta")
        value = cast("_WithMessages", value).messages
    items = value if isinstance(value, list | tuple) else [value]
    messages = [message for item in items for message in content_blocks.messages(item)]
    return _present(description=description or None, messages=messages, _meta=meta)


def read_resource_contents(value: object, uri: str, mime_type: str | None) -> list[JSONObject]:
    """Return the `contents` of a resource's return value: text, bytes, ResourceContents, a list of them, or JSON.

    Raises:
        DeveloperError: the value is none of these.

    """
    if isinstance(value, list | tuple) and _has_content(value):
        return _contents(value, uri)
    role = _role(value)
    if role:
        is_whole = role == "result" and hasattr(value, "contents")
        return _contents(value.contents if is_whole else [value], uri)  # type: ignore[attr-defined]
    if isinstance(value, BYTES):
        blob = binascii.b2a_base64(value, newline=False).decode()
        return [_present(uri=uri, mimeType=mime_type or None, blob=blob)]
    if isinstance(value, str):
        return [{"uri": uri, "mimeType": mime_type or "text/plain", "text": value}]
    return [{"uri": uri, "mimeType": mime_type or "application/json", "text": _to_json(value, RESOURCE)[1]}]


def _role(value: object) -> str:
    if isinstance(value, PLAIN):
        return ""
    from mcp_functions.protocol import foreign_types  # noqa: PLC0415 - plain values do not need it

    return foreign_types.role(value)


def _has_content(values: Sequence[object]) -> bool:
    return any(_role(item) for item in values)


def _present(**members: JSONValue) -> JSONObject:
    return {name: value for name, value in members.items() if value is not None}


def _text(text: str) -> JSONObject:
    return {"type": "text", "text": text}


def _content(blocks: list[JSONObject]) -> JSONObject:
    return {"content": blocks, "isError": False}


def _structured(value: object) -> JSONObject:
    plain, text = _to_json(value, TOOL)
    return {"content": [_text(text)], "structuredContent": plain, "isError": False}


def _blocks(values: Sequence[object]) -> list[JSONObject]:
    """Return content blocks. None is left out, and a value beside content becomes its JSON as text."""
    return [_block(item) for item in values if item is not None]


def _block(item: object) -> JSONObject:
    if isinstance(item, str):
        return _text(item)
    if not _role(item):
        return _text(_to_json(item, TOOL)[1])
    from mcp_functions.protocol import content_blocks  # noqa: PLC0415 - plain values do not need it

    return content_blocks.block(item)


def _whole_result(value: object) -> JSONObject:
    if not hasattr(value, "content"):
        rule = f"JSON cannot carry what the function returned ({type_name(value)}): {TOOL}"
        raise DeveloperError(rule)
    content = cast("_WholeResult", value).content
    result = _content(_blocks([content] if isinstance(content, str) else content))
    result["isError"] = bool(_attribute(value, "is_error", "isError"))
    structured = _structured_content(value)
    if structured is not ...:
        result["structuredContent"] = _to_json(structured, TOOL)[0]
    meta = _attribute(value, "meta")
    if meta:
        result["_meta"] = _to_json(dict(meta), TOOL)[0]
    return result


def _structured_content(value: object) -> object:
    """Return the structured content of a whole result; `...` if it has none, for which other toolkits use None."""
    from mcp_functions.protocol import foreign_types  # noqa: PLC0415 - plain values do not need it

    content = _attribute(value, "structured_content", "structuredContent")
    return ... if content is None and not foreign_types.is_ours(type(value)) else content


def _attribute(value: object, *names: str) -> Any:  # noqa: ANN401 - what a class of another package has
    return next((getattr(value, name) for name in names if hasattr(value, name)), None)


def _contents(items: Sequence[object], uri: str) -> list[JSONObject]:
    from mcp_functions.protocol import content_blocks  # noqa: PLC0415 - plain values do not need it

    return [content_blocks.contents(item, uri) for item in items]


def _to_json(value: object, allowed: str) -> tuple[JSONValue, str]:
    """Return a value as plain JSON values, and as text."""
    try:
        plain = to_json(value)
        return plain, dumps(plain)
    except NotJson as error:
        reason = str(error)
    except TypeError:
        reason = type_name(value)
    except ValueError:
        reason = f"{type_name(value)} with NaN, Infinity or too many digits"
    rule = f"JSON cannot carry what the function returned ({reason}): {allowed}"
    raise DeveloperError(rule)
