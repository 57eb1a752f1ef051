"""Reads with pydantic each type that `type_reader` does not read itself.

    read_type(UUID)

    schema    {"type": "string", "format": "uuid"}
    read      turns "0b9d81e2-…" into a UUID

A handler without these types does not import this module, so it does not import pydantic.
"""

from __future__ import annotations

import warnings
from typing import Any, get_args

from pydantic import TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.warnings import UnsupportedFieldAttributeWarning
from pydantic_core import SchemaError, ValidationError, to_json

from mcp_functions.protocol.errors import shortened
from mcp_functions.protocol.json_reader import check_size, walk
from mcp_functions.schemas.json_types import JsonType

# pydantic makes the texts of all errors at once, at 400 bytes each. With more errors than this, their number is given.
MAX_ERRORS = 1000


def read_type(annotation: object) -> JsonType:
    """Read an annotation.

    Raises:
        TypeError: pydantic has no JSON Schema for this type, or an option has no effect at this place.
    """
    _check_nested_defaults(annotation)
    adapter, schema = _adapt(annotation)

    def read(value: object) -> object:
        check_size(value)
        try:
            # In strict mode, "5" is no int. Text is a UUID or a date only if it comes from JSON.
            return adapter.validate_json(to_json(value), strict=True)
        except ValidationError as error:
            raise ValueError(_first_reason(error)) from None  # pydantic's own text quotes the value

    if not _has_iterable(adapter.core_schema):
        return JsonType(schema, read)
    # pydantic checks an `Iterable` only when the author's function reads its items. A client's mistake must be found
    # before that.
    from mcp_functions.schemas.validation import read_schema  # noqa: PLC0415 - few types hold an `Iterable`

    by_schema = read_schema(schema)

    def check_and_read(value: object) -> object:
        by_schema.read(value)  # raises a ValueError for a wrong item
        return read(value)

    return JsonType(schema, check_and_read)


def _has_iterable(core_schema: object) -> bool:
    """Tell whether pydantic's description of a type, nested dicts and lists, has an `Iterable` (a "generator")."""
    parts = [container for _level, container in walk(core_schema) if isinstance(container, dict)]
    return any(part.get("type") == "generator" for part in parts)


def _adapt(annotation: object) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    """Make pydantic's reader of a type, and its JSON Schema."""
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
    except PydanticSchemaGenerationError as error:  # pydantic's text only advises how to skip the check of the type
        message = f"{annotation!r} cannot be written as JSON"
        raise TypeError(message) from error
    except PydanticUserError as error:  # its first sentence is the reason, the others are advice
        reason = error.message.partition("\n")[0].partition(". ")[0]
        message = f"{annotation!r} cannot be written as JSON: {reason}"
        raise TypeError(message) from error


def _check_nested_defaults(annotation: object) -> None:
    """Refuse `list[Annotated[int, Field(default=1)]]`."""
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
