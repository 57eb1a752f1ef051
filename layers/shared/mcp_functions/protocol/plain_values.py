"""A value of an author as plain JSON values. A value that JSON cannot carry is refused; it never becomes its `str()`.

JSON's own types, dataclasses, enums, dates and datetimes are read here. UUIDs, paths and decimals are pydantic's, which
is imported for them alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Coroutine, Iterator
from enum import Enum
from types import FunctionType, ModuleType
from typing import Any

SCALARS = (str, int, float, bool, type(None))
PLAIN: dict[type, Any] = {str: str.__str__, int: int.__int__, float: float.__float__}  # of an enum's member, too
BYTES = (bytes, bytearray, memoryview)
SEQUENCES = (list, tuple, deque)
WORDS: dict[type | tuple[type, ...], str] = {
    BYTES: "{0}: binary data goes into Image, Audio or ResourceContents",
    Coroutine: "a coroutine that nobody awaited",
    (Iterator, AsyncIterator): "a {0}: return a list of what it yields",
    (type, FunctionType, ModuleType): "a {0} itself",
}


class NotJson(ValueError):
    """JSON cannot carry a value. The text names types, never values or keys: it goes to the log."""


def to_json(value: Any) -> Any:  # noqa: ANN401 - JSON is any value
    """Turn a value into plain JSON values.

    Raises:
        NotJson: it is, or holds, something that JSON cannot carry.

    """
    if value is None or type(value) in SCALARS:
        return value
    try:
        return _plain(value)
    except RecursionError:
        message = f"{type_name(value)} that is nested too deep, or holds itself"
        raise NotJson(message) from None
    except _Refused as refused:
        message = refused.reason if refused.value is value else f"{type_name(value)} that holds {refused.reason}"
        raise NotJson(message) from None


def type_name(value: object) -> str:
    """Name the type of a value, with its home."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


class _Refused(Exception):
    """One value, perhaps deep inside another, that JSON cannot carry."""

    def __init__(self, value: object, reason: str) -> None:
        super().__init__(reason)
        self.value, self.reason = value, reason


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON is any value
    if type(value) in SCALARS:
        return value
    for scalar, make in PLAIN.items():
        if isinstance(value, scalar):
            return make(value)
    if isinstance(value, dict):
        return _object(value)
    if isinstance(value, SEQUENCES):
        return [_plain(member) for member in value]
    if isinstance(value, set | frozenset):
        return sorted(map(_plain, value), key=repr)  # a set has another order in every process
    _check_kind(value)
    return _of_class(value)


def _of_class(value: Any) -> Any:  # noqa: ANN401 - JSON is any value
    if hasattr(value, "model_dump"):
        return _dumped(value)
    if hasattr(value, "__dataclass_fields__") and not hasattr(value, "__pydantic_serializer__"):
        return _of_dataclass(value)
    if isinstance(value, Enum):
        return _plain(value.value)
    if type(value).__module__ == "datetime" and type(value).__name__ in ("date", "datetime"):
        text: str = value.isoformat()
        return f"{text[:-6]}Z" if text.endswith("+00:00") else text
    return _by_pydantic(value)


def _object(value: dict[Any, Any]) -> dict[str, Any]:
    plain = {_key(key): _plain(member) for key, member in value.items()}
    if len(plain) != len(value):
        raise _Refused(value, "a dict with two keys that are the same in JSON")
    return plain


def _key(key: Any) -> str:  # noqa: ANN401 - whatever a dict can have
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    plain = _plain(key)
    if isinstance(plain, str | int | float):
        return str(plain)
    raise _Refused(key, f"a dict whose keys are of type {type_name(key)}")


def _check_kind(value: object) -> None:
    """Refuse bytes, iterators and types of the protocol, which pydantic would turn into JSON."""
    for kinds, words in WORDS.items():
        if isinstance(value, kinds):
            raise _Refused(value, words.format(type(value).__name__))
    from mcp_functions.protocol import foreign_types  # noqa: PLC0415 - plain values do not need it

    if foreign_types.role(value):
        raise _Refused(value, f"{type_name(value)}, which cannot stand there")
    if foreign_types.is_of_a_server(type(value)):
        raise _Refused(value, f"{type_name(value)}, which belongs to another toolkit")


def _dumped(value: Any) -> Any:  # noqa: ANN401 - a model; JSON
    from mcp_functions.protocol import foreign_types  # noqa: PLC0415 - as above

    # In the protocol's own models None means that a member is absent.
    absent = foreign_types.is_protocol(type(value))
    try:  # `warnings` would quote values in the log
        return value.model_dump(mode="json", by_alias=True, warnings=False, exclude_none=absent)
    except (TypeError, ValueError):
        raise _Refused(value, f"{type_name(value)}, which pydantic cannot write as JSON") from None


def _of_dataclass(value: Any) -> dict[str, Any]:  # noqa: ANN401 - a dataclass
    from dataclasses import fields  # noqa: PLC0415 - who made a dataclass has imported it

    return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}


def _by_pydantic(value: object) -> Any:  # noqa: ANN401 - JSON is any value
    from pydantic_core import to_jsonable_python  # noqa: PLC0415 - plain values never pay for it

    try:
        return to_jsonable_python(value, by_alias=True)
    except ValueError:
        raise _Refused(value, type_name(value)) from None
