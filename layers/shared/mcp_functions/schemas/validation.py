"""A JSON Schema 2020-12 that an author wrote: checked when the server starts, and enforced by `jsonschema`.

A `$ref` may only name a part of the same schema, so nothing is fetched. The size and depth of a schema are bounded.
Only a tool with such a schema imports this module, and `jsonschema` with it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator, SchemaError, ValidationError, validators

from mcp_functions.protocol.errors import shortened
from mcp_functions.protocol.json_reader import by_level, check_size, is_deeper
from mcp_functions.protocol.json_writer import dumps, dumps_sorted
from mcp_functions.schemas.json_types import JsonType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DIALECT = "https://json-schema.org/draft/2020-12/schema"  # "the default dialect when no $schema is present" (basic)
MAX_BYTES = 64 * 1024  # the size of a schema as JSON
MAX_DEPTH = 32  # the levels of objects and arrays in a schema
REFERENCES = ("$ref", "$dynamicRef")  # the keywords that name another schema
# A part of a regular expression: an escape, a class in brackets, or one character.
TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL)


def read_schema(schema: Mapping[str, Any]) -> JsonType:
    """Check a schema that an author wrote, and make its type.

    Returns:
        The type, which returns a value as it is. Its ValueError has the place and the keyword, and not the value.

    Raises:
        TypeError: the schema may not be published; the message gives the reason.
    """
    _check_bounds(schema)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        message = f"not a valid JSON Schema 2020-12: {error.message} at {error.json_path}"
        raise TypeError(message) from None
    extend: Any = validators.extend
    validator = extend(Draft202012Validator, {"uniqueItems": _unique_items, "pattern": _pattern})(schema)

    def read(value: object) -> object:
        check_size(value)
        # One error is enough: each has a copy of its value as text.
        error = next(validator.iter_errors(value), None)
        if error is not None:
            place = shortened(error.json_path.removeprefix("$").removeprefix("."))
            message = f"{place or 'the value'} does not fit {error.validator!r} of its schema"
            raise ValueError(message)
        return value

    return JsonType(dict(schema), read)


def _unique_items(_validator: object, unique: object, value: object, _schema: object) -> Iterator[ValidationError]:
    """Find a member that comes twice; `jsonschema` would compare all pairs of members that it cannot sort."""
    if unique and isinstance(value, list) and len({dumps_sorted(member) for member in value}) < len(value):
        yield ValidationError("has a member twice")


def _pattern(_validator: object, pattern: str, value: object, _schema: object) -> Iterator[ValidationError]:
    r"""Match a pattern as ECMA-262 does: `$` is the end of the text, and `\d` one of ten digits."""
    python_pattern = TOKEN.sub(lambda token: r"\Z" if token[0] == "$" else token[0], pattern)
    if isinstance(value, str) and not re.search(python_pattern, value, re.ASCII):
        yield ValidationError("does not match")


def _check_bounds(schema: Mapping[str, Any]) -> None:
    if schema.get("$schema", DIALECT).rstrip("#") != DIALECT:
        message = f"the only dialect is {DIALECT}"
        raise TypeError(message)
    if len(dumps(schema)) > MAX_BYTES or is_deeper(schema, MAX_DEPTH):
        message = f"a schema may have {MAX_BYTES} bytes and {MAX_DEPTH} levels"
        raise TypeError(message)
    for reference in _references(schema):
        if not reference.startswith("#"):
            message = f"$ref {reference!r} leaves the schema: nothing is fetched for it"
            raise TypeError(message)


def _references(schema: object) -> Iterator[str]:
    for level in by_level(schema):
        for part in level:
            if isinstance(part, dict):
                yield from (part[name] for name in REFERENCES if isinstance(part.get(name), str))
