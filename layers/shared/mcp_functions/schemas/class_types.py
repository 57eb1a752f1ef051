"""Classes as JSON sees them: enums, dates, datetimes, dataclasses and TypedDicts, read as pydantic reads them.

Only a function that uses such a class imports this module. What has a rule of its own is pydantic's (None says so).
"""

from __future__ import annotations

import re
from enum import Enum, Flag
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

from mcp_functions.schemas import json_types

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
TIME = r"(?:[01][0-9]|2[0-3]):[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?"
OFFSET = r"[Zz]|[-+\u2212](?:[01][0-9]|2[0-3]):?[0-5][0-9]"
OWN = ("__get_pydantic_core_schema__", "__get_pydantic_json_schema__", "__pydantic_config__", "__get_validators__")


def read(cls: type) -> tuple[dict[str, Any], Callable[[Any], Any]] | None:
    """Read a class, or say by None that it is pydantic's."""
    bases = cls.__mro__
    if any(hasattr(cls, name) for name in OWN) or any(
        json_types.is_pydantic(item) for base in bases for item in vars(base).values()
    ):
        return None
    if issubclass(cls, Enum):
        return _enum(cls)
    if (cls.__module__, cls.__name__) in DATES:
        return DATES[cls.__module__, cls.__name__]
    if not (hasattr(cls, "__dataclass_fields__") or hasattr(cls, "__required_keys__")):
        return None
    from mcp_functions.schemas import record_types  # noqa: PLC0415 - few functions need it

    return record_types.read(cls)


def _enum(cls: type[Enum]) -> tuple[dict[str, Any], Callable[[Any], Any]] | None:
    values = tuple(member.value for member in cls)
    mixed_in = cls._member_type_  # type: ignore[attr-defined]
    is_plain = all(type(value) in ((str, int) if mixed_in is object else (mixed_in,)) for value in values)
    has_rule = issubclass(cls, Flag) or cls._missing_.__func__ is not Enum._missing_.__func__  # type: ignore[attr-defined]
    literal = json_types.literal(values)
    if not values or not is_plain or has_rule or literal is None:
        return None
    schema, check = literal
    return {**schema, **_description(cls)}, lambda value: cls(check(value))


def _description(cls: type) -> dict[str, str]:
    return {"description": cleandoc(cls.__doc__)} if cls.__doc__ else {}


def _date(value: object) -> object:
    from datetime import date  # noqa: PLC0415 - whoever has a date has imported it

    if isinstance(value, str) and re.fullmatch(DATE, value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    message = "must be a date, such as 2026-07-28"
    raise ValueError(message)


def _datetime(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(f"{DATE}[Tt _]{TIME}(?:{OFFSET})?", value):
        try:
            return _moment(value)
        except ValueError:
            pass
    message = "must be a date and a time, such as 2026-07-28T09:30:00Z"
    raise ValueError(message)


def _moment(text: str) -> datetime:
    from datetime import datetime  # noqa: PLC0415 - whoever has a datetime has imported it

    return datetime.fromisoformat(text.replace("\u2212", "-").replace(",", ".").upper())


DATES: dict[tuple[str, str], tuple[dict[str, Any], Callable[[Any], Any]]] = {
    ("datetime", "date"): ({"type": "string", "format": "date"}, _date),
    ("datetime", "datetime"): ({"type": "string", "format": "date-time"}, _datetime),
}
