"""Limits of `annotated_types` (Ge, Gt, Le, Lt, MinLen, MaxLen and their groups), read by name: nothing is imported."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, get_origin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ORDER = {
    "Ge": ("ge", "minimum", operator.ge, "at least"),
    "Gt": ("gt", "exclusiveMinimum", operator.gt, "more than"),
    "Le": ("le", "maximum", operator.le, "at most"),
    "Lt": ("lt", "exclusiveMaximum", operator.lt, "less than"),
}
LENGTH = {
    "MinLen": ("min_length", "min", operator.ge, "at least"),
    "MaxLen": ("max_length", "max", operator.le, "at most"),
}
COUNTED = {str: ("Length", "characters"), list: ("Items", "items"), dict: ("Properties", "members")}


def limited(
    annotation: Any,  # noqa: ANN401 - an annotation is any value
    schema: dict[str, Any],
    check: Callable[[Any], Any],
    limits: Iterable[Any],
) -> tuple[dict[str, Any], Callable[[Any], Any]] | None:
    """Write limits into the schema of a type and add them to its check; None if they are not simple ones."""
    plain = get_origin(annotation) or annotation
    for limit in _flat(limits):
        rule = _rule(plain, limit)
        if rule is None or rule[0] in schema:
            return None
        keyword, number, is_within, reason = rule
        schema, check = {**schema, keyword: number}, _limited(check, is_within, reason)
    return schema, check


def _flat(limits: Iterable[Any]) -> Iterator[Any]:
    for limit in limits:
        if hasattr(limit, "__is_annotated_types_grouped_metadata__"):
            yield from _flat(limit)
        else:
            yield limit


def _rule(plain: Any, limit: object) -> tuple[str, Any, Callable[[Any], bool], str] | None:  # noqa: ANN401 - a type
    name = type(limit).__name__
    if plain in (int, float) and name in ORDER:
        attribute, keyword, compare, words = ORDER[name]
        number = getattr(limit, attribute)
        if type(number) is int or (plain is float and type(number) is float and abs(number) < float("inf")):
            return keyword, number, lambda value: compare(value, number), f"must be {words} {number}"
    if plain in COUNTED and name in LENGTH:
        attribute, prefix, compare, words = LENGTH[name]
        suffix, things = COUNTED[plain]
        number = getattr(limit, attribute)
        if type(number) is int and number >= 0:
            return (
                prefix + suffix,
                number,
                lambda value: compare(len(value), number),
                f"must have {words} {number} {things}",
            )
    return None


def _limited(check: Callable[[Any], Any], is_within: Callable[[Any], bool], reason: str) -> Callable[[Any], Any]:
    def limited_check(value: object) -> object:
        result = check(value)
        if not is_within(result):
            raise ValueError(reason)
        return result

    return limited_check
