"""Turns what a tool, a prompt or a resource returns into the result of the request.

For example, of a tool:

    "done"            {"content": [{"type": "text", "text": "done"}], "isError": False}
    ["a", Image(…)]   {"content": [{"type": "text", "text": "a"}, {"type": "image", …}], "isError": False}
    {"total": 3}      {"content": [{"type": "text", "text": '{"total":3}'}], "structuredContent": {"total": 3}, …}

"For backwards compatibility, a tool that returns structured content SHOULD also return the serialized JSON in a
TextContent block" (server/tools). Content is a value of a protocol type (see `plain_values`): Text, Image and so on.
`content_blocks` writes it, and is imported only if there is content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.constants import OWN_META
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.json_writer import dumps, to_base64
from mcp_functions.protocol.plain_values import BYTES, NotJson, content_kind, content_kind_of_type, to_json, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    from mcp_functions.protocol.wire_types import ContentBlock, ResultObject

    Write: TypeAlias = Callable[[object], Any]

# The end of an error text: the types that a function may return.
TOOL_RETURNS = (
    "a tool returns text, content, a list with content in it, a CallToolResult, or a value that JSON can carry"
)
RESOURCE_RETURNS = "a resource returns text, bytes, ResourceContents or a list of them, or a value that JSON can carry"


def call_tool_result(
    value: object, write: Write = to_json, *, promises_structured: bool = False, promises_list: bool = False
) -> ResultObject:
    """Write the return value of a tool as CallToolResult.

    Args:
        value: the return value: text, content, a list with content in it, or any value that JSON can carry.
        write: writes a value that is neither text nor content, as its type says.
        promises_structured: True if the signature promises structured content. Then text and None are structured too.
        promises_list: True if the signature promises a list of content. Then an empty list is a list of content.

    Raises:
        DeveloperError: a tool may not return a value of this type.
    """
    if isinstance(value, list | tuple) and (promises_list or _holds_content(value)):
        return {"content": _blocks(value, write), "isError": False}
    kind = content_kind(value)
    if kind == "tool result":
        return _whole_result(value, write if promises_structured else to_json)
    if kind == "block":
        return {"content": _blocks([value]), "isError": False}
    if isinstance(value, str | None) and not promises_structured:
        return {"content": [] if value is None else [_text(value)], "isError": False}
    plain, text = _plain_and_text(value, TOOL_RETURNS, write)
    return {"content": [_text(text)], "structuredContent": plain, "isError": False}


def drop_own_meta(value: object) -> None:
    """Remove this toolkit's own keys from the `_meta` of an author's result, and of its blocks and resources.

    A result of another server, which an author passes on or adopts, could otherwise make the form call any tool.
    Structured content is the author's data and keeps all keys.
    """
    if isinstance(value, list):
        for each in value:
            drop_own_meta(each)
    elif isinstance(value, dict):
        meta = value.get("_meta")
        if isinstance(meta, dict) and any(key.startswith(OWN_META) for key in meta):
            value["_meta"] = {key: each for key, each in meta.items() if not key.startswith(OWN_META)}
        for name, member in value.items():
            if isinstance(member, dict | list) and name not in ("_meta", "structuredContent"):
                drop_own_meta(member)


def tool_error(text: str) -> ResultObject:
    """Write a failure for the model: "tool execution errors" are results, and not JSON-RPC errors (server/tools)."""
    return {"content": [_text(text)], "isError": True}


def get_prompt_result(value: object, description: str | None) -> ResultObject:
    """Write the return value of a prompt as GetPromptResult.

    Args:
        value: the return value: text, a message, content, a list of these, or a whole GetPromptResult.
        description: the description of the prompt, for a value that has none itself.

    Raises:
        DeveloperError: a prompt may not return a value of this type.
    """
    from mcp_functions.protocol import content_blocks

    result: ResultObject = {}
    messages: Any = value
    if content_kind(value) == "prompt result":
        whole = content_blocks.to_wire(value)
        if "_meta" in whole:
            result["_meta"] = whole["_meta"]
        description = whole.get("description", description)
        messages = messages.messages
    if description:
        result["description"] = description
    items = messages if isinstance(messages, list | tuple) else [messages]
    result["messages"] = [message for item in items for message in content_blocks.messages(item)]
    return result


def read_resource_contents(
    value: object, uri: str, mime_type: str | None, write: Write = to_json
) -> list[ContentBlock]:
    """Write the return value of a resource as `contents`.

    Args:
        value: the return value: text, bytes, ResourceContents or a list of them, or a value that JSON can carry.
        uri: the URI of the resource.
        mime_type: the MIME type of the resource, for a value without one.
        write: writes a value that is neither text, bytes nor ResourceContents, as its type says.

    Raises:
        DeveloperError: a resource may not return a value of this type.
    """
    kind = content_kind(value)
    contents: Any = value
    if kind == "resource result":
        contents = contents.contents
    items = contents if isinstance(contents, list | tuple) else [contents]
    if kind or _holds_content(items):
        from mcp_functions.protocol import content_blocks

        return [content_blocks.resource_contents(item, uri) for item in items]
    if isinstance(value, BYTES):
        if not mime_type:
            return [{"uri": uri, "blob": to_base64(value)}]
        return [{"uri": uri, "mimeType": mime_type, "blob": to_base64(value)}]
    if isinstance(value, str):
        return [{"uri": uri, "mimeType": mime_type or "text/plain", "text": value}]
    _plain, text = _plain_and_text(value, RESOURCE_RETURNS, write)
    return [{"uri": uri, "mimeType": mime_type or "application/json", "text": text}]


def _holds_content(values: Iterable[object]) -> bool:
    types = {type(value) for value in values}  # each is looked up once: a list may be long
    return any(content_kind_of_type(cls) for cls in types)


def _text(text: str) -> ContentBlock:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DeveloperError("the function returned text with half of a surrogate pair") from None
    return {"type": "text", "text": text}


def _blocks(values: Iterable[object], write: Write = to_json) -> list[ContentBlock]:
    """Write a list of content as blocks. Any other value in it becomes text (its JSON), and None is left out."""
    from mcp_functions.protocol import content_blocks

    blocks = []
    for item in values:
        if isinstance(item, str):
            blocks.append(_text(item))
        elif content_kind(item):
            blocks.append(content_blocks.block(item))
        elif item is not None:
            _plain, text = _plain_and_text(item, TOOL_RETURNS, write)
            blocks.append(_text(text))
    return blocks


def _whole_result(value: object, write: Write) -> ResultObject:
    """Write a CallToolResult, or FastMCP's ToolResult."""
    whole: Any = value
    content = [whole.content] if isinstance(whole.content, str) else whole.content
    result: ResultObject = {"content": _blocks(content), "isError": bool(_member(value, "is_error", "isError"))}
    structured = _member(value, "structured_content", "structuredContent")
    # Without structured content, the classes of other libraries have None here. The CallToolResult of this toolkit has
    # `...`, because None is a value of JSON.
    is_of_toolkit = any(base.__module__ == "mcp_functions.protocol.content" for base in type(value).__mro__)
    absent = ... if is_of_toolkit else None
    if structured is not absent:
        write = to_json if result["isError"] else write
        result["structuredContent"], _json = _plain_and_text(structured, TOOL_RETURNS, write)
    meta = getattr(value, "meta", None)
    if meta:
        result["_meta"], _json = _plain_and_text(dict(meta), TOOL_RETURNS)
    return result


def _member(value: object, name: str, old_name: str) -> object:
    """Return an attribute by its name, or by the name in older versions of a library. FastMCP warns of the old name."""
    if hasattr(value, name):
        return getattr(value, name)
    return getattr(value, old_name, None)


def _plain_and_text(value: object, allowed: str, write: Write = to_json) -> tuple[Any, str]:
    """Write what a function returned as plain JSON values, and these as text.

    If JSON cannot hold it, raise a DeveloperError, which also says what the function is `allowed` to return.
    """
    try:
        plain = write(value)
        text = dumps(plain)
        text.encode()
    except NotJson as error:
        reason = str(error)
    except UnicodeEncodeError:
        reason = f"{type_name(value)} with half of a surrogate pair"
    except TypeError:
        reason = type_name(value)
    except ValueError:
        reason = f"{type_name(value)} with NaN, Infinity or too many digits"
    else:
        return plain, text
    raise DeveloperError(f"JSON cannot carry what the function returned ({reason}): {allowed}")
