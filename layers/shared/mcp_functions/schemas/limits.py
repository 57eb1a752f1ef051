"""Limits of numbers and lengths: `Between` and `Length`, or `annotated_types`, whose import would cost too much."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from mcp_functions.schemas.json_types import JsonType, NeedsPydantic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class Between:
    """Limits a number, both ends included: `Annotated[int, Between(1, 30)]`. `None` is no limit."""

    __is_annotated_types_grouped_metadata__ = True  # pydantic lists its members

    def __init__(self, least: float | None, most: float | None) -> None:
        """Limit a number, under the names of `annotated_types`."""
        self.ge = least
        self.le = most

    def __iter__(self) -> Iterator[object]:
        """List the limits for pydantic, which has imported `annotated_types`."""
        from annotated_types import Interval  # noqa: PLC0415 - only pydantic needs it

        return iter(Interval(ge=self.ge, le=self.le))


class Length:
    """Limits the characters of a string or the items of a list: `Annotated[str, Length(3, 200)]`."""

    __is_annotated_types_grouped_metadata__ = True

    def __init__(self, least: int | None, most: int | None) -> None:
        """Limit a length, under the names of `annotated_types`."""
        self.min_length = least
        self.max_length = most

    def __iter__(self) -> Iterator[object]:
        """List the limits for pydantic, which has imported `annotated_types`."""
        from annotated_types import Len  # noqa: PLC0415 - only pydantic needs it

        return iter(Len(self.min_length or 0, self.max_length))


# By the attribute that holds a limit: the keyword of the schema, the comparison, and the words for people.
NUMBERS: dict[str, tuple[str, Callable[[Any, Any], bool], str]] = {
    "ge": ("minimum", operator.ge, "at least"),
    "gt": ("exclusiveMinimum", operator.gt, "more than"),
    "le": ("maximum", operator.le, "at most"),
    "lt": ("exclusiveMaximum", operator.lt, "less than"),
}
LENGTHS: dict[str, tuple[str, Callable[[Any, Any], bool], str]] = {
    "min_length": ("min", operator.ge, "at least"),
    "max_length": ("max", operator.le, "at most"),
}
COUNTED: dict[object, tuple[str, str]] = {
    str: ("Length", "characters"),
    list: ("Items", "items"),
    dict: ("Properties", "members"),
}


def add_limits(cls: object, type_: JsonType, limits: Iterable[object]) -> JsonType:
    """Add limits to the type that was read from a class.

    Raises:
        NeedsPydantic: only pydantic reads one of the limits.
    """
    for item in limits:
        named = {name: getattr(item, name, None) for name in (*NUMBERS, *LENGTHS)}
        found = {name: limit for name, limit in named.items() if limit is not None}
        if not found:
            raise NeedsPydantic
        for name, limit in found.items():
            type_ = _add_limit(cls, type_, name, limit)
    return type_


def _add_limit(cls: object, type_: JsonType, name: str, limit: float) -> JsonType:
    if name in NUMBERS and cls in (int, float):
        keyword, compare, words = NUMBERS[name]
        return _limited(type_, keyword, limit, lambda value: compare(value, limit), f"must be {words} {limit}")
    if name in LENGTHS and cls in COUNTED:
        keyword, compare, words = LENGTHS[name]
        suffix, unit = COUNTED[cls]
        reason = f"must have {words} {limit} {unit}"
        return _limited(type_, keyword + suffix, limit, lambda value: compare(len(value), limit), reason)
    raise NeedsPydantic


def _limited(type_: JsonType, keyword: str, limit: float, is_within: Callable[[Any], bool], reason: str) -> JsonType:
    if keyword in type_.schema:
        raise NeedsPydantic

    def read(value: object) -> object:
        result = type_.read(value)
        if not is_within(result):
            raise ValueError(reason)
        return result

    return JsonType({**type_.schema, keyword: limit}, read)
