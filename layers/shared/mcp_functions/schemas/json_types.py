"""The types of JSON as Python annotations name them: scalars, choices, unions, arrays and objects.

    int                  SCALARS[int]
    Literal["a", "b"]    choice_type(("a", "b"))
    int | None           union_type([SCALARS[int], SCALARS[NoneType]])
    list[int]            array_type(SCALARS[int])
    dict[str, int]       object_type(SCALARS[int])

Each is a `JsonType`: it describes, reads and writes values. It never quotes a value that it refuses, because its message
goes to the client and into logs.
"""

from __future__ import annotations

from copy import copy
from enum import Enum
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias

from mcp_functions.protocol.errors import ParseError
from mcp_functions.protocol.json_reader import loads
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.plain_values import is_equal, is_json, to_json

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


class JsonType:
    """A type as JSON sees it. Input is described by `schema` and read; output is described by `output_schema` and written.

    Attributes:
        schema: the JSON Schema of what `read` accepts.
        read: turns a JSON value into a value of the type, or raises a ValueError with the reason.
    """

    def __init__(
        self, schema: dict[str, Any], read: Callable[[object], Any], write: Callable[[object], Any] | None = None
    ) -> None:
        """Take the schema and the functions. Without `write`, a value is written as JSON, and read as a check."""
        self.schema = schema
        self.read = read
        self._write = write

    @property
    def output_schema(self) -> dict[str, Any]:
        """The JSON Schema of what `write` returns."""
        described: dict[str, Any] = _without_formats(self.schema)
        return described

    @property
    def form_schema(self) -> dict[str, Any]:
        """The schema for a form, whose fields have only the titles that an author wrote."""
        return self.schema

    def write(self, value: object) -> Any:  # noqa: ANN401 - JSON
        """Write a value as JSON, with what the type declares and nothing more.

        Raises:
            ValueError: it is no value of the type.
        """
        if self._write:
            return self._write(value)
        written = to_json(value)
        self.read(written)
        return written

    def record(self, value: object) -> tuple[Any, bool]:
        """Write a value for a later round, and tell whether `read_record` returns an equal value there."""
        recorded = self.write(value)
        return recorded, is_json(value) or is_equal(self.read_record(recorded), value)

    def read_record(self, recorded: object) -> Any:  # noqa: ANN401 - a value of the type
        """Read what `record` wrote, or what another version of the author's code wrote."""
        return self.read(recorded)

    def check_recordable(self) -> None:
        """Raise a TypeError if no value of this type can be read from its record."""

    def with_keywords(self, keywords: dict[str, Any]) -> JsonType:
        """Add keywords to the schema; they change nothing for the values."""
        described = copy(self)
        described.schema = {**self.schema, **keywords}
        return described

    def limited(self, schema: dict[str, Any], check: Callable[[Any], object]) -> JsonType:
        """Return this type with another schema, and with a check of each value."""

        def read(value: object) -> object:
            result = self.read(value)
            check(result)
            return result

        def write(value: object) -> object:
            written = self.write(value)
            read(written)
            return written

        return JsonType(schema, read, write)

    def read_text(self, text: str) -> object:
        """Read a value that the protocol transports as text: first as a string, then as JSON, such as 5 or ["a"].

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
        if isinstance(value, str):
            raise reason
        return self.read(value)


# The formats that every written value of a type has. A `datetime` may have no time zone, which `date-time` requires.
CERTAIN_FORMATS = {"date", "uuid", "ipv4", "ipv6"}


def _without_formats(schema: Any) -> Any:  # noqa: ANN401 - a part of a schema
    """Copy a schema without the formats that a written value may not have: clients check them."""
    if isinstance(schema, list):
        return [_without_formats(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    # A property may be called "format". Its value is then no string.
    format_ = schema.get("format")
    dropped = "format" if isinstance(format_, str) and format_ not in CERTAIN_FORMATS else None
    return {name: _without_formats(part) for name, part in schema.items() if name != dropped}


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
    """Make the type of a choice among strings, integers, booleans and None; a member of an Enum counts by its value.

    Raises:
        NeedsPydantic: a value has another type, or two have one form in JSON.
    """
    choices = [value.value if isinstance(value, Enum) else value for value in values]
    types = {type(choice) for choice in choices}
    accepted = {(type(choice), choice): value for choice, value in zip(choices, values, strict=True)}  # True equals 1
    if not types.issubset({str, int, bool, NoneType}) or len(accepted) < len(values):
        raise NeedsPydantic

    def read(value: object) -> object:
        if isinstance(value, list | dict) or (type(value), value) not in accepted:
            message = "must be one of " + ", ".join(dumps(choice) for choice in choices)
            raise ValueError(message)
        return accepted[type(value), value]

    schema: dict[str, Any] = {"enum": choices}
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

    def first_that_fits(functions: list[Callable[[object], object]], value: object) -> object:
        reasons = []
        for function in functions:
            try:
                return function(value)
            except ValueError as error:
                reasons.append(str(error))
        raise ValueError(" or ".join(reasons))

    read = partial(first_that_fits, [member.read for member in members])
    write = partial(first_that_fits, [member.write for member in members])
    return JsonType({"anyOf": [member.schema for member in members]}, read, write)


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
        return [at_place(f"item {index}", item.read, element) for index, element in enumerate(check_array(value))]

    def write(value: object) -> list[object]:
        elements = value if isinstance(value, list | tuple) else check_array(to_json(value))
        return [at_place(f"item {index}", item.write, element) for index, element in enumerate(elements)]

    items = {"items": item.schema} if item.schema else {}
    return JsonType({"type": "array", **items}, read, write)


def object_type(member: JsonType) -> JsonType:
    """Make the type of an object from the type of its members, which is ANY for `dict`."""

    def read(value: object) -> dict[str, object]:
        return {key: at_place("a value", member.read, element) for key, element in check_object(value).items()}

    def write(value: object) -> dict[str, object]:
        if type(value) is not dict or not all(type(key) is str for key in value):
            value = to_json(value)
        return {key: at_place("a value", member.write, element) for key, element in check_object(value).items()}

    members = {"additionalProperties": member.schema} if member.schema else {}
    return JsonType({"type": "object", **members}, read, write)


def check_array(value: object) -> list[object]:
    """Return a value that is an array, or raise a ValueError."""
    if isinstance(value, list):
        return value
    message = "must be an array"
    raise ValueError(message)


def check_object(value: object) -> dict[str, object]:
    """Return a value that is an object, or raise a ValueError."""
    if isinstance(value, dict):
        return value
    message = "must be an object"
    raise ValueError(message)


def at_place(place: str, function: Callable[[object], object], value: object) -> object:
    """Read or write a part of a value. The ValueError for a part that does not fit begins with its place."""
    try:
        return function(value)
    except ValueError as error:
        message = f"{place} {error}"
        raise ValueError(message) from None
