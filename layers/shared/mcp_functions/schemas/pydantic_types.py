"""Describes, reads and writes with pydantic each type that `type_reader` does not read itself.

    read_type(UUID)

    schema    {"type": "string", "format": "uuid"}
    read      turns "0b9d81e2-…" into a UUID
    write     turns the UUID into text

pydantic describes what comes in by its mode "validation", and what goes out by its mode "serialization": a model may
have aliases, serializers, computed fields, and fields that are never sent.

A handler without these types does not import this module, so it does not import pydantic.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast, get_args

from pydantic import TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.warnings import UnsupportedFieldAttributeWarning
from pydantic_core import PydanticSerializationError, SchemaError, ValidationError, to_json

from mcp_functions.protocol.errors import shortened
from mcp_functions.protocol.json_reader import check_size
from mcp_functions.protocol.plain_values import is_equal
from mcp_functions.protocol.plain_values import to_json as to_plain
from mcp_functions.schemas.checking import check
from mcp_functions.schemas.json_types import JsonType
from mcp_functions.schemas.pydantic_cores import loss_of, reader_and_writer
from mcp_functions.schemas.pydantic_schemas import Described, WithoutTitles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Literal

    from mcp_functions.protocol.wire_types import JSONValue, Schema

# pydantic makes the texts of all errors at once, at 400 bytes each. With more errors than this, their number is given.
MAX_ERRORS = 1000


def read_type(annotation: object) -> JsonType:
    """Read an annotation; TypeError if it has no JSON Schema, or an option has no effect at this place."""
    _check_nested_defaults(annotation)
    return PydanticType(annotation)


class PydanticType(JsonType):
    """A type that pydantic reads and writes."""

    def __init__(self, annotation: object) -> None:
        """Let pydantic read the annotation, and describe it for clients that send a value."""
        self._annotation = annotation
        with _explained(annotation):
            self._adapter: TypeAdapter[Any] = TypeAdapter(annotation)  # type: ignore[arg-type]
            self._validator, self._serializer = reader_and_writer(self._adapter)
        super().__init__(self._describe("validation"))

    @cached_property
    def output_schema(self) -> Schema:
        """The JSON Schema of what `write` returns."""
        return self._describe("serialization")

    @cached_property
    def form_schema(self) -> Schema:
        """The schema for a form: pydantic makes a title from each name, and so do clients."""
        return self._describe("validation", WithoutTitles)

    def convert(self, value: object) -> Any:  # noqa: ANN401
        """Read a checked value as pydantic reads JSON."""
        check_size(value)
        return self._validate(self._validator.validate_json, to_json(value))

    def write(self, value: object) -> JSONValue:
        """Bring a value to the type, and write it as JSON."""
        return self._dump(self._bring(value))

    def record(self, value: object) -> tuple[JSONValue, bool]:
        """Write a value for a later round; if it cannot be read again, then by the names of its fields, or plainly."""
        typed = self._bring(value)
        writers: list[Callable[[], Any]] = [
            partial(self._dump, typed, round_trip=True),
            partial(self._dump, typed, by_alias=False, round_trip=True),
            partial(to_plain, typed),
        ]
        for write in writers:
            with suppress(ValueError):
                recorded = write()
                if is_equal(self.read_record(recorded), typed):
                    return recorded, True
        return self._dump(typed, round_trip=True), False

    def read_record(self, recorded: object) -> Any:  # noqa: ANN401
        """Read a record, whose fields have their aliases or their names."""
        return self._validate(self._validator.validate_json, to_json(recorded), by_alias=True, by_name=True)

    def check_recordable(self) -> None:
        """Refuse a secret, which is written as asterisks, and a required field that is never written."""
        loss = loss_of(self._adapter.core_schema)
        if loss:
            raise TypeError(f"{self._annotation!r} has {loss}, which no record gives back")

    def _bring(self, value: object) -> object:
        return self._validate(self._validator.validate_python, value)

    def _validate(self, validate: Callable[..., Any], value: object, **options: bool) -> Any:  # noqa: ANN401
        try:
            return validate(value, **options)
        except ValidationError as error:  # pydantic's own text quotes the value
            raise ValueError(_first_reason(error)) from None

    def _dump(self, value: object, *, by_alias: bool = True, round_trip: bool = False) -> JSONValue:
        """Write a value of the type; the check of pydantic's serializer is that of the result."""
        dump = partial(self._serializer.to_python, value, mode="json", by_alias=by_alias, round_trip=round_trip)
        with suppress(PydanticSerializationError, ValueError):
            return dump(warnings="error")
        # pydantic's own text would quote the value. The error of `check` names the place.
        schema = self.output_schema
        with suppress(PydanticSerializationError):
            check(schema, schema.get("$defs", {}), dump(warnings="none"))
        raise ValueError("cannot be written as its type says")

    def _describe(self, mode: Literal["validation", "serialization"], generator: type[Described] = Described) -> Schema:
        with _explained(self._annotation):
            schema = cast("Schema", self._adapter.json_schema(mode=mode, schema_generator=generator))
        # A class that refers to itself has a `$ref` at the root, where many clients look for `type`.
        if "$ref" in schema:
            name = schema.pop("$ref").rpartition("/")[2]
            schema = {**schema["$defs"][name], **schema}
        return schema


@contextmanager
def _explained(annotation: object) -> Iterator[None]:
    """Raise an error of pydantic about a type as a TypeError with the reason."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UnsupportedFieldAttributeWarning)
            yield
    except UnsupportedFieldAttributeWarning as error:
        raise TypeError(str(error).partition(". ")[0]) from None
    except SchemaError as error:
        raise TypeError(f"{annotation!r} cannot be checked: {error}") from None
    except PydanticSchemaGenerationError as error:  # its text only says how to skip the check
        raise TypeError(f"{annotation!r} cannot be written as JSON") from error
    except PydanticUserError as error:  # its first sentence is the reason, the others are advice
        reason = error.message.partition("\n")[0].partition(". ")[0]
        raise TypeError(f"{annotation!r} cannot be written as JSON: {reason}") from error


def _check_nested_defaults(annotation: object) -> None:
    """Refuse `list[Annotated[int, Field(default=1)]]`."""
    for item in get_args(annotation):
        if isinstance(item, FieldInfo) and not item.is_required():
            raise TypeError("a default inside a type means nothing: write it on the parameter itself")
        _check_nested_defaults(item)


def _first_reason(error: ValidationError) -> str:
    """Give the place and the reason of the first error, without the value."""
    if error.error_count() > MAX_ERRORS:
        return f"does not fit in {error.error_count()} places"
    first = error.errors(include_url=False, include_input=False)[0]
    place = shortened(".".join(str(part) for part in first["loc"]))
    is_of_author = first["type"] == "value_error"
    reason = str(first["ctx"]["error"]) if is_of_author else first["msg"].removeprefix("Input ")
    return f"{place} {reason}" if place else reason
