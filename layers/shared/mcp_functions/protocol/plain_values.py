"""An author's value as plain JSON values. A value that JSON cannot hold is refused; it never becomes its `str()`.

    {"day": date(2026, 7, 28), 1: {"b", "a"}}    {"day": "2026-07-28", "1": ["a", "b"]}
    {"picture": b"…"}                            refused: "dict that holds bytes: binary data goes into Image, …"
    Image(b"…", "image/png")                     refused: a protocol type is no plain value

This module reads JSON's own types, dataclasses, enums, dates and datetimes. pydantic reads UUIDs, paths, decimals and
the rest; it is imported only for them.

A protocol type is a class of this toolkit, of the official SDK, or of FastMCP that can be a part of a result. Its
package and its name identify it, so `mcp` is never imported. An author's own model with a field `type` is a plain
value, and so is a dict, whatever it holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from enum import Enum
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from mcp_functions.protocol.wire_types import JSONValue

# ---- Protocol types

PACKAGES = frozenset({"mcp_functions", "mcp_types", "mcp", "fastmcp"})  # the packages whose classes are protocol types

# The parts of a result.
BLOCK = "block"  # a content block
MESSAGE = "message"  # a message of a prompt
RESOURCE = "resource"  # the contents of a resource
WHOLE_RESULT = "result"  # a whole result
# The kind of content that a type of the protocol is, by the name of its class.
CONTENT_KINDS = {
    "Text": BLOCK, "TextContent": BLOCK, "Image": BLOCK, "ImageContent": BLOCK, "Audio": BLOCK,
    "AudioContent": BLOCK, "File": BLOCK, "EmbeddedResource": BLOCK, "ResourceLink": BLOCK,
    "PromptMessage": MESSAGE, "SamplingMessage": MESSAGE, "Message": MESSAGE,
    "ResourceContents": RESOURCE, "ReadResourceContents": RESOURCE,
    "CallToolResult": WHOLE_RESULT, "ToolResult": WHOLE_RESULT, "GetPromptResult": WHOLE_RESULT,
    "ReadResourceResult": WHOLE_RESULT,
}  # fmt: skip


def content_kind(value: object) -> str:
    """Return what a value is: BLOCK, MESSAGE, RESOURCE or WHOLE_RESULT; "" for any other value."""
    return content_kind_of_type(type(value))


def content_kind_of_type(cls: type) -> str:
    """Return what the values of a class are, as `content_kind` does."""
    for base in cls.__mro__:
        if base.__name__ in CONTENT_KINDS and _is_of_package(base):
            return CONTENT_KINDS[base.__name__]
    return ""


def _is_of_package(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in PACKAGES


# ---- Plain values

SCALARS = (str, int, float, bool, type(None))
# How a subclass of a scalar, such as a member of a StrEnum, becomes the scalar itself.
TO_SCALAR: dict[type, Callable[[Any], JSONValue]] = {str: str.__str__, int: int.__int__, float: float.__float__}
BYTES = (bytes, bytearray, memoryview)
# Types that pydantic would convert, but hardly as the author meant: what `isinstance` takes -> why such a value is
# refused. {0} is the name of its type.
REFUSED: dict[type | tuple[type, ...], str] = {
    BYTES: "{0}: binary data goes into Image, Audio or ResourceContents",
    Coroutine: "a coroutine that nobody awaited",
    (Iterator, AsyncIterator): "a {0}: return a list of what it yields",
    (type, FunctionType, ModuleType): "a {0} itself",
}


class NotJson(ValueError):
    """JSON cannot hold a value. The text has names of types, never values or keys, because it goes to the log."""


class _UnsupportedValue(Exception):
    """JSON cannot hold one value, which may be deep inside another."""

    def __init__(self, value: object, reason: str) -> None:
        """Keep the value, and the reason, which names its type."""
        super().__init__(reason)
        self.value = value
        self.reason = reason


def to_json(value: object) -> JSONValue:
    """Convert a value to plain JSON values.

    Raises:
        NotJson: JSON cannot hold the value, or a value inside it.
    """
    try:
        return _convert(value)
    # `from None`: the causes would add nothing to the message but the author's values.
    except RecursionError:
        message = f"{type_name(value)} that is nested too deep, or holds itself"
        raise NotJson(message) from None
    except _UnsupportedValue as error:
        message = error.reason
        if error.value is not value:
            message = f"{type_name(value)} that holds {error.reason}"
        raise NotJson(message) from None


def pydantic_to_json(value: object) -> JSONValue:
    """Convert a value as pydantic does. In the protocol's own models, None means that a member is absent.

    Raises:
        ValueError: pydantic cannot write it as JSON.
    """
    from pydantic_core import to_jsonable_python  # noqa: PLC0415 - plain values do not need it

    # Every model of the packages, also one that `content_kind` does not know, for example an Icon.
    is_protocol_model = any(map(_is_of_package, type(value).__mro__))
    return to_jsonable_python(value, by_alias=True, exclude_none=is_protocol_model)


def type_name(value: object) -> str:
    """Return the name of a value's type, with its module."""
    cls = type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _convert(value: object) -> JSONValue:
    """Convert a value of any type, and the values inside it.

    Raises:
        _UnsupportedValue: JSON cannot hold the value, or a value inside it.
    """
    if type(value) in SCALARS:
        return value
    for scalar, convert in TO_SCALAR.items():
        if isinstance(value, scalar):
            return convert(value)
    if isinstance(value, dict):
        return _convert_dict(value)
    if isinstance(value, list | tuple | deque):
        return [_convert(member) for member in value]
    if isinstance(value, set | frozenset):
        return sorted(map(_convert, value), key=repr)  # the order of a set differs between processes
    for types, reason in REFUSED.items():
        if isinstance(value, types):
            raise _UnsupportedValue(value, reason.format(type(value).__name__))
    if content_kind(value):
        raise _UnsupportedValue(value, f"{type_name(value)}, which cannot stand there")
    return _convert_object(value)


def _convert_object(value: object) -> JSONValue:
    """Convert a dataclass, an enum, a date, or a value that only pydantic can read."""
    is_dataclass = hasattr(value, "__dataclass_fields__")
    if is_dataclass and not hasattr(value, "__pydantic_serializer__"):  # pydantic's own may have aliases
        from dataclasses import fields  # noqa: PLC0415 - an author who made a dataclass has imported it

        declared = fields(cast("DataclassInstance", value))
        return {field.name: _convert(getattr(value, field.name)) for field in declared}
    if isinstance(value, Enum):
        return _convert(value.value)
    if type(value).__module__ == "datetime" and hasattr(value, "isoformat") and hasattr(value, "year"):
        text: str = value.isoformat()  # a date or a datetime, which pydantic would write in the same way
        return f"{text[:-6]}Z" if text.endswith("+00:00") else text
    try:
        return pydantic_to_json(value)
    except ValueError:  # `from None`: pydantic's text quotes the value
        raise _UnsupportedValue(value, type_name(value)) from None


def _convert_dict(value: dict[Any, Any]) -> JSONValue:
    converted = {_convert_key(key): _convert(member) for key, member in value.items()}
    if len(converted) != len(value):
        raise _UnsupportedValue(value, "a dict with two keys that are the same in JSON")
    return converted


def _convert_key(key: object) -> str:
    if isinstance(key, str):
        return key
    if key is None:
        return "null"
    if isinstance(key, bool):
        return "true" if key else "false"
    converted = _convert(key)
    if isinstance(converted, str | int | float):
        return str(converted)
    raise _UnsupportedValue(key, f"a dict whose keys are of type {type_name(key)}")
