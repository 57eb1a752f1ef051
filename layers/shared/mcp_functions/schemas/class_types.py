"""Enums, dates and datetimes, read as pydantic reads them.

Only a function that uses a class imports this module. A class with a special rule is left to pydantic.
"""

from __future__ import annotations

import re
from enum import Enum, Flag
from typing import TYPE_CHECKING

from mcp_functions.schemas.json_types import JsonType, needs_pydantic, read_choice
from mcp_functions.schemas.parameters import docstring

if TYPE_CHECKING:
    from datetime import date, datetime

    from mcp_functions.schemas.json_types import ReadType

DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
TIME = r"(?:[01][0-9]|2[0-3]):[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?"
OFFSET = r"[Zz]|[-+\u2212](?:[01][0-9]|2[0-3]):?[0-5][0-9]"
HOOKS = ("__get_pydantic_core_schema__", "__get_pydantic_json_schema__", "__pydantic_config__", "__get_validators__")


def read_class(cls: type, read_type: ReadType) -> JsonType | None:
    """Read a class; None if only pydantic reads it."""
    if any(hasattr(cls, name) for name in HOOKS):
        return None
    if any(needs_pydantic(item) for base in cls.__mro__ for item in vars(base).values()):
        return None
    if issubclass(cls, Enum):
        return _read_enum(cls)
    if cls.__module__ == "datetime":
        return DATES.get(cls.__name__)
    if not (hasattr(cls, "__dataclass_fields__") or hasattr(cls, "__required_keys__")):
        return None
    from mcp_functions.schemas import record_types  # noqa: PLC0415 - few functions have a record

    return record_types.read_record(cls, read_type)


def _read_enum(cls: type[Enum]) -> JsonType | None:
    values = tuple(member.value for member in cls)
    has_rule = issubclass(cls, Flag) or cls._missing_.__func__ is not Enum._missing_.__func__  # type: ignore[attr-defined]
    if has_rule or not values or not _are_plain(cls, values):
        return None
    choice = read_choice(values)
    if choice is None:
        return None
    description = {"description": docstring(cls)} if cls.__doc__ else {}
    return JsonType({**choice.schema, **description}, lambda value: cls(choice.read(value)))


def _are_plain(cls: type[Enum], values: tuple[object, ...]) -> bool:
    mixed_in = cls._member_type_  # type: ignore[attr-defined]
    allowed = (str, int) if mixed_in is object else (mixed_in,)
    return all(type(value) in allowed for value in values)


def _read_date(value: object) -> date:
    from datetime import date  # noqa: PLC0415 - its author has imported it

    if isinstance(value, str) and re.fullmatch(DATE, value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    message = "must be a date, such as 2026-07-28"
    raise ValueError(message)


def _read_datetime(value: object) -> datetime:
    from datetime import datetime  # noqa: PLC0415 - its author has imported it

    if isinstance(value, str) and re.fullmatch(f"{DATE}[Tt _]{TIME}(?:{OFFSET})?", value):
        try:
            return datetime.fromisoformat(value.replace("\u2212", "-").replace(",", ".").upper())
        except ValueError:
            pass
    message = "must be a date and a time, such as 2026-07-28T09:30:00Z"
    raise ValueError(message)


DATES = {
    "date": JsonType({"type": "string", "format": "date"}, _read_date),
    "datetime": JsonType({"type": "string", "format": "date-time"}, _read_datetime),
}
