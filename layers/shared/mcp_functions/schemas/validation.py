"""A JSON Schema 2020-12 that an author wrote: checked when the server starts, and enforced by `jsonschema`.

A `$ref` may only name a part of the same schema, so nothing is fetched. The size and depth of a schema are bounded.
Only a tool with such a schema imports this module, and `jsonschema` with it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from jsonschema import Draft202012Validator, SchemaError, ValidationError, validators

from mcp_functions.protocol.errors import shortened
from mcp_functions.protocol.json_reader import check_size, is_deeper, walk
from mcp_functions.protocol.json_writer import dumps, dumps_sorted
from mcp_functions.schemas.json_types import JsonType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcp_functions.protocol.wire_types import Schema

# It is "the default dialect when no $schema is present" (basic).
DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAX_BYTES = 64 * 1024
MAX_DEPTH = 32
REFERENCES = ("$ref", "$dynamicRef")
# The parts of a regular expression with a `$`: an escape and a class in brackets, where it is an ordinary character,
# and the sign itself.
DOLLARS = r"\\.|\[(?:\\.|[^\]\\])*\]|\$"


def read_schema(schema: Mapping[str, Any]) -> JsonType:
    """Check a schema that an author wrote, and make its type; TypeError with the reason if it may not be published."""
    _check_bounds(schema)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise TypeError(f"not a valid JSON Schema 2020-12: {error.message} at {error.json_path}") from None
    extend: Any = validators.extend  # its type hints are incomplete
    validator_class = extend(Draft202012Validator, {"uniqueItems": _unique_items, "pattern": _pattern})
    return SchemaType(cast("Schema", dict(schema)), validator_class(schema))


class SchemaType(JsonType):
    """The type of an author's schema. Its values stay as they are."""

    def __init__(self, schema: Schema, validator: Draft202012Validator) -> None:
        """Take the schema, and what checks it."""
        super().__init__(schema)
        self._validator = validator

    @property
    def output_schema(self) -> Schema:
        """The author's schema, unchanged."""
        return self.schema

    def check(self, value: object) -> None:
        """Raise a ValueError with the place and the keyword that forbids a value, which it never quotes."""
        check_size(value)
        # Only the first error is asked for, because each error holds its value as text.
        error = next(self._validator.iter_errors(value), None)
        if error is not None:
            place = shortened(error.json_path.removeprefix("$").removeprefix("."))
            raise ValueError(f"{place or 'the value'} does not fit {error.validator!r} of its schema")


def _unique_items(_validator: object, unique: object, value: object, _schema: object) -> Iterator[ValidationError]:
    """Check the keyword `uniqueItems`; `jsonschema` would compare all pairs of members that it cannot sort."""
    if unique and isinstance(value, list):
        different = {dumps_sorted(member) for member in value}
        if len(different) < len(value):
            yield ValidationError("has a member twice")


def _pattern(_validator: object, pattern: str, value: object, _schema: object) -> Iterator[ValidationError]:
    r"""Check the keyword `pattern` as ECMA-262 does, where `\d` is one of ten digits, as with re.ASCII in Python."""
    if not isinstance(value, str):
        return
    # In ECMA-262, `$` is the end of the text. In Python, a line break may follow it.
    python_pattern = re.sub(DOLLARS, lambda part: r"\Z" if part[0] == "$" else part[0], pattern, flags=re.DOTALL)
    if not re.search(python_pattern, value, re.ASCII):
        yield ValidationError("does not match")


def _check_bounds(schema: Mapping[str, Any]) -> None:
    if schema.get("$schema", DIALECT).rstrip("#") != DIALECT:
        raise TypeError(f"the only dialect is {DIALECT}")
    if len(dumps(schema).encode()) > MAX_BYTES:
        raise TypeError(f"a schema may have at most {MAX_BYTES} bytes")
    if is_deeper(schema, MAX_DEPTH):
        raise TypeError(f"a schema may have at most {MAX_DEPTH} levels of objects and arrays")
    _check_references(schema)


def _check_references(schema: Mapping[str, Any]) -> None:
    for _level, container in walk(schema):
        references = [container.get(keyword) for keyword in REFERENCES] if isinstance(container, dict) else []
        for reference in references:
            # A property may be called "$ref". Its value is then no string.
            if isinstance(reference, str) and not reference.startswith("#"):
                raise TypeError(f"$ref {reference!r} leaves the schema: nothing is fetched for it")
