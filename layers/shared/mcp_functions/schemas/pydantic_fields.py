"""Reads the options of a pydantic `Field` on a parameter.

    page: Annotated[int, Field(ge=1, alias="pageNumber")] = 1

    parameter    page, whose alias is "pageNumber" and whose default is 1
    type         Annotated[int, Ge(1)], which `type_reader` reads

Only a handler with such a parameter imports this module. Its author has imported pydantic.
"""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import Field, TypeAdapter
from pydantic.fields import FieldInfo

from mcp_functions.schemas.parameters import MISSING, Parameter

# Options of `Field` that only the field of a model can have.
ONLY_IN_MODELS = ("exclude", "exclude_if", "field_title_generator", "frozen", "init", "init_var", "kw_only")
# Options of `Field` that belong to the type of a parameter, because they change its schema.
TYPE_OPTIONS = ("title", "examples", "discriminator", "json_schema_extra")


def read_field(declared: Parameter) -> Parameter:
    """Read each `Field` in an annotation and behind `=`, and keep in the annotation only what belongs to the type.

    Raises:
        TypeError: there are two defaults, one cannot be copied, or there is an option that no parameter can have.
    """
    annotation: Any = declared.annotation
    _check_defaults(annotation, declared.default)
    if declared.default is MISSING:
        field = FieldInfo.from_annotation(annotation)
    else:
        field = FieldInfo.from_annotated_attribute(annotation, declared.default)
    _check_options(field)
    type_ = _type_of(field)
    parameter = Parameter(declared.name, MISSING, annotation=type_, alias=_alias(field), title=field.title)
    if field.is_required():
        return parameter
    if field.default_factory_takes_validated_data:
        raise TypeError("its default_factory takes the validated data, and a parameter knows no other parameter")
    adapter: TypeAdapter[Any] | None = TypeAdapter(type_) if field.validate_default else None

    def make_default() -> object:
        default = field.get_default(call_default_factory=True)  # a copy, if no factory makes it
        return adapter.validate_python(default) if adapter else default

    published = make_default() if field.default_factory is None else MISSING
    return parameter._replace(default=published, make_default=make_default)


def _check_defaults(annotation: object, default: object) -> None:
    fields = [item for item in (*get_args(annotation), default) if isinstance(item, FieldInfo)]
    defaults: list[object] = [field for field in fields if not field.is_required()]
    if default is not MISSING and not isinstance(default, FieldInfo):
        defaults.append(default)
    if len(defaults) > 1:
        raise TypeError("it has two defaults: write one")


def _check_options(field: FieldInfo) -> None:
    for name in ONLY_IN_MODELS:
        if getattr(field, name, None) is not None:
            raise TypeError(f"Field({name}=…) means nothing for a parameter")
    if field.serialization_alias not in (None, field.alias):
        raise TypeError("Field(serialization_alias=…) names what is written, and a parameter is only read")


def _alias(field: FieldInfo) -> str | None:
    """Return the name on the wire; None if the `Field` gives none."""
    alias = field.validation_alias  # pydantic sets it to `alias`, if the author gives only that
    if alias is not None and not (isinstance(alias, str) and alias):
        raise TypeError(f"an argument has one name, and not {alias!r}")
    return alias


def _type_of(field: FieldInfo) -> Any:  # noqa: ANN401 - an annotation
    """Return the annotation with its description, its limits, and TYPE_OPTIONS in a `Field` without a default."""
    # `type_reader` reads a string in `Annotated` as the description.
    metadata: list[object] = [field.description] if field.description else []
    metadata += field.metadata
    options: dict[str, Any] = {name: getattr(field, name) for name in TYPE_OPTIONS}
    options = {name: value for name, value in options.items() if value is not None}
    # `json_schema_extra` may be a function that changes the schema, to which no member can be added.
    if field.deprecated and not callable(field.json_schema_extra):
        options["json_schema_extra"] = {**(field.json_schema_extra or {}), "deprecated": True}
    if options:
        metadata.append(Field(**options))
    return Annotated[(field.annotation, *metadata)] if metadata else field.annotation
