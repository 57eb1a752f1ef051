"""Converts an author's value to plain JSON values. A value that JSON cannot hold is refused.

    {"day": date(2026, 7, 28), 1: {"b", "a"}}    {"day": "2026-07-28", "1": ["a", "b"]}
    {"picture": b"GIF89a"}                       NotJson("dict that holds bytes: binary data goes into Image, …")
    Image(b"GIF89a", "image/gif")                NotJson("…Image: a type of the protocol is not a JSON value")

A caller puts the text of NotJson into its own message: "JSON cannot carry what the function returned (dict that …)".
pydantic converts UUIDs, paths, decimals and other rare types. It is imported only for them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, MappingView
from enum import Enum
from types import FunctionType, ModuleType, NoneType
from typing import TYPE_CHECKING, Any, cast

from mcp_functions.protocol.json_writer import dumps

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date
    from typing import Literal, TypeAlias

    from _typeshed import DataclassInstance

    from mcp_functions.protocol.wire_types import JSONValue

    ContentKind: TypeAlias = Literal[
        "block", "message", "resource contents", "tool result", "prompt result", "resource result"
    ]

JSON_SCALARS = (str, int, float, bool, NoneType)
BYTES = (bytes, bytearray, memoryview)


class NotJson(ValueError):
    """JSON cannot hold a value. The text names the types of values. It quotes no value or key, because it is logged."""

    def __init__(self, reason: str, value: object) -> None:
        """Keep the reason and the value, which may be deep inside the author's value."""
        super().__init__(reason)
        self.value = value


def to_json(value: object) -> JSONValue:
    """Convert a value to plain JSON values; raise NotJson if JSON cannot hold it, or a value inside it."""
    # `from None` hides the causes, because their texts may quote the author's values.
    try:
        return _convert(value)
    except RecursionError:
        raise NotJson(f"{type_name(value)} that is nested too deep, or holds itself", value) from None
    except NotJson as error:
        if error.value is value:
            raise
        raise NotJson(f"{type_name(value)} that holds {error}", value) from None


def is_json(value: object) -> bool:
    """Tell whether a value comes back from JSON unchanged, so that it needs no type; a tuple may become a list."""
    if type(value) in (list, tuple):
        return all(map(is_json, cast("list[Any]", value)))
    if type(value) is dict:
        return all(type(key) is str and is_json(member) for key, member in value.items())
    return type(value) in JSON_SCALARS


def is_equal(value: Any, other: Any) -> bool:  # noqa: ANN401 - values of any type
    """Tell whether two values are equal; those of a class without `==` are, if their members are."""
    if {type(value), type(other)} <= {list, tuple}:
        return len(value) == len(other) and all(map(is_equal, value, other))
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(is_equal(value[key], other[key]) for key in value)
    has_equality = any("__eq__" in vars(cls) for cls in type(value).__mro__ if cls is not object)
    if type(value) is type(other) and not has_equality and hasattr(value, "__dict__"):
        return is_equal(vars(value), vars(other))
    try:
        return bool(value == other)
    except Exception:  # noqa: BLE001 - an author's `==` may raise anything
        return False


def pydantic_to_json(value: object) -> JSONValue:
    """Convert a value as pydantic does, or raise a ValueError."""
    from pydantic_core import to_jsonable_python

    # In a model of the protocol, such as an Icon, None means that a member is absent. Elsewhere None is a value.
    is_protocol_model = any(_is_of_package(cls) for cls in type(value).__mro__)
    return to_jsonable_python(value, by_alias=True, exclude_none=is_protocol_model)


def type_name(value: object) -> str:
    """Return the name of a value's type, with its module."""
    cls = type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _convert(value: object) -> JSONValue:  # noqa: PLR0911 - one for each type
    """Convert a value of any type, and the values inside it, or raise NotJson."""
    if type(value) in JSON_SCALARS:
        return value
    match value:
        case str():
            return str.__str__(value)  # a plain str of a subclass, such as a member of a StrEnum
        case int():
            return int.__int__(value)
        case float():
            return float.__float__(value)
        case dict():
            return _convert_dict(value)
        case list() | tuple() | deque() | range():
            return [_convert(member) for member in value]
        case set() | frozenset():
            members = [_convert(member) for member in value]
            return sorted(members, key=repr)  # Python's order of a set differs between processes
        case Mapping():
            return _convert_dict(dict(value))
        case MappingView():  # such as `prices.values()`
            return [_convert(member) for member in cast("Iterable[object]", value)]
    _check_supported(value)
    return _convert_object(value)


