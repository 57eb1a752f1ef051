"""Reads with pydantic what this package does not read: a type, in strict mode, and the options of a `Field`.

    page: Annotated[int, Field(ge=1, alias="pageNumber")] = 1

    parameter    page, whose alias is "pageNumber" and whose default is 1
    type         Annotated[int, Ge(1)], which `type_reader` reads

Only a handler with such a type, or with a `Field` on a parameter, imports this module, and pydantic with it.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import Field, TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.warnings import UnsupportedFieldAttributeWarning
from pydantic_core import SchemaError, ValidationError

from mcp_functions.protocol.errors import shortened
from mcp_functions.protocol.json_reader import by_level, check_size
from mcp_functions.protocol.json_writer import dumps_utf8
from mcp_functions.schemas.json_types import JsonType
from mcp_functions.schemas.parameters import MISSING, copier

if TYPE_CHECKING:
    from mcp_functions.schemas.parameters import Parameter

# With more errors than this, no reason is given: pydantic explains all errors of a value at once, at 400 bytes each.
MAX_ERRORS = 1000
# Options of `Field` that only the field of a model can have.
ONLY_IN_MODELS = ("exclude", "exclude_if", "field_title_generator", "frozen", "init", "init_var", "kw_only")
# Options of `Field` that belong to the type of a parameter, because they change its schema.
TYPE_OPTIONS = ("title", "examples", "discriminator", "json_schema_extra")


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
            return adapter.validate_json(dumps_utf8(value), strict=True)
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


def read_field(declared: Parameter, annotation: object) -> tuple[Parameter, object]:
    """Read a `Field` in an annotation, behind `=`, or both, which pydantic merges.

    Returns:
        The parameter, and its type with its description, its limits and the options of its schema.

    Raises:
        TypeError: there are two defaults, or an option that no parameter can have.
    """
    info = _merge(annotation, declared.default)
    _check_options(info)
    type_: Any = _type_of(info)
    parameter = declared._replace(default=MISSING, alias=_alias(info), title=info.title)
    if info.is_required():
        return parameter, type_
    if info.default_factory_takes_validated_data:
        message = "its default_factory takes the validated data, and a parameter knows no other parameter"
        raise TypeError(message)

    def make_default() -> object:
        default = info.get_default(call_default_factory=True)
        return TypeAdapter(type_).validate_python(default) if info.validate_default else default

    if info.default_factory:
        return parameter._replace(make_default=make_default), type_
    default = make_default()
    # Behind `=` is the `Field`, so each call is given the default, even one that no call can change.
    return parameter._replace(default=default, make_default=copier(default) or (lambda: default)), type_


def _merge(annotation: object, default: object) -> FieldInfo:
    """Merge each `Field` of an annotation with the one behind `=`, or with the plain default there."""
    _check_defaults(annotation, default)
    if default is MISSING:
        return FieldInfo.from_annotation(annotation)  # type: ignore[arg-type]  # any annotation
    return FieldInfo.from_annotated_attribute(annotation, default)  # type: ignore[arg-type]  # any annotation


def _check_defaults(annotation: object, default: object) -> None:
    fields = [item for item in (*get_args(annotation), default) if isinstance(item, FieldInfo)]
    defaults: list[object] = [field for field in fields if not field.is_required()]
    if default is not MISSING and not isinstance(default, FieldInfo):
        defaults.append(default)
    if len(defaults) > 1:
        message = "it has two defaults: write one"
        raise TypeError(message)


def _check_options(info: FieldInfo) -> None:
    options = [name for name in ONLY_IN_MODELS if getattr(info, name, None) is not None]
    if options:
        message = f"Field({options[0]}=…) means nothing for a parameter"
        raise TypeError(message)
    if info.serialization_alias not in (None, info.alias):
        message = "Field(serialization_alias=…) names what is written, and a parameter is only read"
        raise TypeError(message)


def _alias(info: FieldInfo) -> str | None:
    alias = info.alias if info.validation_alias is None else info.validation_alias
    if alias is not None and not (isinstance(alias, str) and alias):
        message = f"an argument has one name, and not {alias!r}"
        raise TypeError(message)
    return alias


def _type_of(info: FieldInfo) -> object:
    """Write the annotation of the type alone; pydantic reads its options in a `Field` without a default."""
    options: dict[str, Any] = {name: getattr(info, name) for name in TYPE_OPTIONS}
    options = {name: value for name, value in options.items() if value is not None}
    if info.deprecated and not callable(info.json_schema_extra):
        options["json_schema_extra"] = {**(info.json_schema_extra or {}), "deprecated": True}
    metadata = [info.description] if info.description else []
    metadata += info.metadata
    if options:
        metadata.append(Field(**options))
    return Annotated[(info.annotation, *metadata)] if metadata else info.annotation
