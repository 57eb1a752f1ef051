"""The types of JSON as Python annotations name them: scalars, choices, unions, arrays and objects.

    int                  SCALARS[int]
    Literal["a", "b"]    choice_type(("a", "b"))
    int | None           union_type([SCALARS[int], SCALARS[NoneType]])
    list[int]            array_type(SCALARS[int])
    dict[str, int]       object_type(SCALARS[int])

Each is a `JsonType`: a JSON Schema, and a function that reads values. That function never quotes a value that it
refuses, because its message goes to the client and into logs.
"""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias

from mcp_functions.protocol.errors import ParseError
from mcp_functions.protocol.json_reader import loads
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

Number: TypeAlias = int | float  # a JSON number: an int where it has no fraction


class NeedsPydantic(Exception):
    """Only pydantic can read a type. `type_reader` catches this exception, and lets pydantic read the type."""


def needs_pydantic(item: object) -> bool:
    """Tell whether only pydantic understands an item of `Annotated`, or an attribute of a class."""
    if is_keywords(item):  # pydantic understands it too, but is not needed for it
        return False
    is_made_by_pydantic = type(item).__module__.partition(".")[0] in ("pydantic", "pydantic_core")
    return is_made_by_pydantic or hasattr(item, "__get_pydantic_core_schema__")


def is_keywords(item: object) -> bool:
    """Recognize a `Keywords` of the module `annotations`, which is imported only where an author uses it."""
    return hasattr(item, "add_to")


class JsonType(NamedTuple):
    """A type as JSON sees it."""

    schema: dict[str, Any]  # the JSON Schema of the type
    read: Callable[[object], Any]  # turns a JSON value into a value of the type, or raises ValueError with the reason

    def with_keywords(self, keywords: dict[str, Any]) -> JsonType:
        """Add keywords to the schema; they change nothing for the values."""
        return JsonType({**self.schema, **keywords}, self.read)

    def read_text(self, text: str) -> object:
        """Read a value that the protocol transports as text: first as a string, then as a scalar of JSON, such as 5.

        Raises:
            ValueError: the text is not a value of this type.
        """
        try:
            return self.read(text)
        except ValueError as error:
            reason = error
        try:
            value = loads(text)
        except ParseError:
            raise reason from None
        if isinstance(value, str | dict | list):
            raise reason
        return self.read(value)


def _scalar(name: str, python_types: tuple[type, ...], reason: str) -> JsonType:
    """Make a scalar type of JSON. The exact Python type counts, because `isinstance(True, int)` is true."""

    def read(value: object) -> object:
        if type(value) not in python_types:
            raise ValueError(reason)
        return value

    return JsonType({"type": name}, read)


ANY = JsonType({}, lambda value: value)
NUMBER = _scalar("number", (int, float), "must be a number")  # reads 5 as an int, and 5.5 as a float
SCALARS: dict[object, JsonType] = {
    str: _scalar("string", (str,), "must be a string"),
    int: _scalar("integer", (int,), "must be an integer"),
    float: JsonType({"type": "number"}, lambda value: float(NUMBER.read(value))),  # 5 becomes 5.0
    bool: _scalar("boolean", (bool,), "must be a boolean"),
    NoneType: _scalar("null", (NoneType,), "must be a null"),
}
NULL = {"type": "null"}  # the schema of None


def choice_type(values: tuple[object, ...]) -> JsonType:
    """Make the type of a choice among strings, integers, booleans and None.

    Raises:
        NeedsPydantic: a value has another type.
    """
    types = {type(value) for value in values}
    if not types.issubset({str, int, bool, NoneType}):
        raise NeedsPydantic
    accepted = [(type(value), value) for value in values]  # True equals 1, but has another type

    def read(value: object) -> object:
        if (type(value), value) not in accepted:
            message = "must be one of " + ", ".join(dumps(choice) for choice in values)
            raise ValueError(message)
        return value

    schema: dict[str, Any] = {"enum": list(values)}
    if len(types) == 1:
        schema = {**SCALARS[types.pop()].schema, **schema}
    return JsonType(schema, read)


def union_type(members: list[JsonType]) -> JsonType:
    """Make the type of a union whose members are different types of JSON.

    Raises:
        NeedsPydantic: members overlap, for example `date | str`. pydantic defines which of them it prefers.
    """
    if SCALARS[int] in members and SCALARS[float] in members:
        # JSON has one type for both.
        members = [NUMBER if member == SCALARS[float] else member for member in members if member != SCALARS[int]]
    if len(members) == 1:
        return members[0]
    names = [name for member in members for name in _type_names(member.schema)]
    if len(set(names)) < len(names):
        raise NeedsPydantic

    def read(value: object) -> object:
        reasons = []
        for member in members:
            try:
                return member.read(value)
            except ValueError as error:
                reasons.append(str(error))
        raise ValueError(" or ".join(reasons))

    return JsonType({"anyOf": [member.schema for member in members]}, read)


def _type_names(schema: dict[str, Any]) -> set[str]:
    """Name the types of JSON that a schema allows. An integer counts as a number.

    Raises:
        NeedsPydantic: the schema allows every type.
    """
    if schema.get("type") == "integer":
        return {"number"}
    if "type" in schema:
        return {schema["type"]}
    if "enum" in schema:
        parts = [SCALARS[type(value)].schema for value in schema["enum"]]
    elif "anyOf" in schema:
        parts = schema["anyOf"]
    else:
        raise NeedsPydantic
    return {name for part in parts for name in _type_names(part)}


def array_type(item: JsonType) -> JsonType:
    """Make the type of an array from the type of its items, which is ANY for `list`."""

    def read(value: object) -> list[object]:
        if isinstance(value, list):
            return [read_part(f"item {index}", item, element) for index, element in enumerate(value)]
        message = "must be an array"
        raise ValueError(message)

    items = {"items": item.schema} if item.schema else {}
    return JsonType({"type": "array", **items}, read)


def object_type(member: JsonType) -> JsonType:
    """Make the type of an object from the type of its members, which is ANY for `dict`."""

    def read(value: object) -> dict[str, object]:
        return {key: read_part("a value", member, element) for key, element in check_object(value).items()}

    members = {"additionalProperties": member.schema} if member.schema else {}
    return JsonType({"type": "object", **members}, read)


def check_object(value: object) -> dict[str, object]:
    """Return a value that is an object, or raise a ValueError."""
    if isinstance(value, dict):
        return value
    message = "must be an object"
    raise ValueError(message)


def read_part(place: str, type_: JsonType, value: object) -> object:
    """Read a part of a value. The ValueError for a part that does not fit begins with its place."""
    try:
        return type_.read(value)
    except ValueError as error:
        message = f"{place} {error}"
        raise ValueError(message) from None
