"""Enums, dates, dataclasses and TypedDicts, read as pydantic reads them.

    @dataclass
    class Stay:
        since: date
        nights: int = 1

    schema    {"type": "object", "properties": {"since": …, "nights": …}, "required": ["since"]}
    sent      {"since": "2026-07-28", "breakfast": True}
    read      Stay(since=date(2026, 7, 28))

A member that the class does not declare is ignored.

The import of pydantic takes most of a cold start, so the classes that authors use most are read here. A property test
checks that both ways agree. For a class with a rule for pydantic, such as a `@field_validator`, `read_class` raises
`NeedsPydantic`, and `type_reader` lets pydantic read it.
"""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from mcp_functions.protocol.plain_values import to_json
from mcp_functions.schemas import json_types
from mcp_functions.schemas.checking import FORMATS, at_place
from mcp_functions.schemas.json_types import JsonType, NeedsPydantic, needs_pydantic
from mcp_functions.schemas.parameters import docstring, published_default

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date
    from typing import TypeAlias

    from mcp_functions.protocol.wire_types import Schema

    TypeReader: TypeAlias = Callable[[object], JsonType]

# The attributes in which a class keeps a rule for pydantic.
RULES = {"__get_pydantic_core_schema__", "__get_pydantic_json_schema__", "__pydantic_config__", "__get_validators__"}


def read_class(cls: type[Any], read_member: TypeReader) -> JsonType:
    """Read an Enum, `date`, `datetime`, a dataclass or a TypedDict; `read_member` reads the types of its members.

    Raise NeedsPydantic if it is another class, or pydantic must read the class or one of its members.
    """
    if _has_rules(cls):
        raise NeedsPydantic
    if issubclass(cls, Enum):
        return _enum_type(cls)
    if cls.__module__ == "datetime" and cls.__name__ == "date":
        return _date_type(cls, "date")
    if cls.__module__ == "datetime" and cls.__name__ == "datetime":
        return _date_type(cls, "date-time")
    # A subclass without the decorator inherits this attribute, but its own fields are not in it.
    if "__dataclass_fields__" in vars(cls):
        return _dataclass_type(cls, read_member)
    if hasattr(cls, "__required_keys__"):  # a TypedDict, of `typing` or of `typing_extensions`
        return _typed_dict_type(cls, read_member)
    raise NeedsPydantic


def _has_rules(cls: type) -> bool:
    """Tell whether a class, or one from which it inherits, has a rule that only pydantic follows."""
    attributes = [attribute for base in cls.__mro__ for attribute in vars(base).items()]
    # `@field_validator`, for example, puts an object of pydantic in the place of the author's method.
    return any(name in RULES or needs_pydantic(value) for name, value in attributes)


def _enum_type(cls: type[Enum]) -> JsonType:
    # An Enum with its own `_missing_` accepts more values than its members have. A Flag, for example, accepts sums.
    if any("_missing_" in vars(base) for base in cls.__mro__ if base is not Enum):
        raise NeedsPydantic
    values = tuple(member.value for member in cls)
    if not values or {type(value) for value in values} - {str, int}:
        raise NeedsPydantic
    choice = json_types.choice_type(tuple(cls))
    return _described(choice, cls)


def _date_type(cls: type[date], schema_format: str) -> JsonType:
    """Make the type of `date` or `datetime`: text of this format."""

    def convert(value: str) -> date:
        # pydantic accepts the minus sign U+2212 and a decimal comma, but `fromisoformat` does not.
        text = value.replace("\u2212", "-").replace(",", ".").upper()
        with suppress(ValueError):  # for example a 30th of February
            return cls.fromisoformat(text)
        raise ValueError(FORMATS[schema_format][1])

    return JsonType({"type": "string", "format": schema_format}, convert)


