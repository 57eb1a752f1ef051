"""The options of pydantic's `Field` on a parameter: its default, its name on the wire, and its type.

Only a function that uses `Field` imports this module.
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
OF_THE_TYPE = ("title", "examples", "discriminator", "json_schema_extra")


def read_field(declared: Parameter, annotation: object) -> tuple[Parameter, object]:
    """Read a `Field` in an annotation, behind `=`, or both, which pydantic merges.

    Returns:
        The parameter, and its type with its description, its limits and the options of its schema.

    Raises:
        TypeError: there are two defaults, or an option that no parameter can have.
    """
    default: Any = declared.default
    _check_defaults(annotation, default)
    if default is MISSING:
        info = FieldInfo.from_annotation(annotation)  # type: ignore[arg-type]  # any annotation
    else:
        info = FieldInfo.from_annotated_attribute(annotation, default)  # type: ignore[arg-type]  # any annotation
    _check_options(info)
    type_: Any = _type_of(info)
    parameter = declared._replace(default=MISSING, alias=_alias(info), title=info.title)
    if info.is_required():
        return parameter, type_
    if info.default_factory_takes_validated_data:
        message = "its default_factory takes the validated data, and a parameter knows no other parameter"
        raise TypeError(message)

    def make() -> object:
        made = info.get_default(call_default_factory=True)
        return TypeAdapter(type_).validate_python(made) if info.validate_default else made

    if info.default_factory:
        return parameter._replace(make_default=make), type_
    value = make()
    return parameter._replace(default=value, make_default=copier(value) or (lambda: value)), type_


def _check_defaults(annotation: object, default: object) -> None:
    fields = [item for item in (*get_args(annotation), default) if isinstance(item, FieldInfo)]
    is_plain = default is not MISSING and not isinstance(default, FieldInfo)
    if is_plain + sum(not field.is_required() for field in fields) > 1:
        message = "it has two defaults: write one"
        raise TypeError(message)


def _check_options(info: FieldInfo) -> None:
    options = [name for name in ONLY_IN_MODELS if getattr(info, name, None) is not None]
    if not info.repr:
        options.append("repr")
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
    options: dict[str, Any] = {name: getattr(info, name) for name in OF_THE_TYPE}
    options = {name: value for name, value in options.items() if value is not None}
    if info.deprecated and not callable(info.json_schema_extra):
        options["json_schema_extra"] = {**(info.json_schema_extra or {}), "deprecated": True}
    metadata = [info.description] if info.description else []
    metadata += info.metadata
    if options:
        metadata.append(Field(**options))
    return Annotated[(info.annotation, *metadata)] if metadata else info.annotation
