"""An author's return value as the result of its method.

Text is text; the content types are content; anything else is structured content, with its JSON as text beside it ("for
backwards compatibility, a tool that returns structured content SHOULD also return the serialized JSON in a TextContent
block").
"""

from __future__ import annotations

import binascii
import sys
from typing import Any

from mcp_functions.errors import DeveloperError
from mcp_functions.jsonrpc import dumps

PLAIN = (str, int, float, bool, type(None))
NUMBERS = frozenset({int, float, bool})
UNSTRUCTURED: Any = object()  # is in no result


def call_tool_result(value: Any, *, promised: bool = False) -> dict[str, Any]:  # noqa: ANN401 - the author's own value
    """Write what a tool returned as CallToolResult.

    Args:
        value: text, content, a list with content in it, or any value that JSON can carry.
        promised: whether the tool's signature promises structured content, so that text and None are such values too.

    Raises:
        DeveloperError: JSON cannot carry the value.

    """
    plain = structured(value, promised=promised)
    if plain is not UNSTRUCTURED:
        return {"content": [_text(_dumps(plain))], "structuredContent": plain, "isError": False}
    if isinstance(value, list | tuple) and _holds_content(value):
        return {"content": [_block(item) for item in value], "isError": False}
    if _says(value, "wire_result"):
        result = dict(value.wire_result())
        return (
            {**result, "structuredContent": to_json(result["structuredContent"])}
            if "structuredContent" in result
            else result
        )
    if _says(value):
        return {"content": [value.wire()], "isError": False}
    return {"content": [] if value is None else [_text(value)], "isError": False}


def structured(value: Any, *, promised: bool = False) -> Any:  # noqa: ANN401 - the author's own value
    """Take what a tool returned as a JSON value; UNSTRUCTURED if it is text, content or nothing. As above."""
    if type(value) in NUMBERS:
        return value
    if value is None or isinstance(value, str):
        return value if promised else UNSTRUCTURED  # of a Literal, or an enum
    if _says(value, "wire_result") or _says(value):
        return UNSTRUCTURED
    if isinstance(value, list | tuple) and _holds_content(value):
        return UNSTRUCTURED
    return to_json(value)


def tool_error(text: str) -> dict[str, Any]:
    """Write a failure that the model should see: "tool execution errors" are results, not JSON-RPC errors."""
    return {"content": [_text(text)], "isError": True}


def get_prompt_result(value: Any, description: str | None) -> dict[str, Any]:  # noqa: ANN401 - the author's own value
    """Write what a prompt returned as GetPromptResult: text, a message, content, or a list of these.

    Raises:
        DeveloperError: it is none of them.

    """
    items = value if isinstance(value, list | tuple) else [value]
    return {
        **({"description": description} if description else {}),
        "messages": [_message(item) for item in items],
    }


def read_resource_contents(value: Any, uri: str, mime_type: str | None) -> list[dict[str, Any]]:  # noqa: ANN401
    """Write what a resource returned as `contents`: text, bytes, ResourceContents, a list of these, or a JSON value.

    Raises:
        DeveloperError: JSON cannot carry the value.

    """
    if isinstance(value, list | tuple) and value and all(_says(item) for item in value):
        return [_contents(item) for item in value]
    if _says(value):
        return [_contents(value)]
    mime = {"mimeType": mime_type} if mime_type else {}
    if isinstance(value, bytes):
        return [{"uri": uri, **mime, "blob": binascii.b2a_base64(value, newline=False).decode()}]
    if isinstance(value, str):
        return [{"uri": uri, "mimeType": "text/plain", **mime, "text": value}]
    return [{"uri": uri, "mimeType": "application/json", **mime, "text": _dumps(to_json(value))}]


def to_json(value: Any) -> Any:  # noqa: ANN401 - JSON is any value
    """Turn pydantic models and dataclasses into plain JSON values."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, warnings=False)  # which would quote values in the log
    if (core := sys.modules.get("pydantic_core")) and not isinstance(value, PLAIN):
        return _jsonable(core, value)
    if hasattr(value, "__dataclass_fields__"):
        return {name: to_json(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {key: to_json(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(member) for member in value]
    return value


def _jsonable(core: Any, value: object) -> Any:  # noqa: ANN401 - a module; JSON
    try:
        return core.to_jsonable_python(value, by_alias=True)
    except ValueError:
        return value


def _says(value: object, method: str = "wire") -> bool:
    """Tell content, which writes itself, from a value: a transfer of money may well have a field named `wire`."""
    return callable(getattr(value, method, None))


def _holds_content(values: list[Any] | tuple[Any, ...]) -> bool:
    return any(hasattr(item, "wire") and _says(item) for item in values)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _block(item: Any) -> dict[str, Any]:  # noqa: ANN401 - the author's own value
    return dict(item.wire()) if _says(item) else _text(item if isinstance(item, str) else _dumps(item))


def _contents(item: Any) -> dict[str, Any]:  # noqa: ANN401 - the author's own value
    wire: dict[str, Any] = item.wire()
    if "uri" in wire and ("text" in wire or "blob" in wire):
        return wire
    message = f"a resource returns text, bytes, JSON or ResourceContents, not {type(item).__name__}"
    raise DeveloperError(message)


def _message(item: Any) -> dict[str, Any]:  # noqa: ANN401 - the author's own value
    if isinstance(item, str):
        return {"role": "user", "content": _text(item)}
    if _says(item):
        wire = item.wire()
        return wire if "role" in wire else {"role": "user", "content": wire}
    message = f"a prompt returns text, messages or content, not {type(item).__name__}"
    raise DeveloperError(message)


def _dumps(value: object) -> str:
    try:
        return str(value) if type(value) is int else dumps(value)
    except (TypeError, ValueError):
        message = f"JSON cannot carry what the function returned ({type(value).__name__})"
        raise DeveloperError(message) from None
