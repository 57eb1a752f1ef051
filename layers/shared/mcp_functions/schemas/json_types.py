"""The types of JSON as Python annotations name them: scalars, choices, unions, arrays and objects.

    int                  SCALARS[int]
    Literal["a", "b"]    choice_type(("a", "b"))
    int | None           union_type([SCALARS[int], SCALARS[NoneType]])
    list[int]            array_type(SCALARS[int])
    dict[str, int]       object_type(SCALARS[int])

Each is a `JsonType`, which describes, reads and writes values. It never quotes a value that it refuses, because its
message goes to the client and into logs.
"""

from __future__ import annotations

from copy import copy
from enum import Enum
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from mcp_functions.protocol.errors import ParseError
from mcp_functions.protocol.json_reader import loads
from mcp_functions.protocol.plain_values import is_equal, is_json, to_json
from mcp_functions.schemas.checking import at_place, check, first_that_fits

if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal

    from mcp_functions.protocol.wire_types import JSONValue, Schema

    Convert: TypeAlias = Callable[[Any], Any]

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
    return hasattr(item, "add_keywords")


class JsonType:
    """A type as JSON sees it: `schema` describes what `read` takes, and `output_schema` what `write` returns."""

    def __init__(self, schema: Schema, convert: Convert | None = None, filter_: Convert = to_json) -> None:
        """Make a type. `convert` turns a JSON value that fits the schema into a value of the type; by default it stays.

        `filter_` writes a value as JSON, with what the type declares; the schema is checked after that.
        """
        self.schema = schema
        self._convert = convert
        self._filter = filter_

    @property
    def output_schema(self) -> Schema:
        """The JSON Schema of what `write` returns."""
        return cast("Schema", _without_formats(self.schema))

    @property
    def form_schema(self) -> Schema:
        """The schema for a form, whose fields have only the titles that an author wrote."""
        return self.schema

    def check(self, value: object) -> None:
        """Raise a ValueError, with the place and the reason, if the schema forbids a JSON value."""
        check(self.schema, self.schema.get("$defs", {}), value)

    def convert(self, value: object) -> Any:  # noqa: ANN401 - a value of the type
        """Turn a checked JSON value into a value of the type, or raise a ValueError."""
        return self._convert(value) if self._convert else value

    def read(self, value: object) -> Any:  # noqa: ANN401 - a value of the type
        """Check a JSON value, and turn it into a value of the type, or raise a ValueError that never quotes it."""
        self.check(value)
        return self.convert(value)

    def write(self, value: object) -> JSONValue:
        """Write a value as JSON, with what the type declares and nothing more, or raise a ValueError."""
        written = self._filter(value)
        self.check(written)
        return written

    def record(self, value: object) -> tuple[JSONValue, bool]:
        """Write a value for a later round, and tell whether `read_record` returns an equal value there."""
        recorded = self.write(value)
        return recorded, is_json(value) or is_equal(self.read_record(recorded), value)

    def read_record(self, recorded: object) -> Any:  # noqa: ANN401 - a value of the type
        """Read what `record` wrote, or what another version of the author's code wrote."""
        return self.read(recorded)

    def check_recordable(self) -> None:
        """Raise a TypeError if no value of this type can be read from its record."""

    def with_schema(self, schema: Schema) -> JsonType:
        """Return the type with another schema, whose limits its values must have."""
        described = copy(self)
        described.schema = schema
        return described

    def with_keywords(self, keywords: Schema) -> JsonType:
        """Add keywords to the schema."""
        return self.with_schema({**self.schema, **keywords})

    def read_text(self, text: str) -> object:
        """Read a value that the protocol transports as text: first as a string, then as JSON, such as 5 or ["a"]."""
        try:
            return self.read(text)
        except ValueError as error:
            reason = error
        try:
            value = loads(text)
        except ParseError:
            raise reason from None
        if isinstance(value, str):
            raise reason
        return self.read(value)


# The formats that every written value of a type has. A `datetime` may have no time zone, which `date-time` requires.
CERTAIN_FORMATS = {"date", "uuid", "ipv4", "ipv6"}


