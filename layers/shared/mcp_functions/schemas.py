"""A JSON Schema that an author wrote by hand: passed to clients verbatim, and enforced by `jsonschema`.

2020-12 is the dialect ("the default dialect when no $schema is present"), no `$ref` leaves the document, and depth and
size are bounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.errors import shortened
from mcp_functions.jsonrpc import check_size
from mcp_functions.writer import dumps, in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from jsonschema import ValidationError

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAX_BYTES = 64 * 1024
MAX_DEPTH = 32


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
    from jsonschema.validators import extend  # noqa: PLC0415 - likewise

    _refuse(schema)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        message = f"not a valid JSON Schema 2020-12: {error.message} at {error.json_path}"
        raise TypeError(message) from None
    validator = extend(Draft202012Validator, {"uniqueItems": _unique_items})(schema)  # type: ignore[no-untyped-call]

    def check(value: object) -> object:
        check_size(value)
        # The first error is enough: each holds the wrong value as text, and there may be many of them.
        error = next(validator.iter_errors(value), None)
        if error is not None:
            place = shortened(error.json_path.removeprefix("$").removeprefix("."))
            message = f"{place or 'the value'} does not fit {error.validator!r} of its schema"
            raise ValueError(message)
        return value

    return check


def _unique_items(validator: Any, unique: object, items: Any, _schema: object) -> Iterator[ValidationError]:  # noqa: ANN401
    """Check `uniqueItems` in one pass: the library's own check compares each item of a mixed list with each other."""
    from jsonschema import ValidationError  # noqa: PLC0415 - as above

    if unique and validator.is_type(items, "array") and len(set(map(in_order, items))) < len(items):
        message = "an item comes twice"
        yield ValidationError(message)


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