def _dataclass_type(cls: type[Any], read_member: TypeReader) -> JsonType:
    types, required = _read_fields(cls, read_member)
    object_type = _object_of(cls, types, required)

    def convert(value: object) -> object:
        try:
            return cls(**object_type.convert(value))
        except AssertionError as error:  # an author's `__post_init__` raised it
            raise ValueError(f"Assertion failed, {error}") from None

    def write(value: object) -> object:
        instance = value if isinstance(value, cls) else convert(object_type.write(value))
        return object_type.write({name: getattr(instance, name) for name in types})

    return JsonType(object_type.schema, convert, write)


def _read_fields(cls: type[Any], read_member: TypeReader) -> tuple[dict[str, JsonType], list[str]]:
    """Return the types of the fields of a dataclass, and the names of those that are required."""
    from dataclasses import MISSING, InitVar, fields

    hints = get_type_hints(cls, include_extras=True)
    # `convert` calls `__init__` with a value for each field. So `__init__` must take each field, and no InitVar.
    takes_all_fields = cls.__dataclass_params__.init and all(field.init for field in fields(cls))
    has_init_var = any(isinstance(hint, InitVar) for hint in hints.values())
    if has_init_var or not takes_all_fields:
        raise NeedsPydantic
    types: dict[str, JsonType] = {}
    required: list[str] = []
    for field in fields(cls):
        type_ = read_member(hints[field.name])
        if field.default is not MISSING:
            type_ = type_.with_keywords(published_default(field.default, type_))
        elif field.default_factory is MISSING:
            required.append(field.name)
        types[field.name] = type_
    return types, required


def _typed_dict_type(cls: type[Any], read_member: TypeReader) -> JsonType:
    # A closed TypedDict refuses members that it does not declare, and one with `extra_items` keeps them.
    keeps_others = not str(getattr(cls, "__extra_items__", "NoExtraItems")).endswith("NoExtraItems")
    if keeps_others or getattr(cls, "__closed__", None):
        raise NeedsPydantic
    types: dict[str, JsonType] = {}
    required: list[str] = []
    for name, hint in get_type_hints(cls, include_extras=True).items():
        type_hint, is_required = _unqualified(hint, is_required=name in cls.__required_keys__)
        types[name] = read_member(type_hint)
        if is_required:
            required.append(name)
    return _object_of(cls, types, required)


def _unqualified(hint: object, *, is_required: bool) -> tuple[object, bool]:
    """Split `ReadOnly[NotRequired[int]]` into `int` and whether it is required, which a hint need not say."""
    if get_origin(hint) is Annotated:
        inner, *metadata = get_args(hint)
        inner, is_required = _unqualified(inner, is_required=is_required)
        return Annotated[(inner, *metadata)], is_required
    # A qualifier is compared by its name, because `typing` and `typing_extensions` have one object each.
    qualifier = str(get_origin(hint)).rpartition(".")[2]
    if qualifier not in ("Required", "NotRequired", "ReadOnly"):
        return hint, is_required
    if qualifier != "ReadOnly":
        is_required = qualifier == "Required"
    return _unqualified(get_args(hint)[0], is_required=is_required)


def _object_of(cls: type, types: Mapping[str, JsonType], required: list[str]) -> JsonType:
    """Make the type of an object from the types of its members."""

    def convert(value: dict[str, object]) -> dict[str, object]:
        return {name: at_place(name, types[name].convert, part) for name, part in value.items() if name in types}

    def write(value: object) -> object:
        given = value if isinstance(value, dict) else to_json(value)
        if not isinstance(given, dict):
            return given
        return {name: at_place(name, type_.write, given[name]) for name, type_ in types.items() if name in given}

    schema: Schema = {"type": "object", "properties": {name: type_.schema for name, type_ in types.items()}}
    if required:
        schema["required"] = required
    return _described(JsonType(schema, convert, write), cls)


def _described(type_: JsonType, cls: type) -> JsonType:
    """Add the docstring of a class as its description; `dataclass` writes the signature as one where there is none."""
    text = docstring(cls)
    if text is None or text.startswith(f"{cls.__name__}("):
        return type_
    return type_.with_keywords({"description": text})
