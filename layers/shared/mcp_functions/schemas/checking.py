"""Checks a JSON value against the schema that clients read. What the schema forbids is refused before it is read.

    schema           {"type": "object", "properties": {"nights": {"type": "integer"}}, "required": ["nights"]}
    {"nights": 2}    passes
    {"nights": "2"}  ValueError: nights must be an integer

pydantic alone would convert the text "2". In its strict mode it would not, but it would then refuse what a validator of
the author returns, such as the text of a date. So a value that passes is read in pydantic's usual mode.

These are the keywords of types, choices and limits. pydantic itself checks `pattern`, and more formats.
"""

from __future__ import annotations

import operator
import re
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import shortened
from mcp_functions.protocol.json_writer import dumps, dumps_sorted
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Literal

    from mcp_functions.protocol.wire_types import JSONObject, JSONValue, Schema

# The Python types of each type of JSON, and why another value is refused. `isinstance(True, int)` is true, so the exact
# type counts.
TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "string": ((str,), "must be a string"),
    "integer": ((int,), "must be an integer"),
    "number": ((int, float), "must be a number"),
    "boolean": ((bool,), "must be a boolean"),
    "null": ((NoneType,), "must be a null"),
    "array": ((list,), "must be an array"),
    "object": ((dict,), "must be an object"),
}


class Limit(NamedTuple):
    """A kind of limit, such as `minimum`. Its bound is the number in an annotation: 1 in `Between(1, 30)`.

    Attributes:
        keyword: the keyword in a schema.
        is_within: compares a number, or the length of a text, list or dict, with the bound.
        reason: why a value is refused; {} is the bound.
    """

    keyword: Literal[
        "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems",
        "minProperties", "maxProperties",
    ]  # fmt: skip
    is_within: Callable[[Any, Any], bool]
    reason: str


NUMBER_LIMITS = {
    "ge": Limit("minimum", operator.ge, "must be at least {}"),
    "gt": Limit("exclusiveMinimum", operator.gt, "must be more than {}"),
    "le": Limit("maximum", operator.le, "must be at most {}"),
    "lt": Limit("exclusiveMaximum", operator.lt, "must be less than {}"),
}
# The limits of each type of JSON, by the attribute of an item that holds the bound: `annotated_types.Ge(1).ge`.
LIMITS = {
    "integer": NUMBER_LIMITS,
    "number": NUMBER_LIMITS,
    "string": {
        "min_length": Limit("minLength", operator.ge, "must have at least {} characters"),
        "max_length": Limit("maxLength", operator.le, "must have at most {} characters"),
    },
    "array": {
        "min_length": Limit("minItems", operator.ge, "must have at least {} items"),
        "max_length": Limit("maxItems", operator.le, "must have at most {} items"),
    },
    "object": {
        "min_length": Limit("minProperties", operator.ge, "must have at least {} members"),
        "max_length": Limit("maxProperties", operator.le, "must have at most {} members"),
    },
}
# The type in LIMITS of each type of Python.
NAMES: dict[type, str] = {int: "number", float: "number", str: "string", list: "array", dict: "object"}

DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"  # 2026-07-28
TIME = r"(?:[01][0-9]|2[0-3]):[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?"  # 09:30 or 09:30:00.125
OFFSET = r"(?:[Zz]|[-+\u2212](?:[01][0-9]|2[0-3]):?[0-5][0-9])?"  # Z or +02:00 or -0200
# Loose patterns, which refuse obvious mistakes. pydantic also reads a number in a text: "86400" as the date of 1970.
FORMATS = {
    "date": (DATE, "must be a date, such as 2026-07-28"),
    "date-time": (f"{DATE}[Tt _]{TIME}{OFFSET}", "must be a date and a time, such as 2026-07-28T09:30:00Z"),
    "time": (TIME + OFFSET, "must be a time, such as 09:30:00"),
    "duration": ("[-+]?P.*", "must be a duration, such as PT90S"),
    "email": (r"[^@\s]+@[^@\s]+", "must be a valid email"),
    "uri": (r"[A-Za-z][A-Za-z0-9+.-]*:\S+", "must be a valid uri"),
}


