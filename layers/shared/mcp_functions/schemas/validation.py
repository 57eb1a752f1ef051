"""JSON Schema 2020-12, enforced by `jsonschema`: an author's own schemas, and those that pydantic does not enforce.

No `$ref` leaves a schema, its depth and size are bounded, and its patterns are ECMA-262's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import shortened
from mcp_functions.protocol.json_reader import by_level, check_size, is_deeper
from mcp_functions.protocol.json_writer import dumps, dumps_sorted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from jsonschema import ValidationError

DIALECT = "https://json-schema.org/draft/2020-12/schema"  # "the default dialect when no $schema is present" (basic)
MAX_BYTES = 64 * 1024
MAX_DEPTH = 32
WITH_VALUES = {"const", "default", "enum", "examples"}  # these hold values, which may have a member named "pattern"
WITH_NAMES = {"$defs", "definitions", "dependentSchemas", "properties"}  # these hold schemas by an author's names
TIMES = ("date", "date-time", "time")  # formats of a string that is no number


def check_input_schema(schema: Mapping[str, Any]) -> None:
    """Check a schema that an author wrote for the arguments of a tool.

    Raises:
        TypeError: it may not be published; the message gives the reason.
    """
    if schema.get("type") != "object":
        message = 'the root of an inputSchema must have "type": "object"'
        raise TypeError(message)
    check_schema(schema)


def check_schema(schema: Mapping[str, Any]) -> None:
    """Check a schema that an author wrote.

    Raises:
        TypeError: the schema may not be published; the message gives the reason.
    """
    from jsonschema import Draft202012Validator, FormatChecker, SchemaError  # noqa: PLC0415 - few tools need it

    _check_bounds(schema)
    try:
        # No format is checked: the meta-schema would have Python's patterns.
        Draft202012Validator.check_schema(schema, format_checker=FormatChecker(formats=()))
    except SchemaError as error:
        message = f"not a valid JSON Schema 2020-12: {error.message} at {error.json_path}"
        raise TypeError(message) from None


def compile_schema(schema: Mapping[str, Any]) -> Callable[[object], None]:
    """Make a validator of a valid schema.

    Returns:
        A function that raises ValueError for a value that does not fit. The message has the place and the keyword, and
        not the value.

    Raises:
        TypeError: a pattern is not ECMA-262.
    """
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - few tools need it

    extend: Any = validators.extend
    validator = extend(Draft202012Validator, {"uniqueItems": _unique_items, "format": _format})
    validator = validator(with_python_patterns(schema))

    def validate(value: object) -> None:
        check_size(value)
        # One error is enough: each has a copy of its value as text.
        error = next(validator.iter_errors(value), None)
        if error is not None:
            place = shortened(error.json_path.removeprefix("$").removeprefix("."))
            message = f"{place or 'the value'} does not fit {error.validator!r} of its schema"
            raise ValueError(message)

    return validate


def with_python_patterns(schema: object) -> object:
    """Copy a schema with patterns of `re`, which `jsonschema` uses. Clients read the original.

    Raises:
        TypeError: a pattern is not ECMA-262.
    """
    if isinstance(schema, list):
        return [with_python_patterns(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    return {keyword: _translated(keyword, value) for keyword, value in schema.items()}


def _translated(keyword: str, value: object) -> object:
    if keyword in WITH_VALUES:
        return value
    if keyword == "pattern" and isinstance(value, str):
        return _translate(value)
    if keyword == "patternProperties" and isinstance(value, dict):
        patterns = {_translate(pattern): with_python_patterns(member) for pattern, member in value.items()}
        _check_joined(patterns)
        return patterns
    if keyword in WITH_NAMES and isinstance(value, dict):
        return {name: with_python_patterns(member) for name, member in value.items()}
    return with_python_patterns(value)


def _translate(pattern: str) -> str:
    from mcp_functions.schemas import patterns  # noqa: PLC0415 - most schemas have no pattern

    return patterns.translate(pattern)


def _check_joined(patterns: Mapping[str, object]) -> None:
    """Refuse patterns that would fail in a call: `jsonschema` joins them to find additional properties."""
    try:
        re.compile("|".join(patterns))
    except re.error as error:
        message = f"the patterns of patternProperties cannot be joined: {error.msg}"
        raise TypeError(message) from None


def _unique_items(_validator: object, unique: object, value: object, _schema: object) -> Iterator[ValidationError]:
    """Find a member that comes twice; `jsonschema` would compare all pairs of members that it cannot sort."""
    from jsonschema import ValidationError  # noqa: PLC0415 - `jsonschema` calls this function

    if unique and isinstance(value, list) and len({dumps_sorted(member) for member in value}) < len(value):
        yield ValidationError("has a member twice")


def _format(_validator: object, name: object, value: object, _schema: object) -> Iterator[ValidationError]:
    from jsonschema import ValidationError  # noqa: PLC0415 - `jsonschema` calls this function

    if name in TIMES and isinstance(value, str) and re.fullmatch(r"[-+]?[0-9.]+", value):
        yield ValidationError("is a number")


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
            names = ("$ref", "$dynamicRef") if isinstance(part, dict) else ()
            yield from (part[name] for name in names if isinstance(part.get(name), str))
