"""Checks a value from a client against the schema that clients read, before pydantic reads the value.

    schema           {"type": "object", "properties": {"nights": {"type": "integer"}}, "required": ["nights"]}
    {"nights": 2}    passes
    {"nights": "2"}  ValueError: nights must be an integer

pydantic alone would convert the text "2". In its strict mode it would not, but it would then refuse what a validator of
the author returns, such as the text of a date. So a value that passes is read in pydantic's usual mode.

These are the keywords of types, choices and limits. pydantic itself checks `pattern` and most of `format`.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import shortened
from mcp_functions.protocol.json_writer import dumps, dumps_sorted
from mcp_functions.schemas.annotations import LIMITS
from mcp_functions.schemas.class_types import DATE, DATE_TIME, OFFSET, TIME
from mcp_functions.schemas.json_types import SCALARS, at_place, check_array, check_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Schema = Mapping[str, Any]

CHECKS: dict[str, Callable[[object], object]] = {
    **{type_.schema["type"]: type_.read for type_ in SCALARS.values()},
    "array": check_array,
    "object": check_object,
}
# pydantic also reads a number in these texts: "86400" as the second day of 1970.
FORMATS = {
    "date": (DATE, "must be a date, such as 2026-07-28"),
    "date-time": (DATE_TIME, "must be a date and a time, such as 2026-07-28T09:30:00Z"),
    "time": (f"{TIME}(?:{OFFSET})?", "must be a time, such as 09:30:00"),
    "duration": ("[-+]?P.*", "must be a duration, such as PT90S"),
}

# The type in LIMITS of each type of Python.
NAMES: dict[type, str] = {int: "number", float: "number", str: "string", list: "array", dict: "object"}


def check(schema: Schema, definitions: Mapping[str, Schema], value: Any) -> None:  # noqa: ANN401 - JSON
    """Check a value.

    Args:
        schema: a JSON Schema that pydantic wrote.
        definitions: the schemas that a `$ref` may name.
        value: the JSON value.

    Raises:
        ValueError: the schema forbids the value; the text has the place and the reason.
    """
    if "$ref" in schema:
        check(definitions[schema["$ref"].rpartition("/")[2]], definitions, value)
    for part in schema.get("allOf", ()):
        check(part, definitions, value)
    for members in (schema.get("anyOf"), schema.get("oneOf")):
        if members:
            members = _tagged(schema, value) or members
            _check_first([partial(check, member, definitions) for member in members], value)
    if schema.get("type") == "string" and schema.get("format") in FORMATS:
        pattern, reason = FORMATS[schema["format"]]
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError(reason)
    if "type" in schema:
        names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        _check_first([CHECKS[name] for name in names], value)
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if choices is not None and not any(_is_same(choice, value) for choice in choices):
        message = "must be one of " + ", ".join(map(dumps, choices))
        raise ValueError(message)
    if isinstance(value, list):
        _check_items(schema, definitions, value)
    elif isinstance(value, dict):
        _check_members(schema, definitions, value)
    _check_limits(schema, value)


def _check_first(checks: Iterable[Callable[[object], object]], value: object) -> None:
    """Check that one of several functions accepts a value."""
    reasons: dict[str, None] = {}
    for each in checks:
        try:
            each(value)
        except ValueError as error:
            reasons[str(error)] = None
        else:
            return
    raise ValueError(" or ".join(reasons))


def _tagged(schema: Schema, value: object) -> list[Schema] | None:
    """Return the one member of a tagged union that the tag of a value names, so that only its errors are told."""
    tags = schema.get("discriminator", {})
    tag = value.get(tags.get("propertyName")) if isinstance(value, dict) else None
    target = tags.get("mapping", {}).get(tag) if isinstance(tag, str) else None
    return [{"$ref": target}] if target else None


def _is_same(choice: object, value: object) -> bool:
    """Compare two JSON values; in Python, True equals 1."""
    return isinstance(choice, bool) is isinstance(value, bool) and choice == value


def _check_items(schema: Schema, definitions: Mapping[str, Schema], value: list[Any]) -> None:
    firsts = schema.get("prefixItems", [])
    for index, item in enumerate(value):
        item_schema = firsts[index] if index < len(firsts) else schema.get("items", True)
        at_place(f"item {index}", partial(_check_part, item_schema, definitions), item)
    if schema.get("uniqueItems") and len(set(map(dumps_sorted, value))) < len(value):
        message = "holds an item twice"
        raise ValueError(message)


def _check_members(schema: Schema, definitions: Mapping[str, Schema], value: dict[str, Any]) -> None:
    for name in schema.get("required", ()):
        if name not in value:
            message = f"{name} is missing"
            raise ValueError(message)
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True) if "patternProperties" not in schema else True
    for name, member in value.items():
        place = shortened(name)
        at_place(place, partial(_check_part, properties.get(name, others), definitions), member)
        at_place(place, partial(_check_part, schema.get("propertyNames", True), definitions), name)


def _check_part(schema: Schema | bool, definitions: Mapping[str, Schema], value: object) -> None:
    """Check a part of a value. A schema may be True, which allows everything, or False."""
    if schema is False:
        message = "is unknown"
        raise ValueError(message)
    if schema is not True:
        check(schema, definitions, value)


def _check_limits(schema: Schema, value: Any) -> None:  # noqa: ANN401 - JSON
    name = NAMES.get(type(value))
    size = len(value) if isinstance(value, str | list | dict) else value
    for limit in LIMITS[name].values() if name else ():
        if limit.keyword in schema and not limit.is_within(size, schema[limit.keyword]):
            raise ValueError(limit.reason.format(schema[limit.keyword]))