def _check_supported(value: object) -> None:
    """Refuse some types, although pydantic would convert some of them."""
    name = type(value).__name__
    if isinstance(value, BYTES):
        reason = f"{name}: binary data goes into Image, Audio or ResourceContents"
    elif isinstance(value, Coroutine):
        reason = "a coroutine that nobody awaited"
    elif isinstance(value, Iterator | AsyncIterator):
        article = "an" if name.startswith(("a", "A")) else "a"
        reason = f"{article} {name}: return a list of what it yields"
    elif isinstance(value, type | FunctionType | ModuleType):
        reason = f"a {name} itself"
    elif content_kind(value):
        reason = f"{type_name(value)}: a type of the protocol is not a JSON value"
    else:
        return
    raise NotJson(reason, value)


def _convert_object(value: object) -> JSONValue:
    """Convert a dataclass, an enum, a date, or a value that only pydantic can convert."""
    is_dataclass = hasattr(value, "__dataclass_fields__")
    if is_dataclass and not hasattr(value, "__pydantic_serializer__"):  # pydantic's may rename
        from dataclasses import fields

        declared = fields(cast("DataclassInstance", value))
        return {field.name: _convert(getattr(value, field.name)) for field in declared}
    if isinstance(value, Enum):
        return _convert(value.value)
    from datetime import date, datetime

    if type(value) in (date, datetime):
        text = cast("date", value).isoformat()
        return f"{text[:-6]}Z" if text.endswith("+00:00") else text  # as pydantic writes UTC
    try:
        return pydantic_to_json(value)
    except ValueError:  # `from None` hides pydantic's text, because it quotes the value
        raise NotJson(type_name(value), value) from None


def _convert_dict(value: dict[Any, Any]) -> JSONValue:
    converted = {_convert_key(key): _convert(member) for key, member in value.items()}
    if len(converted) != len(value):
        raise NotJson("a dict with two keys that are the same in JSON", value)
    return converted


def _convert_key(key: object) -> str:
    converted = _convert(key)
    if isinstance(converted, str):
        return converted
    if isinstance(converted, float):
        return str(converted)
    if isinstance(converted, int | NoneType):
        return dumps(converted)  # True becomes "true", as `json.dumps` writes keys
    raise NotJson(f"a dict whose keys are of type {type_name(key)}", key)


# ---- Protocol types: classes of this toolkit, of the official SDK and of FastMCP for results and parts of results.
# They are recognized by the names of their package and class, so `mcp` is never imported. Every other value is plain.

PACKAGES = frozenset({"mcp_functions", "mcp_types", "mcp", "fastmcp"})

CONTENT_KINDS: dict[str, ContentKind] = {  # by the name of the class
    "Text": "block", "TextContent": "block", "Image": "block", "ImageContent": "block", "Audio": "block",
    "AudioContent": "block", "File": "block", "EmbeddedResource": "block", "ResourceLink": "block",
    "PromptMessage": "message", "SamplingMessage": "message", "Message": "message",
    "ResourceContents": "resource contents", "ReadResourceContents": "resource contents",
    "CallToolResult": "tool result", "ToolResult": "tool result", "GetPromptResult": "prompt result",
    "ReadResourceResult": "resource result",
}  # fmt: skip


def content_kind(value: object) -> ContentKind | None:
    """Return the kind of a value: a content block, a part of another result, or a whole result; None if it is plain."""
    return content_kind_of_type(type(value))


def content_kind_of_type(cls: type) -> ContentKind | None:
    """Return the kind of the values of a class, as `content_kind` does."""
    for base in cls.__mro__:
        if base.__name__ in CONTENT_KINDS and _is_of_package(base):
            return CONTENT_KINDS[base.__name__]
    return None


def _is_of_package(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in PACKAGES