def _without_formats(schema: JSONValue) -> JSONValue:
    """Copy a schema without the formats that a written value may not have: clients check them."""
    if isinstance(schema, list):
        return [_without_formats(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    # A property may be called "format". Its value is then no string.
    format_ = schema.get("format")
    dropped = "format" if isinstance(format_, str) and format_ not in CERTAIN_FORMATS else None
    return {name: _without_formats(part) for name, part in schema.items() if name != dropped}


def _write_number(value: object) -> object:
    """Write a Decimal, as DynamoDB has for each number, as a number."""
    return float(cast("Decimal", value)) if type(value).__name__ == "Decimal" else to_json(value)


def _write_integer(value: object) -> object:
    """Write a number without a fraction as an integer, as pydantic does."""
    number = _write_number(value)
    return int(number) if isinstance(number, float) and number.is_integer() else number


ANY = JsonType({})
NUMBER = JsonType({"type": "number"}, filter_=_write_number)  # reads 5 as an int, 5.5 as a float
SCALARS: dict[object, JsonType] = {
    str: JsonType({"type": "string"}),
    int: JsonType({"type": "integer"}, filter_=_write_integer),
    float: JsonType({"type": "number"}, float, _write_number),  # 5 becomes 5.0
    bool: JsonType({"type": "boolean"}),
    NoneType: JsonType({"type": "null"}),
}
NULL: Schema = {"type": "null"}  # the schema of None


def choice_type(values: tuple[object, ...]) -> JsonType:
    """Make the type of a choice among strings, integers, booleans and None, or raise NeedsPydantic for other values.

    A member of an Enum counts by its value.
    """
    choices = [value.value if isinstance(value, Enum) else value for value in values]
    types = {type(choice) for choice in choices}
    # True equals 1
    members = {(type(choice), choice): value for choice, value in zip(choices, values, strict=True)}
    if not types.issubset({str, int, bool, NoneType}) or len(members) < len(values):
        raise NeedsPydantic
    schema: Schema = {"enum": choices}
    if len(types) == 1:
        schema = {**SCALARS[types.pop()].schema, **schema}
    return JsonType(schema, lambda value: members[type(value), value])


def union_type(members: list[JsonType]) -> JsonType:
    """Make the type of a union of different types of JSON.

    Raise NeedsPydantic if members overlap, for example `date | str`: pydantic defines which of them it prefers.
    """
    if SCALARS[int] in members and SCALARS[float] in members:  # JSON has one type for both
        members = [NUMBER if member is SCALARS[float] else member for member in members if member is not SCALARS[int]]
    if len(members) == 1:
        return members[0]
    names = [name for member in members for name in _type_names(member.schema)]
    if len(set(names)) < len(names):
        raise NeedsPydantic
    read = partial(first_that_fits, [member.read for member in members])
    write = partial(first_that_fits, [member.write for member in members])
    return JsonType({"anyOf": [member.schema for member in members]}, read, write)


def _type_names(schema: Schema) -> set[str]:
    """Name the types of JSON that a schema allows, or raise NeedsPydantic if it allows all. An integer is a number."""
    type_ = schema.get("type")
    if type_ is not None:
        names = [type_] if isinstance(type_, str) else type_
        return {"number" if name == "integer" else name for name in names}
    if "enum" in schema:
        parts = [SCALARS[type(value)].schema for value in schema["enum"]]
    elif "anyOf" in schema:
        parts = schema["anyOf"]
    else:
        raise NeedsPydantic
    return {name for part in parts for name in _type_names(part)}


def array_type(item: JsonType) -> JsonType:
    """Make the type of an array from the type of its items, which is ANY for `list`."""

    def on_each(function: Callable[[Any], Any], items: list[object]) -> list[object]:
        return [at_place(f"item {index}", function, element) for index, element in enumerate(items)]

    def write(value: object) -> object:
        items = value if isinstance(value, list | tuple) else to_json(value)
        return on_each(item.write, list(items)) if isinstance(items, list | tuple) else items

    items: Schema = {"items": item.schema} if item.schema else {}
    return JsonType({"type": "array", **items}, partial(on_each, item.convert), write)


def object_type(member: JsonType) -> JsonType:
    """Make the type of an object from the type of its members, which is ANY for `dict`."""

    def on_each(function: Callable[[Any], Any], members: dict[str, object]) -> dict[str, object]:
        return {name: at_place("a value", function, element) for name, element in members.items()}

    def write(value: object) -> object:
        has_names = type(value) is dict and all(type(name) is str for name in value)
        members = value if has_names else to_json(value)
        return on_each(member.write, members) if isinstance(members, dict) else members

    members: Schema = {"additionalProperties": member.schema} if member.schema else {}
    return JsonType({"type": "object", **members}, partial(on_each, member.convert), write)
