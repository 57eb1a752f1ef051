"""An author's return value as the result of its method.

Text stays text, and content stays content. Any other value that JSON can carry becomes structured content, with its
JSON beside it: "For backwards compatibility, a tool that returns structured content SHOULD also return the serialized
JSON in a TextContent block." Everything else is refused; it never becomes its `str()`.
"""

from __future__ import annotations

import binascii
from typing import Any

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.plain_values import BYTES, NotJson, to_json, type_name

TOOL = "a tool returns text, content, a list with content in it, a CallToolResult, or a value that JSON can carry"
RESOURCE = "a resource returns text, bytes, ResourceContents or a list of them, or a value that JSON can carry"


def call_tool_result(value: Any, *, promised: bool = False, lists: bool = False) -> dict[str, Any]:  # noqa: ANN401
    """Write what a tool returned as CallToolResult.

    Args:
        value: text, content, a list with content in it, or any value that JSON can carry.
        promised: whether the tool's signature promises structured content, so that it also covers text and None.
        lists: whether its signature promises lists of content, so that an empty list is one too.

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
        return _whole(value)
    return _content(_blocks([value])) if role else _structured(value)


def tool_error(text: str) -> dict[str, Any]:
    """Write a failure that the model should see: "tool execution errors" are results, not JSON-RPC errors."""
    return {"content": [_text(text)], "isError": True}


def get_prompt_result(value: Any, description: str | None) -> dict[str, Any]:  # noqa: ANN401 - the author's own value
    """Write what a prompt returned as GetPromptResult: text, a message, content, a list of these, or the whole result.

    Raises:
        DeveloperError: it is none of them.

    """
    from mcp_functions.protocol import foreign_types  # noqa: PLC0415 - other functions do not need it

    meta: dict[str, Any] = {}
    if foreign_types.role(value) == foreign_types.RESULT and foreign_types.name(value) == "GetPromptResult":
        whole = foreign_types.wire(value)
        description, meta = whole.get("description", description), _members(whole, "_meta")
        value = value.messages
    items = value if isinstance(value, list | tuple) else [value]
    return {
        **({"description": description} if description else {}),
        "messages": [message for item in items for message in foreign_types.messages(item)],
        **meta,
    }


def read_resource_contents(value: Any, uri: str, mime_type: str | None) -> list[dict[str, Any]]:  # noqa: ANN401
    """Write what a resource returned as `contents`: text, bytes, ResourceContents or a list of them, or a JSON value.

    Raises:
        DeveloperError: it is none of them.

    """
    if isinstance(value, list | tuple) and _holds_content(value):
        return [_contents(item, uri) for item in value]
    role = _role(value)
    if role == "result" and hasattr(value, "contents"):
        return [_contents(item, uri) for item in value.contents]
    if role:
        return [_contents(value, uri)]
    mime = {"mimeType": mime_type} if mime_type else {}
    if isinstance(value, BYTES):
        return [{"uri": uri, **mime, "blob": binascii.b2a_base64(value, newline=False).decode()}]
    if isinstance(value, str):
        return [{"uri": uri, "mimeType": "text/plain", **mime, "text": value}]
    return [{"uri": uri, "mimeType": "application/json", **mime, "text": _json(value, RESOURCE)[1]}]


def _role(value: object) -> str:
    if isinstance(value, dict | list | tuple | str | int | float | bytes | type(None)):
        return ""
    from mcp_functions.protocol import foreign_types  # noqa: PLC0415 - plain values do not need it

    return foreign_types.role(value)


def _holds_content(values: list[Any] | tuple[Any, ...]) -> bool:
    return any(_role(item) for item in values)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _content(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    return {"content": blocks, "isError": False}


def _structured(value: Any) -> dict[str, Any]:  # noqa: ANN401 - the author's own value
    plain, text = _json(value, TOOL)
    return {"content": [_text(text)], "structuredContent": plain, "isError": False}


def _blocks(values: list[Any] | tuple[Any, ...]) -> list[dict[str, Any]]:
    """Write a list of content. None in it is nothing, and a value beside content is its JSON, as text."""
    return [_block(item) for item in values if item is not None]


def _block(item: Any) -> dict[str, Any]:  # noqa: ANN401 - the author's own value
    from mcp_functions.protocol import foreign_types  # noqa: PLC0415 - whoever returns content has imported it

    if isinstance(item, str) or foreign_types.role(item):
        return foreign_types.block(item)
    return _text(_json(item, TOOL)[1])


def _whole(value: Any) -> dict[str, Any]:  # noqa: ANN401 - a CallToolResult, or FastMCP's ToolResult
    if not hasattr(value, "content"):
        rule = f"JSON cannot carry what the function returned ({type_name(value)}): {TOOL}"
        raise DeveloperError(rule)
    structured = _given_structure(value)
    meta = getattr(value, "meta", None)
    content = [value.content] if isinstance(value.content, str) else value.content
    return {
        "content": _blocks(content),
        **({} if structured is ... else {"structuredContent": _json(structured, TOOL)[0]}),
        "isError": bool(getattr(value, "is_error", getattr(value, "isError", False))),
        **({"_meta": _json(dict(meta), TOOL)[0]} if meta else {}),
    }


def _given_structure(value: Any) -> Any:  # noqa: ANN401 - as above; JSON is any value
    """Take the structured content of a whole result; `...` if there is none, which other toolkits write as None."""
    from mcp_functions.protocol import foreign_types  # noqa: PLC0415 - whoever returns a result has imported it

    given = getattr(value, "structured_content", getattr(value, "structuredContent", None))
    return ... if given is None and not foreign_types.is_ours(type(value)) else given


def _members(whole: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: whole[name] for name in names if name in whole}


def _contents(item: Any, uri: str) -> dict[str, Any]:  # noqa: ANN401 - the author's own value
    from mcp_functions.protocol import foreign_types  # noqa: PLC0415 - whoever returns contents has imported it

    return foreign_types.contents(item, uri)


def _json(value: Any, allowed: str) -> tuple[Any, str]:  # noqa: ANN401 - JSON is any value
    """Turn a value into plain JSON values, and these into JSON."""
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
