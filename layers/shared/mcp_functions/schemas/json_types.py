"""The types of JSON as Python annotations name them: scalars, choices, unions, arrays and objects.

    int                  SCALARS[int]
    Literal["a", "b"]    read_choice(("a", "b"))
    int | None           read_union((int, None), …)
    list[int]            read_array((int,), …)
    dict[str, int]       read_object((str, int), …)

Each becomes a `JsonType`: a JSON Schema, and a function that reads values. That function never quotes a value that it
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


class JsonType(NamedTuple):
    """A type as JSON sees it."""

    schema: dict[str, Any]  # the JSON Schema of the type
    read: Callable[[object], Any]  # turns a JSON value into a value of the type, or raises ValueError with the reason

    def with_keywords(self, keywords: dict[str, Any]) -> JsonType:
        """Add keywords to the schema; they change nothing for the values."""
        return JsonType({**self.schema, **keywords}, self.read)

    def read_text(self, text: str) -> object:
        """Read a value from text, because URIs and prompts transport nothing else: "5" may be a number.

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


# The function of `type_reader` that reads an annotation. Functions that read a type with parts take it as a parameter.
ReadType: TypeAlias = "Callable[[object], JsonType]"


def _scalar(name: str, python_types: tuple[type, ...], reason: str) -> JsonType:
    """Make a scalar type of JSON. The exact Python type counts, because True is an `int` to `isinstance`."""

    def read(value: object) -> object:
        if type(value) not in python_types:
            raise ValueError(reason)
        return value

    return JsonType({"type": name}, read)


ANY = JsonType({}, lambda value: value)
NUMBER = _scalar("number", (int, float), "must be a number")
SCALARS: dict[object, JsonType] = {
    str: _scalar("string", (str,), "must be a string"),
    int: _scalar("integer", (int,), "must be an integer"),
    float: JsonType({"type": "number"}, lambda value: float(NUMBER.read(value))),
    bool: _scalar("boolean", (bool,), "must be a boolean"),
    NoneType: _scalar("null", (NoneType,), "must be a null"),
}
NULL = {"type": "null"}  # the schema of None


def read_choice(values: tuple[object, ...]) -> JsonType:
    """Read a choice among strings, integers, booleans and None.

    Raises:
        NeedsPydantic: a value has another type.
    """
    types = {type(value) for value in values}
    if not types.issubset({str, int, bool, NoneType}):
        raise NeedsPydantic
    accepted = [(type(value), value) for value in values]  # the type distinguishes True from 1, which are equal

    def read(value: object) -> object:
        if (type(value), value) not in accepted:
            message = "must be one of " + ", ".join(dumps(choice) for choice in values)
            raise ValueError(message)
        return value

    schema: dict[str, Any] = {"enum": list(values)}
    if len(types) == 1:
        schema = {**SCALARS[types.pop()].schema, **schema}
    return JsonType(schema, read)


def read_union(members: tuple[object, ...], read_type: ReadType) -> JsonType:
    """Read a union whose members are different types of JSON.

    Raises:
        NeedsPydantic: members overlap, for example `date | str`. pydantic defines which of them it prefers.
    """
    by_member = {member: read_type(member) for member in members}
    if int in by_member and float in by_member:
        # JSON has one type for both. NUMBER reads 5 as an int, and 5.5 as a float.
        del by_member[int]
        by_member[float] = NUMBER
    types = [*by_member.values()]
    if len(types) == 1:
        return types[0]
    names: set[str] = set()
    for type_ in types:
        names_of_member = _type_names(type_.schema)
        if names & names_of_member:
            raise NeedsPydantic
        names |= names_of_member

    def read(value: object) -> object:
        reasons = []
        for type_ in types:
            try:
                return type_.read(value)
            except ValueError as error:
                reasons.append(str(error))
        raise ValueError(" or ".join(reasons))

    return JsonType({"anyOf": [type_.schema for type_ in types]}, read)


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


def read_array(args: tuple[object, ...], read_type: ReadType) -> JsonType:
    """Read `list`, or `list[…]` with its one argument."""
    item = read_type(args[0]) if args else ANY

    def read(value: object) -> list[object]:
        if isinstance(value, list):
            return [read_part(f"item {index}", item, element) for index, element in enumerate(value)]
        message = "must be an array"
        raise ValueError(message)

    items = {"items": item.schema} if item.schema else {}
    return JsonType({"type": "array", **items}, read)


def read_object(args: tuple[object, ...], read_type: ReadType) -> JsonType:
    """Read `dict`, or `dict[str, …]` with its two arguments."""
    member = read_type(args[1]) if args else ANY

    def read(value: object) -> dict[str, object]:
        return {key: read_part("a value", member, element) for key, element in check_object(value).items()}

    members = {"additionalProperties": member.schema} if member.schema else {}
    return JsonType({"type": "object", **members}, read)


def check_object(value: object) -> dict[str, object]:
    """Return a value that is an object.

    Raises:
        ValueError: the value is not an object.
    """
    if isinstance(value, dict):
        return value
    message = "must be an object"
    raise ValueError(message)


def read_part(place: str, type_: JsonType, value: object) -> object:
    """Read a part of a value.

    Raises:
        ValueError: the part does not fit the type; the message begins with its place.
    """
    try:
        return type_.read(value)
    except ValueError as error:
        message = f"{place} {error}"
        raise ValueError(message) from None


def needs_pydantic(item: object) -> bool:
    """Tell whether only pydantic understands an item of `Annotated`, or an attribute of a class."""
    if is_keywords(item):  # pydantic understands it too, but is not needed for it
        return False
    is_made_by_pydantic = type(item).__module__.partition(".")[0] in ("pydantic", "pydantic_core")
    return is_made_by_pydantic or hasattr(item, "__get_pydantic_core_schema__")


def is_keywords(item: object) -> bool:
    """Recognize a `Keywords` of the module `annotations`, which is imported only where an author uses it."""
    return hasattr(item, "add_to")
