"""Dataclasses and TypedDicts as objects of JSON, read as pydantic reads them: what they do not know is ignored."""

from __future__ import annotations

from inspect import cleandoc
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from mcp_functions.schemas import defaults, json_types

if TYPE_CHECKING:
    from collections.abc import Mapping


def read(cls: Any) -> json_types.Read | None:  # noqa: ANN401 - a class with attributes of its own
    """Read a dataclass or a TypedDict; None if only pydantic reads it."""
    try:
        hints = get_type_hints(cls, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError):
        return None  # pydantic says which name it is
    return _dataclass(cls, hints) if hasattr(cls, "__dataclass_fields__") else _typed_dict(cls, hints)


def _typed_dict(cls: Any, hints: Mapping[str, Any]) -> json_types.Read | None:  # noqa: ANN401 - as above
    more = getattr(cls, "__extra_items__", "NoExtraItems")
    if getattr(cls, "__closed__", None) or not str(more).endswith("NoExtraItems"):
        return None
    fields = {name: _qualified(hint, is_required=name in cls.__required_keys__) for name, hint in hints.items()}
    required = [name for name, (_hint, is_required) in fields.items() if is_required]
    return _object(cls, {name: hint for name, (hint, _is_required) in fields.items()}, required, {})


def _qualified(hint: Any, *, is_required: bool) -> tuple[Any, bool]:  # noqa: ANN401 - an annotation is any value
    """Take what stands inside Required, NotRequired and ReadOnly, of `typing` or `typing_extensions`."""
    qualifier = str(get_origin(hint)).rpartition(".")[2]
    if qualifier == "ReadOnly":
        return _qualified(get_args(hint)[0], is_required=is_required)
    if qualifier in ("Required", "NotRequired"):
        return _qualified(get_args(hint)[0], is_required=qualifier == "Required")
    if get_origin(hint) is Annotated:
        inner, is_required = _qualified(get_args(hint)[0], is_required=is_required)
        return Annotated[(inner, *get_args(hint)[1:])], is_required
    return hint, is_required


def _dataclass(cls: Any, hints: Mapping[str, Any]) -> json_types.Read | None:  # noqa: ANN401 - as above
    from dataclasses import MISSING, InitVar, fields  # noqa: PLC0415 - who made a dataclass has imported it

    every = fields(cls)
    if any(isinstance(hint, InitVar) for hint in hints.values()) or not all(field.init for field in every):
        return None
    given = {field.name: field.default for field in every if field.default is not MISSING}
    made = {field.name: field.default_factory for field in every if field.default_factory is not MISSING}
    required = [field.name for field in every if field.name not in given and field.name not in made]
    record = _object(cls, {field.name: hints[field.name] for field in every}, required, given)
    if record is None:
        return None
    schema, check = record

    def make(value: object) -> object:
        members = check(value)
        missing = {name: factory() for name, factory in made.items() if name not in members}
        members = {**given, **missing, **members}
        return _instance(cls, {field.name: members[field.name] for field in every})

    return schema, make


def _instance(cls: Any, members: dict[str, Any]) -> Any:  # noqa: ANN401 - as above
    """Make an instance as pydantic does: by its fields, frozen or not, and without its `__init__`."""
    instance = cls.__new__(cls)
    for name, member in members.items():
        object.__setattr__(instance, name, member)
    try:
        getattr(instance, "__post_init__", lambda: None)()
    except AssertionError as error:
        message = f"Assertion failed, {error}"
        raise ValueError(message) from None
    return instance


def _object(
    cls: Any,  # noqa: ANN401 - as above
    hints: Mapping[str, Any],
    required: list[str],
    given: Mapping[str, Any],
) -> json_types.Read | None:
    """Read the members of an object.

    Args:
        cls: what it is called after.
        hints: the type of each member.
        required: the members that must come.
        given: the defaults that are published.

    """
    members = {name: member for name, hint in hints.items() if (member := json_types.native(hint))}
    if len(members) < len(hints):
        return None

    def check(value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            message = "must be an object"
            raise ValueError(message)  # noqa: TRY004 - every refusal of a value is a ValueError
        if missing := [name for name in required if name not in value]:
            message = f"{missing[0]} is missing"
            raise ValueError(message)
        return {
            name: json_types.inside(name, read_, value[name]) for name, (_, read_) in members.items() if name in value
        }

    properties = {name: schema for name, (schema, _check) in members.items()}
    for name, default in given.items():
        properties[name] = {**properties[name], **defaults.published(default, members[name][1])}
    doc = {"description": cleandoc(cls.__doc__)} if _has_doc(cls) else {}
    return {"type": "object", "properties": properties, **({"required": required} if required else {}), **doc}, check


def _has_doc(cls: type) -> bool:
    """Tell a docstring of the author's from the one that `dataclass` makes of the signature."""
    return bool(cls.__doc__) and not str(cls.__doc__).startswith(f"{cls.__name__}(")
