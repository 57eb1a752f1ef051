"""A type that pydantic reads, in its strict mode: its schema, and its reader.

Only a handler that has one of these types imports this module, and pydantic with it.
"""

from __future__ import annotations

import warnings
from typing import Any, get_args

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.warnings import UnsupportedFieldAttributeWarning
from pydantic_core import SchemaError, ValidationError

from mcp_functions.protocol.errors import shortened
from mcp_functions.protocol.json_reader import check_size
from mcp_functions.protocol.json_writer import dumps_utf8
from mcp_functions.schemas.json_types import JsonType

MAX_ERRORS = 1000  # pydantic can only explain all errors of a value at once, at 400 bytes each


def read_type(annotation: object) -> JsonType:
    """Read an annotation.

    Raises:
        TypeError: pydantic cannot write this type as JSON, or an option in it has no effect there.
    """
    _check_defaults(annotation)
    adapter, schema = _adapt(annotation)

    def read(value: object) -> object:
        check_size(value)
        try:
            return adapter.validate_json(dumps_utf8(value), strict=True)
        except ValidationError as error:
            raise ValueError(_first_reason(error)) from None

    return JsonType(schema, read)


def _adapt(annotation: object) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UnsupportedFieldAttributeWarning)
            adapter: TypeAdapter[Any] = TypeAdapter(annotation)  # type: ignore[arg-type]  # any annotation
        return adapter, adapter.json_schema()
    except UnsupportedFieldAttributeWarning as error:
        raise TypeError(str(error).partition(". ")[0]) from None
    except SchemaError as error:
        message = f"{annotation!r} cannot be checked: {error}"
        raise TypeError(message) from None
    except PydanticUserError as error:  # the sentences after the first advise not to check the type
        reason = error.message.partition(chr(10))[0].partition(". ")[0]
        message = f"{annotation!r} cannot be written as JSON: {reason}"
        raise TypeError(message) from error


def _check_defaults(annotation: object) -> None:
    for item in get_args(annotation):
        if isinstance(item, FieldInfo) and not item.is_required():
            message = "a default inside a type means nothing: write it on the parameter itself"
            raise TypeError(message)
        _check_defaults(item)


def _first_reason(error: ValidationError) -> str:
    """Give the place and the reason of the first error, without the value."""
    if error.error_count() > MAX_ERRORS:
        return f"does not fit in {error.error_count()} places"
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = shortened(".".join(str(part) for part in first["loc"]))
    reason = first["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return f"{place} {reason}" if place else reason
