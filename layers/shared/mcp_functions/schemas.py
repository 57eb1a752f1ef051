"""A JSON Schema that an author wrote by hand: passed to clients verbatim, and enforced by `jsonschema`.

2020-12 is the dialect ("the default dialect when no $schema is present"), no `$ref` leaves the document, and depth and
size are bounded.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from mcp_functions.jsonrpc import dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAX_BYTES = 64 * 1024
MAX_DEPTH = 32
MAX_ERRORS = 20  # of one value that are looked at


def checker(schema: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Make the check of values against a raw schema.

    Args:
        schema: JSON Schema 2020-12, its root an object.

    Returns:
        A function that returns its value, or raises ValueError saying where and which keyword, never the value.

    Raises:
        TypeError: the schema is not one that may be offered; the message says why.

    """
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415 - only a raw schema needs it

    _refuse(schema)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        message = f"not a valid JSON Schema 2020-12: {error.message} at {error.json_path}"
        raise TypeError(message) from None
    validator = Draft202012Validator(schema)

    def check(value: object) -> object:
        # a stranger's list may be wrong a million times over: the first of a few errors is enough to say
        error = min(islice(validator.iter_errors(value), MAX_ERRORS), key=lambda found: found.json_path, default=None)
        if error is not None:
            where = error.json_path.removeprefix("$").removeprefix(".")
            message = f"{where or 'the value'} does not fit {error.validator!r} of its schema"
            raise ValueError(message)
        return value

    return check


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
