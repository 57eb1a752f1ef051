"""Conditions of DynamoDB: whether the stored item allows a write.

    attribute_not_exists(#key) OR #expires < :now

Terms may be joined by OR; nothing else is supported.
"""

import re
from collections.abc import Callable, Mapping
from operator import eq, le, lt
from typing import Any, TypeAlias

from mcp_functions.aws.errors import ClientError

Attribute: TypeAlias = dict[str, str]  # as in {"N": "7"}
Item: TypeAlias = dict[str, Attribute]

TERM = re.compile(r"attribute_not_exists\((?P<absent>[#\w]+)\)|(?P<name>[#\w]+) (?P<comparison>=|<=|<) (?P<value>:\w+)")
PLACEHOLDER = re.compile(r"[#:]\w+")
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "<=": le, "<": lt}
MEMBERS = {"ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"}


def invalid(message: str) -> ClientError:
    """Return DynamoDB's error for a wrong request. The exception has AWS's code; its cause has the message."""
    error = ClientError("ValidationException")
    error.__cause__ = ValueError(message)
    return error


def holds(item: Item, condition: Mapping[str, Any]) -> bool:
    """Tell whether the condition of a request holds for the stored item; either is {} if it is missing.

    Raises:
        ClientError: DynamoDB would refuse the condition, or it is not supported here.
    """
    if not condition:
        return True
    if condition.keys() != MEMBERS:
        raise invalid(f"not supported: {', '.join(sorted(condition.keys() ^ MEMBERS))}")
    expression = condition["ConditionExpression"]
    names, values = condition["ExpressionAttributeNames"], condition["ExpressionAttributeValues"]
    used = set(PLACEHOLDER.findall(expression))
    defined = {*names, *values}
    if used != defined:
        raise invalid(f"unused or undefined in expressions: {', '.join(sorted(used ^ defined))}")
    return any(_term_holds(item, term, names, values) for term in expression.split(" OR "))


def _term_holds(item: Item, term: str, names: Mapping[str, str], values: Mapping[str, Attribute]) -> bool:
    parsed = TERM.fullmatch(term)
    if parsed is None:
        raise invalid(f"not understood: {term}")
    name = parsed["absent"] or parsed["name"]
    if not name.startswith("#"):
        raise invalid(f"{name} may be one of DynamoDB's own words: write #{name}")
    attribute = item.get(names[name])
    if parsed["absent"]:
        return attribute is None
    value = values[parsed["value"]]
    # A comparison with a missing attribute, or with one of another type, is false.
    if attribute is None or attribute.keys() != value.keys():
        return False
    return COMPARISONS[parsed["comparison"]](_value(attribute), _value(value))


def _value(attribute: Attribute) -> str | int:
    ((kind, value),) = attribute.items()
    return int(value) if kind == "N" else value