def check(schema: Schema, definitions: Mapping[str, Schema], value: JSONValue) -> None:
    """Check a value. The definitions are the schemas that a `$ref` may name.

    Raises:
        ValueError: the schema forbids the value; the text has the place and the reason, and never the value.
    """
    if "$ref" in schema:
        check(definitions[schema["$ref"].rpartition("/")[2]], definitions, value)
    for part in schema.get("allOf", ()):
        check(part, definitions, value)
    for members in (schema.get("anyOf"), schema.get("oneOf")):
        if members is not None:
            possible = _tagged(schema, value) or members
            first_that_fits([partial(check, member, definitions) for member in possible], value)
    _check_type(schema, value)
    if isinstance(value, list):
        _check_items(schema, definitions, value)
    elif isinstance(value, dict):
        _check_members(schema, definitions, value)
    _check_limits(schema, value)


def _check_limits(schema: Schema, value: JSONValue) -> None:
    name = NAMES.get(type(value))
    size = len(value) if isinstance(value, str | list | dict) else value
    for limit in LIMITS[name].values() if name else ():
        if limit.keyword in schema and not limit.is_within(size, schema[limit.keyword]):
            raise ValueError(limit.reason.format(schema[limit.keyword]))


def first_that_fits(functions: list[Callable[[Any], Any]], value: object) -> Any:  # noqa: ANN401
    """Return what the first function returns that raises no ValueError; else raise one with all reasons."""
    reasons: dict[str, None] = {}
    for function in functions:
        try:
            return function(value)
        except ValueError as error:
            reasons[str(error)] = None
    raise ValueError(" or ".join(reasons))


def at_place(place: str, function: Callable[[Any], Any], value: object) -> Any:  # noqa: ANN401
    """Check, read or write a part of a value. The ValueError for a part that does not fit begins with its place."""
    try:
        return function(value)
    except ValueError as error:
        raise ValueError(f"{place} {error}") from None


def _tagged(schema: Schema, value: object) -> list[Schema] | None:
    """Return the one member of a tagged union that the tag of a value names, so that only its errors are told."""
    tags = schema.get("discriminator")
    if tags is None or not isinstance(value, dict) or tags["propertyName"] not in value:
        return None
    name, references = tags["propertyName"], tags["mapping"]
    tag = str(value[name])  # a tag may be a number, whose text is in the mapping
    if tag not in references:
        raise ValueError(f"{name} must be one of " + ", ".join(map(dumps, references)))
    return [{"$ref": references[tag]}]


def _check_type(schema: Schema, value: object) -> None:
    type_ = schema.get("type", [])
    pattern, reason = FORMATS.get(schema.get("format", ""), ("", ""))
    if pattern and type_ == "string" and not (isinstance(value, str) and re.fullmatch(pattern, value)):
        raise ValueError(reason)
    names = [type_] if isinstance(type_, str) else type_
    if names and not any(type(value) in TYPES[name][0] for name in names):
        raise ValueError(" or ".join(TYPES[name][1] for name in names))
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if choices is not None and not any(_is_same(value, choice) for choice in choices):
        raise ValueError("must be one of " + ", ".join(map(dumps, choices)))


def _is_same(value: object, choice: object) -> bool:
    """Compare a value with a choice as JSON does: in Python, True equals 1."""
    if isinstance(value, list) and isinstance(choice, list):
        return len(value) == len(choice) and all(map(_is_same, value, choice))
    return value == choice and isinstance(value, bool) == isinstance(choice, bool)


def _check_items(schema: Schema, definitions: Mapping[str, Schema], value: list[Any]) -> None:
    firsts = schema.get("prefixItems", [])
    others: bool | Schema = schema.get("items", False)
    for index, item in enumerate(value):
        item_schema = firsts[index] if index < len(firsts) else others
        if not isinstance(item_schema, bool):  # false is of a tuple, limited by `maxItems`
            at_place(f"item {index}", partial(check, item_schema, definitions), item)
    if schema.get("uniqueItems") and len(set(map(dumps_sorted, value))) < len(value):
        raise ValueError("holds an item twice")


def _check_members(schema: Schema, definitions: Mapping[str, Schema], value: JSONObject) -> None:
    properties = schema.get("properties", {})
    others: bool | Schema = schema.get("additionalProperties", True)
    is_closed = others is False and "patternProperties" not in schema
    for name in schema.get("required", ()):
        if name not in value:
            raise ValueError(f"{name} is missing")
    for name, member in value.items():
        if name in properties:
            at_place(name, partial(check, properties[name], definitions), member)
        elif is_closed:
            raise ValueError(f"{shortened(name)} is unknown")
        elif not isinstance(others, bool):
            at_place("a value", partial(check, others, definitions), member)
        at_place("a name", partial(check, schema.get("propertyNames", {}), definitions), name)
