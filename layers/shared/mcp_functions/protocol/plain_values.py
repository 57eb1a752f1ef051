"""An author's value as plain JSON values. A value that JSON cannot hold is refused; it never becomes its `str()`.

This module reads JSON's own types, dataclasses, enums, dates and datetimes. pydantic reads UUIDs, paths, decimals and
the rest; it is imported only for them.
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

SCALARS = (str, int, float, bool, type(None))
# Converts subclasses of a scalar, for example a member of a StrEnum.
TO_SCALAR: dict[type, Callable[[Any], JSONValue]] = {str: str.__str__, int: int.__int__, float: float.__float__}
BYTES = (bytes, bytearray, memoryview)
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
    except RecursionError:
        message = f"{type_name(value)} that is nested too deep, or holds itself"
        raise NotJson(message) from None
    except _UnsupportedValue as error:
        message = error.reason if error.value is value else f"{type_name(value)} that holds {error.reason}"
        raise NotJson(message) from None


def type_name(value: object) -> str:
    """Return the name of a value's type, with its module."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _convert(value: object) -> JSONValue:
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
    _check_type(value)
    return _convert_object(value)


def _convert_object(value: object) -> JSONValue:
    if hasattr(value, "model_dump"):
        return _dump_model(value)
    if hasattr(value, "__dataclass_fields__") and not hasattr(value, "__pydantic_serializer__"):
        return {name: _convert(getattr(value, name)) for name in _field_names(value)}
    if isinstance(value, Enum):
        return _convert(value.value)
    if type(value).__module__ == "datetime" and hasattr(value, "isoformat") and hasattr(value, "year"):
        text: str = value.isoformat()
        return f"{text[:-6]}Z" if text.endswith("+00:00") else text
    return _convert_by_pydantic(value)


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


def _check_type(value: object) -> None:
    """Refuse bytes, iterators and protocol types, although pydantic would convert them."""
    for types, words in REFUSED.items():
        if isinstance(value, types):
            raise _UnsupportedValue(value, words.format(type(value).__name__))
    from mcp_functions.protocol import foreign_types  # noqa: PLC0415 - plain values do not need it

    if foreign_types.role(value):
        raise _UnsupportedValue(value, f"{type_name(value)}, which cannot stand there")
    if foreign_types.is_of_a_server(type(value)):
        raise _UnsupportedValue(value, f"{type_name(value)}, which belongs to another toolkit")


def _dump_model(value: Any) -> JSONValue:  # noqa: ANN401 - a model of any version of pydantic
    from mcp_functions.protocol import foreign_types  # noqa: PLC0415 - plain values do not need it

    # In the protocol's own models, None means that a member is absent.
    without_none = foreign_types.is_protocol(type(value))
    try:  # pydantic's warnings would quote values in the log
        return value.model_dump(mode="json", by_alias=True, warnings=False, exclude_none=without_none)
    except (TypeError, ValueError):
        raise _UnsupportedValue(value, f"{type_name(value)}, which pydantic cannot write as JSON") from None


def _field_names(value: object) -> list[str]:
    from dataclasses import fields  # noqa: PLC0415 - an author who made a dataclass has imported it

    return [field.name for field in fields(cast("DataclassInstance", value))]


def _convert_by_pydantic(value: object) -> JSONValue:
    from pydantic_core import to_jsonable_python  # noqa: PLC0415 - plain values do not need it

    try:
        return to_jsonable_python(value, by_alias=True)
    except ValueError:
        raise _UnsupportedValue(value, type_name(value)) from None
