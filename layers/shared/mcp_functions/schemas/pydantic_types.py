"""Reads with pydantic each type that `type_reader` does not read itself, in pydantic's strict mode.

Only a handler with such a type imports this module, and pydantic with it.
"""

from __future__ import annotations

import warnings
from typing import Any, get_args

from pydantic import TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.warnings import UnsupportedFieldAttributeWarning
from pydantic_core import SchemaError, ValidationError

from mcp_functions.protocol.errors import shortened
from mcp_functions.protocol.json_reader import by_level, check_size
from mcp_functions.protocol.json_writer import encode_in_pieces
from mcp_functions.schemas.json_types import JsonType

# With more errors than this, no reason is given: pydantic explains all errors of a value at once, at 400 bytes each.
MAX_ERRORS = 1000


def read_type(annotation: object) -> JsonType:
    """Read an annotation.

    Raises:
        TypeError: pydantic cannot write this type as JSON, or an option in it has no effect there.
    """
    _check_nested_defaults(annotation)
    adapter, schema = _adapt(annotation)

    def read(value: object) -> object:
        check_size(value)
        try:
            return adapter.validate_json(encode_in_pieces(value), strict=True)
        except ValidationError as error:
            raise ValueError(_first_reason(error)) from None  # pydantic's own text quotes the value

    if not _has_iterable(adapter.core_schema):
        return JsonType(schema, read)
    from mcp_functions.schemas.validation import read_schema  # noqa: PLC0415 - few types hold an `Iterable`

    # pydantic checks an `Iterable` when the function reads its items. A client's mistake must be found before that.
    by_schema = read_schema(schema)
    return JsonType(schema, lambda value: read(by_schema.read(value)))


def _has_iterable(core_schema: object) -> bool:
    """Tell whether a type, or a part of it, is an `Iterable`, which pydantic calls a generator."""
    parts = (part for level in by_level(core_schema) for part in level if isinstance(part, dict))
    return any(part.get("type") == "generator" for part in parts)


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
    except PydanticSchemaGenerationError as error:  # its text only advises not to check the type
        message = f"{annotation!r} cannot be written as JSON"
        raise TypeError(message) from error
    except PydanticUserError as error:  # the sentences after the first advise not to check the type
        reason = error.message.partition("\n")[0].partition(". ")[0]
        message = f"{annotation!r} cannot be written as JSON: {reason}"
        raise TypeError(message) from error


def _check_nested_defaults(annotation: object) -> None:
    for item in get_args(annotation):
        if isinstance(item, FieldInfo) and not item.is_required():
            message = "a default inside a type means nothing: write it on the parameter itself"
            raise TypeError(message)
        _check_nested_defaults(item)


def _first_reason(error: ValidationError) -> str:
    """Give the place and the reason of the first error, without the value."""
    if error.error_count() > MAX_ERRORS:
        return f"does not fit in {error.error_count()} places"
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = shortened(".".join(str(part) for part in first["loc"]))
    reason = first["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return f"{place} {reason}" if place else reason
