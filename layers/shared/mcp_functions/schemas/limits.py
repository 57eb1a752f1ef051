"""Limits of numbers and lengths: `Between` and `Length`, or `annotated_types`, whose import would cost too much."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, TypeGuard

from mcp_functions.schemas.json_types import JsonType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class Limits:
    """Inclusive limits, `None` for no limit. pydantic reads them as a group of `annotated_types`."""

    __is_annotated_types_grouped_metadata__ = True
    names: tuple[str, str]
    classes: tuple[str, str]

    def __init__(self, least: float | None, most: float | None) -> None:
        """Limit a value."""
        self._limits = (least, most)

    def __iter__(self) -> Iterator[object]:
        """List the limits for pydantic, which has imported `annotated_types`."""
        import annotated_types  # noqa: PLC0415 - only pydantic needs it

        return (getattr(annotated_types, cls)(limit) for cls, limit in self.pairs(self.classes))

    def pairs(self, names: tuple[str, str]) -> Iterator[tuple[str, float]]:
        """Pair the limits, except None, with two names."""
        return ((name, limit) for name, limit in zip(names, self._limits, strict=True) if limit is not None)


class Between(Limits):
    """Limits a number: `Annotated[int, Between(1, 30)]`."""

    names = ("ge", "le")
    classes = ("Ge", "Le")


class Length(Limits):
    """Limits the characters of a string or the items of a list: `Annotated[str, Length(3, 200)]`."""

    names = ("min_length", "max_length")
    classes = ("MinLen", "MaxLen")


# By the attribute that holds a limit: the keyword of the schema, the comparison, and the words for people.
RULES: dict[str, tuple[str, Callable[[Any, Any], bool], str]] = {
    "ge": ("minimum", operator.ge, "at least"),
    "gt": ("exclusiveMinimum", operator.gt, "more than"),
    "le": ("maximum", operator.le, "at most"),
    "lt": ("exclusiveMaximum", operator.lt, "less than"),
    "min_length": ("min", operator.ge, "at least"),
    "max_length": ("max", operator.le, "at most"),
}
COUNTED: dict[object, tuple[str, str]] = {
    str: ("Length", "characters"),
    list: ("Items", "items"),
    dict: ("Properties", "members"),
}


def add_limits(cls: object, type_: JsonType, limits: Iterable[object]) -> JsonType | None:
    """Add limits to a type; None if only pydantic reads them."""
    for name, limit in _pairs(limits):
        limited = _add_limit(cls, type_, name, limit)
        if limited is None:
            return None
        type_ = limited
    return type_


def _pairs(limits: Iterable[Any]) -> Iterator[tuple[str, object]]:
    """List each limit with its attribute, which is "" for a limit without a rule."""
    for limit in limits:
        if isinstance(limit, Limits):
            yield from limit.pairs(limit.names)
        elif hasattr(limit, "__is_annotated_types_grouped_metadata__"):
            yield from _pairs(limit)
        else:
            name = next((name for name in RULES if hasattr(limit, name)), "")
            yield name, getattr(limit, name, None)


def _add_limit(cls: object, type_: JsonType, name: str, limit: object) -> JsonType | None:
    if name not in RULES:
        return None
    keyword, compare, words = RULES[name]
    is_of_length = name.endswith("length")
    if cls in (int, float) and not is_of_length and _is_number(cls, limit):
        reason = f"must be {words} {limit}"
        return _limited(type_, keyword, limit, lambda value: compare(value, limit), reason)
    if cls in COUNTED and is_of_length and type(limit) is int and limit >= 0:
        suffix, unit = COUNTED[cls]
        reason = f"must have {words} {limit} {unit}"
        return _limited(type_, keyword + suffix, limit, lambda value: compare(len(value), limit), reason)
    return None


def _is_number(cls: object, limit: object) -> TypeGuard[float]:
    """Return True for a limit that JSON can write, and that has the type of the value."""
    is_finite_float = type(limit) is float and abs(limit) < float("inf")
    return type(limit) is int or (cls is float and is_finite_float)


def _limited(
    type_: JsonType, keyword: str, limit: object, is_within: Callable[[Any], bool], reason: str
) -> JsonType | None:
    if keyword in type_.schema:
        return None

    def read(value: object) -> object:
        result = type_.read(value)
        if not is_within(result):
            raise ValueError(reason)
        return result

    return JsonType({**type_.schema, keyword: limit}, read)
