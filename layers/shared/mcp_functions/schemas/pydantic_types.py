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
from collections import defaultdict
from contextlib import suppress
from enum import Enum, Flag
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, get_args

from pydantic import TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic.warnings import UnsupportedFieldAttributeWarning
from pydantic_core import (
    PydanticSerializationError,
    SchemaError,
    SchemaSerializer,
    SchemaValidator,
    ValidationError,
    core_schema,
    to_json,
    to_jsonable_python,
)

from mcp_functions.protocol.errors import shortened
from mcp_functions.protocol.json_reader import check_size
from mcp_functions.protocol.plain_values import is_equal
from mcp_functions.protocol.plain_values import to_json as to_plain
from mcp_functions.schemas.checking import check
from mcp_functions.schemas.json_types import CERTAIN_FORMATS, JsonType

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

# pydantic makes the texts of all errors at once, at 400 bytes each. With more errors than this, their number is given.
MAX_ERRORS = 1000


def read_type(annotation: object) -> JsonType:
    """Read an annotation.

    Raises:
        TypeError: pydantic has no JSON Schema for this type, or an option has no effect at this place.
    """
    _check_nested_defaults(annotation)
    return PydanticType(annotation)


class PydanticType(JsonType):
    """A type that pydantic reads and writes."""

    def __init__(self, annotation: object) -> None:
        """Let pydantic read the annotation, and describe it for clients that send a value."""
        self._annotation = annotation
        self._adapter: TypeAdapter[Any] = self._explained(lambda: TypeAdapter(annotation))  # type: ignore[arg-type]
        self._validator, self._serializer = self._explained(lambda: _reader_and_writer(self._adapter))
        super().__init__(self._describe("validation"))

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        """The JSON Schema of what `write` returns."""
        return self._describe("serialization")

    @cached_property
    def form_schema(self) -> dict[str, Any]:
        """The schema for a form: pydantic makes a title from each name, and so do clients."""
        return self._describe("validation", WithoutTitles)

    def convert(self, value: object) -> Any:  # noqa: ANN401 - a value of the type
        """Read a checked value as pydantic reads JSON."""
        check_size(value)
        return self._validate(self._validator.validate_json, to_json(value))

    def write(self, value: object) -> Any:  # noqa: ANN401 - JSON
        """Bring a value to the type, and write it as JSON."""
        return self._dump(self._bring(value))

    def record(self, value: object) -> tuple[Any, bool]:
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

    def read_record(self, recorded: object) -> Any:  # noqa: ANN401 - a value of the type
        """Read a record, whose fields have their aliases or their names."""
        return self._validate(self._validator.validate_json, to_json(recorded), by_alias=True, by_name=True)

    def check_recordable(self) -> None:
        """Refuse a secret, which is written as asterisks, and a required field that is never written."""
        loss = _loss_of(self._adapter.core_schema)
        if loss:
            raise TypeError(f"{self._annotation!r} has {loss}, which no record gives back")

    def _bring(self, value: object) -> object:
        return self._validate(self._validator.validate_python, value)

    def _validate(self, validate: Callable[..., Any], value: object, **options: bool) -> Any:  # noqa: ANN401
        try:
            return validate(value, **options)
        except ValidationError as error:
            raise ValueError(_first_reason(error)) from None  # pydantic's own text quotes the value

    # JSON
    def _dump(self, value: object, *, by_alias: bool = True, round_trip: bool = False) -> Any:  # noqa: ANN401
        """Write a value of the type; the check of pydantic's serializer is that of the result."""
        dump = partial(self._serializer.to_python, value, mode="json", by_alias=by_alias, round_trip=round_trip)
        try:
            return dump(warnings="error")
        except (PydanticSerializationError, ValueError):  # its text quotes the value
            reason = "cannot be written as its type says"
        with suppress(PydanticSerializationError):
            schema = self.output_schema
            # its error names the place
            check(schema, schema.get("$defs", {}), dump(warnings="none"))
        raise ValueError(reason)

    def _describe(
        self, mode: Literal["validation", "serialization"], generator: type[GenerateJsonSchema] | None = None
    ) -> dict[str, Any]:
        make = partial(self._adapter.json_schema, mode=mode, schema_generator=generator or Described)
        schema: dict[str, Any] = self._explained(make)
        # a class that refers to itself; many clients look for `type` at the root
        if "$ref" in schema:
            schema = {**schema["$defs"][schema.pop("$ref").rpartition("/")[2]], **schema}
        return schema

    def _explained(self, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - what `make` returns
        """Return what a function of pydantic makes; raise its error as a TypeError with the reason."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", UnsupportedFieldAttributeWarning)
                return make()
        except UnsupportedFieldAttributeWarning as error:
            raise TypeError(str(error).partition(". ")[0]) from None
        except SchemaError as error:
            raise TypeError(f"{self._annotation!r} cannot be checked: {error}") from None
        # pydantic's text only advises how to skip the check of the type
        except PydanticSchemaGenerationError as error:
            raise TypeError(f"{self._annotation!r} cannot be written as JSON") from error
        # its first sentence is the reason, the others are advice
        except PydanticUserError as error:
            reason = error.message.partition("\n")[0].partition(". ")[0]
            raise TypeError(f"{self._annotation!r} cannot be written as JSON: {reason}") from error


class Described(GenerateJsonSchema):
    """The JSON Schema of a type, as its values are."""

    def emit_warning(self, kind: str, detail: str) -> None:
        """Emit no warning, because it would quote a default in the log."""

    # a schema of pydantic_core
    def generate_inner(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401
        """Drop the formats that a written value may not have: clients check them."""
        described = super().generate_inner(schema)
        format_ = described.get("format")
        if self.mode == "validation" or not isinstance(format_, str) or format_ in CERTAIN_FORMATS:
            return described
        if format_ == "date-time" and (schema["type"] != "datetime" or schema.get("tz_constraint") == "aware"):
            return described
        return {keyword: part for keyword, part in described.items() if keyword != "format"}

    # a schema of pydantic_core
    def default_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401
        """Publish no default that no client can send: the None of `int = None`, or the asterisks of a secret."""
        described = super().default_schema(schema)
        # A class that refers to itself is not yet in the definitions.
        definitions: Any = defaultdict(lambda: {"type": "object"}, self.definitions)
        try:
            check(described, definitions, described.get("default"))
        except ValueError:
            described.pop("default", None)
        if described.get("writeOnly"):
            described.pop("default", None)
        return described

    # a schema of pydantic_core
    def dict_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401
        """Say nothing of the names of `dict[Size, str]`, where Size is an IntEnum: no name in JSON is an integer."""
        described = super().dict_schema(schema)
        names = self.resolve_ref_schema(described.get("propertyNames", {}))
        if names.get("type", "string") != "string":
            del described["propertyNames"]
        return described

    # a schema of pydantic_core
    def enum_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401
        """Describe a Flag without its members, because their sums are values, too."""
        described = super().enum_schema(schema)
        if issubclass(schema["cls"], Flag):
            described.pop("enum", described.pop("const", None))
        return described

    # a schema of pydantic_core
    def tagged_union_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401
        """Require the tag in each member, as pydantic does when it reads one, also where the tag has a default."""
        described = super().tagged_union_schema(schema)
        tag = described.get("discriminator", {}).get("propertyName")
        return {**described, "required": [tag]} if tag else described

    # a schema of pydantic_core
    def ser_schema(self, schema: Any) -> dict[str, Any] | None:  # noqa: ANN401
        """Describe what an author's serializer without a return annotation writes as anything."""
        is_function = schema["type"] in ("function-plain", "function-wrap") and schema.get("return_schema") is None
        of_pydantic = is_function and str(schema["function"].__module__).partition(".")[0] == "pydantic"
        if is_function and not of_pydantic and self.mode == "serialization":
            return {}
        return super().ser_schema(schema)


class WithoutTitles(Described):
    """The same, with only the titles that an author wrote."""

    # the signature of pydantic
    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002
        """Return False: no field gets a title from its name."""
        return False


def _reader_and_writer(adapter: TypeAdapter[Any]) -> tuple[Any, Any]:
    """Return the validator and the serializer of a type, after what `_mended` changes."""
    mended = _mended(adapter.core_schema)
    if mended == adapter.core_schema:
        return adapter.validator, adapter.serializer
    # Without the option, pydantic would use the validator of each model class, which is not changed.
    return SchemaValidator(mended, _use_prebuilt=False), SchemaSerializer(mended, _use_prebuilt=False)


def _loss_of(part: Any) -> str | None:  # noqa: ANN401 - a part of a schema of pydantic_core
    """Name what a type has and never writes; None if there is nothing. An author's serializer may write anything."""
    parts: Any = part if isinstance(part, list | tuple) else ()
    if isinstance(part, dict):
        if part.get("serialization_exclude") and part["schema"]["type"] != "default":
            return "a required field with exclude=True"
        written = part.get("serialization")
        if isinstance(written, dict) and "function" in written:
            function = written["function"]
            is_secret = function.__module__ == "pydantic.types" and "secret" in function.__name__
            return "a secret" if is_secret else None
        parts = part.values()
    return next(filter(None, map(_loss_of, parts)), None)


def _enum_members(part: dict[str, Any]) -> list[Enum]:
    """Return the members of an Enum which pydantic does not read by their values."""
    if part.get("type") == "literal":
        return [choice for choice in part["expected"] if isinstance(choice, Enum)]
    members = part["members"] if part.get("type") == "enum" else []
    return members if any(isinstance(member.value, tuple) for member in members) else []


def _is_of_plain_validator(part: dict[str, Any]) -> bool:
    """Recognize the serializer of a PlainValidator."""
    function = part.get("function") if part.get("type") == "function-wrap" else None
    return getattr(function, "__module__", "") == "pydantic.functional_validators"


def _mended(part: Any) -> Any:  # noqa: ANN401 - a part of a schema of pydantic_core
    """Copy a part of a type's description with three changes.

    - A Literal also takes the value of each choice that is a member of an Enum, and an Enum of tuples takes arrays,
      because JSON can hold neither the member nor the tuple (pydantic's issues 8708, 9968 and 10629).
    - The items of an `Iterable` are checked when it is read, and not when the author's function asks for them.
    - What the type inside a PlainValidator wrote is not written by this type again, because pydantic warns of that
      (10402 and 10964).
    """
    if type(part) in (list, tuple):
        return type(part)(map(_mended, part))
    if not isinstance(part, dict):
        return part
    # A default and the author's keywords are no parts of the description. A field may have such a name, too.
    kept = ("default", "metadata") if isinstance(part.get("type"), str) else ()
    copy = {name: each if name in kept else _mended(each) for name, each in part.items()}
    if part.get("type") == "generator":
        return {**copy, "type": "list"}
    if _is_of_plain_validator(part):
        copy.pop("return_schema", None)
    if part.get("type") == "tagged-union":
        copy["choices"] |= {tag.value: choice for tag, choice in copy["choices"].items() if isinstance(tag, Enum)}
    members = _enum_members(part)
    if not members:
        return copy
    by_value = [(to_jsonable_python(member.value), member) for member in members]
    return core_schema.no_info_before_validator_function(partial(_member_of, by_value), copy)


def _member_of(by_value: list[tuple[Any, Enum]], choice: object) -> object:
    """Return the member that has a value; a choice that is no such value stays as it is."""
    found = (member for value, member in by_value if (type(value), value) == (type(choice), choice))
    return next(found, choice)


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
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = shortened(".".join(str(part) for part in first["loc"]))
    reason = first["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return f"{place} {reason}" if place else reason
