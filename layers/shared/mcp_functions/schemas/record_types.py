"""Dataclasses and TypedDicts as JSON objects. As with pydantic, a member that they do not declare is ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from mcp_functions.schemas.json_types import JsonType, check_object, read_part
from mcp_functions.schemas.parameters import docstring, published_default

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.schemas.json_types import ReadType


def read_record(cls: type[Any], read_type: ReadType) -> JsonType | None:
    """Read a dataclass or a TypedDict; None if only pydantic reads it."""
    try:
        hints = get_type_hints(cls, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError):
        return None  # pydantic's error names the field
    if hasattr(cls, "__dataclass_fields__"):
        return _read_dataclass(cls, hints, read_type)
    return _read_typed_dict(cls, hints, read_type)


def _read_typed_dict(cls: type[Any], hints: Mapping[str, Any], read_type: ReadType) -> JsonType | None:
    extra_items = str(getattr(cls, "__extra_items__", "NoExtraItems"))
    if getattr(cls, "__closed__", None) or not extra_items.endswith("NoExtraItems"):
        return None
    fields = {name: _unqualified(hint, is_required=name in cls.__required_keys__) for name, hint in hints.items()}
    types = {name: read_type(hint) for name, (hint, _is_required) in fields.items()}
    return _object_of(cls, types, required=[name for name, (_hint, is_required) in fields.items() if is_required])


def _unqualified(hint: object, *, is_required: bool) -> tuple[object, bool]:
    """Remove Required, NotRequired and ReadOnly, of `typing` or `typing_extensions`; return whether it is required."""
    qualifier = str(get_origin(hint)).rpartition(".")[2]
    args = get_args(hint)
    if qualifier == "ReadOnly":
        return _unqualified(args[0], is_required=is_required)
    if qualifier in ("Required", "NotRequired"):
        return _unqualified(args[0], is_required=qualifier == "Required")
    if get_origin(hint) is Annotated:
        inner, is_required = _unqualified(args[0], is_required=is_required)
        return Annotated[(inner, *args[1:])], is_required
    return hint, is_required


def _read_dataclass(cls: type[Any], hints: Mapping[str, Any], read_type: ReadType) -> JsonType | None:
    from dataclasses import MISSING, InitVar, fields  # noqa: PLC0415 - the author of a dataclass has imported it

    declared = fields(cls)
    if any(isinstance(hint, InitVar) for hint in hints.values()) or not all(field.init for field in declared):
        return None
    defaults = {field.name: field.default for field in declared if field.default is not MISSING}
    factories = {field.name: field.default_factory for field in declared if field.default_factory is not MISSING}
    names = [field.name for field in declared]
    types = {name: read_type(hints[name]) for name in names}
    required = [name for name in names if name not in defaults and name not in factories]
    members = _object_of(cls, types, required, defaults)
    if members is None:
        return None

    def read(value: object) -> object:
        sent = members.read(value)
        made = {name: make() for name, make in factories.items() if name not in sent}
        values = {**defaults, **made, **sent}
        return _new(cls, {name: values[name] for name in names})

    return JsonType(members.schema, read)


def _new(cls: type[object], values: Mapping[str, object]) -> object:
    """Make an instance as pydantic does: by its fields, frozen or not, without its `__init__`."""
    instance = cls.__new__(cls)
    for name, value in values.items():
        object.__setattr__(instance, name, value)
    try:
        getattr(instance, "__post_init__", lambda: None)()
    except AssertionError as error:
        message = f"Assertion failed, {error}"
        raise ValueError(message) from None
    return instance


def _object_of(
    cls: type, types: Mapping[str, JsonType | None], required: list[str], defaults: Mapping[str, object] | None = None
) -> JsonType | None:
    """Make the type of an object from the types of its members; None if only pydantic reads one of them."""
    known = {name: type_ for name, type_ in types.items() if type_}
    if len(known) < len(types):
        return None

    def read(value: object) -> dict[str, object]:
        sent = check_object(value)
        for name in required:
            if name not in sent:
                message = f"{name} is missing"
                raise ValueError(message)
        return {name: read_part(name, type_, sent[name]) for name, type_ in known.items() if name in sent}

    properties = {name: type_.schema for name, type_ in known.items()}
    for name, default in (defaults or {}).items():
        properties[name] = {**properties[name], **published_default(default, known[name].read)}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    # `dataclass` writes the signature as a docstring where the author wrote none.
    if cls.__doc__ and not cls.__doc__.startswith(f"{cls.__name__}("):
        schema["description"] = docstring(cls)
    return JsonType(schema, read)
