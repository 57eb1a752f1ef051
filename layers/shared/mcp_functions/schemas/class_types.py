"""Enums, dates, dataclasses and TypedDicts, read as pydantic reads them.

Only a function that uses a class imports this module. A member that a dataclass or a TypedDict does not declare is
ignored, as with pydantic. Some classes have rules of their own, for example a `@field_validator`, a Flag or an InitVar.
They are left to pydantic, so that no rule has to be written twice.
"""

from __future__ import annotations

import re
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from mcp_functions.schemas.json_types import JsonType, NeedsPydantic, check_object, is_pydantics, read_choice, read_part
from mcp_functions.schemas.parameters import docstring, published_default
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from mcp_functions.schemas.json_types import ReadType

DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
TIME = r"(?:[01][0-9]|2[0-3]):[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?"
OFFSET = r"[Zz]|[-+\u2212](?:[01][0-9]|2[0-3]):?[0-5][0-9]"
DATE_TIME = f"{DATE}[Tt _]{TIME}(?:{OFFSET})?"


class Moment(NamedTuple):
    """A class of `datetime` as text."""

    format: str  # the format in a schema
    pattern: str  # the texts that are accepted; pydantic accepts them, too
    reason: str  # why a value is refused


MOMENTS = {
    "date": Moment("date", DATE, "must be a date, such as 2026-07-28"),
    "datetime": Moment("date-time", DATE_TIME, "must be a date and a time, such as 2026-07-28T09:30:00Z"),
}
# A class with one of these attributes has a rule for pydantic. Other rules have any name, such as a `@field_validator`:
# `is_pydantics` recognizes them by their value.
HOOKS = ("__get_pydantic_core_schema__", "__get_pydantic_json_schema__", "__pydantic_config__", "__get_validators__")


def read_class(cls: type[Any], read_type: ReadType) -> JsonType:
    """Read an Enum, a class of `datetime`, a dataclass or a TypedDict.

    Raises:
        NeedsPydantic: the class is another one, or it or one of its members has a rule that only pydantic follows.
    """
    for base in cls.__mro__:  # a rule may be inherited
        for name, attribute in vars(base).items():
            if name in HOOKS or is_pydantics(attribute):
                raise NeedsPydantic
    if issubclass(cls, Enum):
        return _read_enum(cls)
    if cls.__module__ == "datetime" and cls.__name__ in MOMENTS:
        return _read_moment(cls)
    if "__dataclass_fields__" in vars(cls):  # a subclass without the decorator has them from its base
        return _read_dataclass(cls, read_type)
    if hasattr(cls, "__required_keys__"):  # a TypedDict, of `typing` or of `typing_extensions`
        return _read_typed_dict(cls, read_type)
    raise NeedsPydantic


def _read_enum(cls: type[Enum]) -> JsonType:
    values = tuple(member.value for member in cls)
    has_plain_values = bool(values) and all(type(value) in (str, int) for value in values)
    # A class with its own `_missing_` accepts more values than those of its members. A Flag, for example, adds them up.
    overrides_missing = cls._missing_.__func__ is not Enum._missing_.__func__  # type: ignore[attr-defined]
    if overrides_missing or not has_plain_values:
        raise NeedsPydantic
    choice = read_choice(values)
    description = {"description": docstring(cls)} if cls.__doc__ else {}
    return JsonType({**choice.schema, **description}, lambda value: cls(choice.read(value)))


def _read_moment(cls: type[date]) -> JsonType:
    moment = MOMENTS[cls.__name__]

    def read(value: object) -> date:
        if isinstance(value, str) and re.fullmatch(moment.pattern, value):
            # `fromisoformat` knows neither the minus sign U+2212 nor a decimal comma, which pydantic accepts.
            text = value.replace("\u2212", "-").replace(",", ".").upper()
            with suppress(ValueError):  # a day that no month has
                return cls.fromisoformat(text)
        raise ValueError(moment.reason)

    return JsonType({"type": "string", "format": moment.format}, read)


def _read_dataclass(cls: type[Any], read_type: ReadType) -> JsonType:
    from dataclasses import MISSING, InitVar, fields  # noqa: PLC0415 - the author of a dataclass has imported it

    hints = get_type_hints(cls, include_extras=True)
    declared = fields(cls)
    # `__init__` must take the fields and nothing else, because `read` calls it with them.
    takes_more_than_fields = any(isinstance(hint, InitVar) for hint in hints.values())
    takes_all_fields = cls.__dataclass_params__.init and all(field.init for field in declared)
    if takes_more_than_fields or not takes_all_fields:
        raise NeedsPydantic
    types: dict[str, JsonType] = {}
    required: list[str] = []
    for field in declared:
        type_ = read_type(hints[field.name])
        if field.default is not MISSING:
            type_ = type_.with_keywords(published_default(field.default, type_.read))
        elif field.default_factory is MISSING:
            required.append(field.name)
        types[field.name] = type_
    members = _object_of(cls, types, required)

    def read(value: object) -> object:
        try:
            return cls(**members.read(value))
        except AssertionError as error:  # an author's `__post_init__` raised it
            message = f"Assertion failed, {error}"
            raise ValueError(message) from None

    return JsonType(members.schema, read)


def _read_typed_dict(cls: type[Any], read_type: ReadType) -> JsonType:
    if getattr(cls, "__closed__", None):
        raise NeedsPydantic
    types: dict[str, JsonType] = {}
    required: list[str] = []
    for name, hint in get_type_hints(cls, include_extras=True).items():
        plain_hint, is_required = _unqualified(hint, is_required=name in cls.__required_keys__)
        types[name] = read_type(plain_hint)
        if is_required:
            required.append(name)
    return _object_of(cls, types, required)


def _unqualified(hint: object, *, is_required: bool) -> tuple[object, bool]:
    """Remove Required, NotRequired and ReadOnly from a hint, and tell whether the member is required."""
    qualifier = str(get_origin(hint)).rpartition(".")[2]  # its name: `typing` and `typing_extensions` have one each
    args = get_args(hint)
    if qualifier == "ReadOnly":
        return _unqualified(args[0], is_required=is_required)
    if qualifier in ("Required", "NotRequired"):
        return _unqualified(args[0], is_required=qualifier == "Required")
    if get_origin(hint) is Annotated:
        inner, is_required = _unqualified(args[0], is_required=is_required)
        return Annotated[(inner, *args[1:])], is_required
    return hint, is_required


def _object_of(cls: type, types: Mapping[str, JsonType], required: list[str]) -> JsonType:
    """Make the type of an object from the types of its members."""

    def read(value: object) -> dict[str, object]:
        sent = check_object(value)
        for name in required:
            if name not in sent:
                message = f"{name} is missing"
                raise ValueError(message)
        return {name: read_part(name, type_, sent[name]) for name, type_ in types.items() if name in sent}

    schema: dict[str, Any] = {"type": "object", "properties": {name: type_.schema for name, type_ in types.items()}}
    if required:
        schema["required"] = required
    # `dataclass` writes the signature as a docstring where the author wrote none.
    if cls.__doc__ and not cls.__doc__.startswith(f"{cls.__name__}("):
        schema["description"] = docstring(cls)
    return JsonType(schema, read)
