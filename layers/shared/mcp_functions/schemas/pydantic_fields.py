"""What pydantic's `Field` says about a parameter: its default, its name on the wire, and its type.

Only a function that uses `Field` imports this module, and it has imported pydantic for that.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import Field, TypeAdapter
from pydantic.fields import FieldInfo

from mcp_functions.schemas.parameters import MISSING, copier

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.schemas.parameters import Parameter

# Options of `Field` that only the field of a model can have, with their defaults.
MEANINGLESS: dict[str, object] = {
    "exclude": None,
    "exclude_if": None,
    "field_title_generator": None,
    "frozen": None,
    "init": None,
    "init_var": None,
    "kw_only": None,
    "repr": True,
}
KEPT = ("title", "examples", "discriminator", "json_schema_extra")


def read(parameter: Parameter, annotation: Any) -> tuple[Parameter, Any]:  # noqa: ANN401 - an annotation is any value
    """Read a parameter with a `Field` in its annotation, behind `=`, or both: pydantic merges them.

    Returns:
        The parameter with its real default, and the annotation of its type alone.

    Raises:
        TypeError: there are two defaults, or an option that no parameter can have.

    """
    _check_defaults(annotation, parameter.default)
    if parameter.required:
        info = FieldInfo.from_annotation(annotation)
    else:
        info = FieldInfo.from_annotated_attribute(annotation, parameter.default)
    _check_meaning(info)
    annotation = _annotation(info)
    default, fresh = _default(info, annotation)
    filled = parameter._replace(default=default, fresh=fresh, is_filled=True, alias=_alias(info), title=info.title)
    return filled, annotation


def _check_defaults(annotation: Any, default: object) -> None:  # noqa: ANN401 - as above
    fields = [item for item in (*get_args(annotation), default) if isinstance(item, FieldInfo)]
    plain = default is not MISSING and not isinstance(default, FieldInfo)
    if plain + sum(not field.is_required() for field in fields) > 1:
        message = "it has two defaults: write one"
        raise TypeError(message)


def _check_meaning(info: FieldInfo) -> None:
    if names := [name for name, untold in MEANINGLESS.items() if getattr(info, name, untold) is not untold]:
        message = f"Field({names[0]}=…) means nothing for a parameter"
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


def _annotation(info: FieldInfo) -> Any:  # noqa: ANN401 - an annotation is any value
    kept: dict[str, Any] = {name: value for name in KEPT if (value := getattr(info, name)) is not None}
    if info.deprecated:
        kept["json_schema_extra"] = _deprecating(info.json_schema_extra)
    metadata = [*([info.description] if info.description else []), *info.metadata, *([Field(**kept)] if kept else [])]
    return Annotated[(info.annotation, *metadata)] if metadata else info.annotation


def _deprecating(extra: Any) -> Any:  # noqa: ANN401 - a dict, a function, or None, as pydantic takes it
    def extend(schema: dict[str, Any]) -> None:
        extra(schema)
        schema["deprecated"] = True

    return extend if callable(extra) else {**(extra or {}), "deprecated": True}


def _default(info: FieldInfo, annotation: Any) -> tuple[Any, Callable[[], Any] | None]:  # noqa: ANN401 - as above
    """Read the default, and what makes it for each call: the function's own default is a `FieldInfo`."""
    if info.is_required():
        return MISSING, None
    validate = TypeAdapter(annotation).validate_python if info.validate_default else _same
    if factory := info.default_factory:
        if info.default_factory_takes_validated_data:
            message = "its default_factory takes the validated data, and a parameter knows no other parameter"
            raise TypeError(message)
        return MISSING, lambda: validate(factory())  # type: ignore[call-arg]  # looked at above
    default = validate(info.default)
    return default, copier(default) or partial(_same, default)


def _same(value: Any) -> Any:  # noqa: ANN401 - a default is any value
    return value
