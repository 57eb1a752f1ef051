"""JSON Schema 2020-12, enforced by `jsonschema`: schemas that an author wrote by hand, and what pydantic lets through.

2020-12 is the dialect ("the default dialect when no $schema is present"), no `$ref` leaves the document, depth and size
are bounded, and patterns are ECMA-262's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import shortened
from mcp_functions.protocol.json_reader import check_size
from mcp_functions.protocol.json_writer import dumps, dumps_sorted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from jsonschema import ValidationError

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAX_BYTES = 64 * 1024
MAX_DEPTH = 32
VALUES = {"const", "default", "enum", "examples"}  # hold values, which may have a member named "pattern"
TIMES = ("date", "date-time", "time")  # formats that a number in a string never has
NAMED = {"$defs", "definitions", "dependentSchemas", "properties"}  # hold schemas by names of the author's


def checker(schema: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Make the check of values against a raw schema.

    Args:
        schema: JSON Schema 2020-12, its root an object.

    Returns:
        A function that returns its value, or raises ValueError saying where and which keyword, never the value.

    Raises:
        TypeError: the schema is not one that may be offered; the message says why.

    """
    from jsonschema import Draft202012Validator, FormatChecker, SchemaError  # noqa: PLC0415 - only a raw schema needs it

    _refuse(schema)
    try:
        # without formats: the meta-schema has patterns be Python's
        Draft202012Validator.check_schema(schema, format_checker=FormatChecker(formats=()))
    except SchemaError as error:
        message = f"not a valid JSON Schema 2020-12: {error.message} at {error.json_path}"
        raise TypeError(message) from None
    enforce = enforcer(schema)

    def check(value: object) -> object:
        enforce(value)
        return value

    return check


def enforcer(schema: Mapping[str, Any]) -> Callable[[Any], None]:
    """Make what raises ValueError for a value that a valid schema forbids; it says where, never the value.

    Raises:
        TypeError: a pattern cannot be understood as ECMA-262.

    """
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - as above

    extend: Any = validators.extend
    judge = extend(Draft202012Validator, {"uniqueItems": _unique, "format": _format})(with_python_patterns(schema))

    def enforce(value: object) -> None:
        check_size(value)
        # The first error is enough: each holds the wrong value as text, and there may be many of them.
        error = next(judge.iter_errors(value), None)
        if error is not None:
            place = shortened(error.json_path.removeprefix("$").removeprefix("."))
            message = f"{place or 'the value'} does not fit {error.validator!r} of its schema"
            raise ValueError(message)

    return enforce


def with_python_patterns(schema: Any) -> Any:  # noqa: ANN401 - a schema, or a part of it
    """Copy a schema with its patterns translated for `re`, which `jsonschema` asks; clients see the original.

    Raises:
        TypeError: a pattern cannot be understood as ECMA-262.

    """
    if isinstance(schema, list):
        return [with_python_patterns(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _translated(key, value) for key, value in schema.items()}


def _translated(keyword: str, value: Any) -> Any:  # noqa: ANN401 - as above
    if keyword in VALUES:
        return value
    if keyword == "pattern" and isinstance(value, str):
        return _translate(value)
    if keyword == "patternProperties":
        return _joinable({_translate(pattern): with_python_patterns(member) for pattern, member in value.items()})
    if keyword in NAMED:
        return {name: with_python_patterns(member) for name, member in value.items()}
    return with_python_patterns(value)


def _translate(pattern: str) -> str:
    from mcp_functions.schemas import patterns  # noqa: PLC0415 - most schemas have no pattern

    return patterns.translate(pattern)


def _joinable(patterns: dict[str, Any]) -> dict[str, Any]:
    """Refuse what would fail in a call: `jsonschema` joins these patterns to look for additional properties."""
    try:
        re.compile("|".join(patterns))
    except re.error as error:
        message = f"the patterns of patternProperties cannot stand side by side: {error.msg}"
        raise TypeError(message) from None
    return patterns


def _unique(_judge: object, unique: object, value: object, _schema: object) -> Iterator[ValidationError]:
    """Look for a member that comes twice; `jsonschema` compares each with each if it cannot sort them."""
    from jsonschema import ValidationError  # noqa: PLC0415 - as above

    if unique and isinstance(value, list) and len({dumps_sorted(member) for member in value}) < len(value):
        yield ValidationError("has a member twice")


def _format(_judge: object, format_: object, value: object, _schema: object) -> Iterator[ValidationError]:
    from jsonschema import ValidationError  # noqa: PLC0415 - as above

    if format_ in TIMES and isinstance(value, str) and re.fullmatch(r"[-+]?[0-9.]+", value):
        yield ValidationError("is a number")


def _refuse(schema: Mapping[str, Any]) -> None:
    if schema.get("type") != "object":
        message = 'the root of an inputSchema must have "type": "object"'
        raise TypeError(message)
    if schema.get("$schema", DIALECT).rstrip("#") != DIALECT:
        message = f"the only dialect is {DIALECT}"
        raise TypeError(message)
    if len(dumps(schema)) > MAX_BYTES or _depth(schema) > MAX_DEPTH:
        message = f"a schema may have {MAX_BYTES} bytes and {MAX_DEPTH} levels"
        raise TypeError(message)
    if outside := next((ref for ref in _references(schema) if not ref.startswith("#")), None):
        message = f"$ref {outside!r} leaves the schema: nothing is fetched for it"
        raise TypeError(message)


def _depth(value: object) -> int:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, children), default=0)


def _references(value: object) -> list[str]:
    if isinstance(value, list):
        return [found for item in value for found in _references(item)]
    if not isinstance(value, dict):
        return []
    own = [ref for key in ("$ref", "$dynamicRef") if isinstance(ref := value.get(key), str)]
    return own + [found for item in value.values() for found in _references(item)]
