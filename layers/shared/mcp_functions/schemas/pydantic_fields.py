"""Reads the options of a pydantic `Field` on a parameter.

    page: Annotated[int, Field(ge=1, alias="pageNumber")] = 1

    parameter    page, whose alias is "pageNumber" and whose default is 1
    type         Annotated[int, Ge(1)], which `type_reader` reads

Only a handler with such a parameter imports this module. Its author has imported pydantic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import Field, TypeAdapter
from pydantic.fields import FieldInfo

from mcp_functions.schemas.parameters import MISSING, copier

if TYPE_CHECKING:
    from mcp_functions.schemas.parameters import Parameter

# Options of `Field` that only the field of a model can have.
ONLY_IN_MODELS = ("exclude", "exclude_if", "field_title_generator", "frozen", "init", "init_var", "kw_only")
# Options of `Field` that belong to the type of a parameter, because they change its schema.
TYPE_OPTIONS = ("title", "examples", "discriminator", "json_schema_extra")


def read_field(declared: Parameter, annotation: object) -> tuple[Parameter, object]:
    """Read each `Field` in an annotation and behind `=`.

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
