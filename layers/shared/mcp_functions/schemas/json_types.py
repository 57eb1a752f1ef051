"""JSON's own types: scalars, choices, unions, arrays and objects, as Python annotations name them.

A reader never quotes the value that it refuses: its message goes back to the client and into logs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mcp_functions.protocol.errors import ParseError
from mcp_functions.protocol.json_reader import loads
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

Number: TypeAlias = int | float  # a JSON number: an int where it has no fraction


class JsonType(NamedTuple):
    """A type as JSON sees it."""

    schema: dict[str, Any]  # the JSON Schema of the type
    read: Callable[[object], Any]  # turns a JSON value into a value of the type, or raises ValueError with the reason

    def read_text(self, text: str) -> object:
        """Read a value from text, because URIs and prompts transport nothing else.

        Raises:
            ValueError: the text is not a value of this type.
        """
        try:
            return self.read(text)
        except ValueError:
            value = _scalar_in(text)
            if isinstance(value, str):
                raise
            return self.read(value)


# Reads the type of a member; None if only pydantic reads it.
ReadType: TypeAlias = "Callable[[object], JsonType | None]"


def _scalar_in(text: str) -> object:
    """Read a number, a boolean or null; any other text stays text."""
    try:
        value = loads(text)
    except ParseError:
        return text
    return text if isinstance(value, dict | list) else value


def _scalar(name: str, article: str, *accepted: type) -> JsonType:
    def read(value: object) -> object:
        if type(value) not in accepted:
            message = f"must be {article} {name}"
            raise ValueError(message)
        return value

    return JsonType({"type": name}, read)


def _float(value: object) -> float:
    number = NUMBER.read(value)
    try:
        return float(number)
    except OverflowError:
        message = "must be a number within the range of a double"
        raise ValueError(message) from None


ANY = JsonType({}, lambda value: value)
NUMBER = _scalar("number", "a", int, float)
SCALARS: dict[object, JsonType] = {
    str: _scalar("string", "a", str),
    int: _scalar("integer", "an", int),
    float: JsonType({"type": "number"}, _float),
    bool: _scalar("boolean", "a", bool),
    type(None): _scalar("null", "a", type(None)),
}
CHOICES = (str, int, bool, type(None))


def read_choice(values: tuple[object, ...]) -> JsonType | None:
    """Read a choice among values; None if one of them is no scalar of JSON."""
    if not all(type(value) in CHOICES for value in values):
        return None
    accepted = {(type(value), value) for value in values}  # with the type, because True equals 1 in Python

    def read(value: object) -> object:
        if type(value) not in CHOICES or (type(value), value) not in accepted:
            message = "must be one of " + ", ".join(dumps(value) for value in values)
            raise ValueError(message)
        return value

    schema: dict[str, Any] = {"enum": list(values)}
    names = _type_names(schema)
    if len(names) == 1:
        schema = {"type": names.pop(), **schema}
    return JsonType(schema, read)


def read_union(members: tuple[object, ...], read_type: ReadType) -> JsonType | None:
    """Read a union whose members are different types of JSON.

    Members that overlap, for example `date | str`, are left to pydantic, which defines which of them it prefers.
    """
    types = {member: read_type(member) for member in members}
    if int in types and float in types:  # an int stays an int
        del types[int]
        types[float] = NUMBER
    known = [member for member in types.values() if member]
    if len(known) < len(types) or _overlap(known):
        return None
    if len(known) == 1:
        return known[0]

    def read(value: object) -> object:
        reasons = []
        for member in known:
            try:
                return member.read(value)
            except ValueError as error:
                reasons.append(str(error))
        raise ValueError(" or ".join(reasons))

    return JsonType({"anyOf": [member.schema for member in known]}, read)


def _overlap(members: list[JsonType]) -> bool:
    seen: set[str] = set()
    for member in members:
        names = {"number" if name == "integer" else name for name in _type_names(member.schema)}
        if names & seen or "any" in names:
            return True
        seen |= names
    return False


def _type_names(schema: dict[str, Any]) -> set[str]:
    """Name JSON's types that a schema allows; "any" if it does not restrict them."""
    if "anyOf" in schema:
        return {name for member in schema["anyOf"] for name in _type_names(member)}
    if "type" not in schema and "enum" in schema:
        return {SCALARS[type(value)].schema["type"] for value in schema["enum"]}
    return {schema.get("type", "any")}


def read_array(args: tuple[object, ...], read_type: ReadType) -> JsonType | None:
    """Read `list`, or `list[…]` with its one argument."""
    item = read_type(args[0]) if args else ANY
    if item is None:
        return None

    def read(value: object) -> list[object]:
        if isinstance(value, list):
            return [read_part(f"item {index}", item, element) for index, element in enumerate(value)]
        message = "must be an array"
        raise ValueError(message)

    items = {"items": item.schema} if item.schema else {}
    return JsonType({"type": "array", **items}, read)


def read_object(args: tuple[object, ...], read_type: ReadType) -> JsonType | None:
    """Read `dict`, or `dict[str, …]` with its two arguments."""
    member = read_type(args[1]) if args else ANY
    if member is None:
        return None

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
    """Return True for an item of `Annotated`, or a class, that only pydantic understands."""
    if type(item).__module__.partition(".")[0] in ("pydantic", "pydantic_core"):
        return True
    is_ours = hasattr(item, "add_to")  # a `Keywords` of `annotations`
    return hasattr(item, "__get_pydantic_core_schema__") and not is_ours
