"""Makes values that differ from those that a server expects, and values that do not fit its schemas.

Both the schema and the values come from the attacked server, so nothing is certain about their types.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mcp_functions_harness.client import schema_values

MAX_LENGTH = 10_000  # the longest `maxLength` for which a text that is too long is made
# type -> a value of another type
MISFITS: dict[str, Any] = {"string": 7, "integer": "seven", "number": "seven", "boolean": "perhaps", "array": "one"}


def answers(requests: Mapping[str, Any]) -> dict[str, Any]:
    """Return answers to all questions of an `input_required` result."""
    return {key: schema_values.answer(request) for key, request in requests.items()}


def others(schema: Mapping[str, Any], value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield objects that differ from `value` in one member, and that the schema may accept too."""
    properties = schema.get("properties") or {}
    for key in dict.fromkeys([*value, *properties]):  # each key once, in this order
        member = properties.get(key) or {}
        old = value.get(key, schema_values.example(member) if member else None)
        choices = member.get("enum")
        if not isinstance(choices, list):
            choices = [edited for _path, edited in edits(old)]
        for choice in choices:
            if choice != old:
                yield {**value, key: choice}


def edits(value: object, path: str = "the whole") -> Iterator[tuple[str, Any]]:
    """Yield copies of a JSON value with one scalar changed: the place of the change, and the copy."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from ((where, {**value, key: other}) for where, other in edits(member, str(key)))
        if not value:
            yield path, {"example": "example"}
    elif isinstance(value, list):
        for at, member in enumerate(value):
            for where, other in edits(member, f"{path}[{at}]"):
                yield where, [*value[:at], other, *value[at + 1 :]]
    elif isinstance(value, bool):
        yield path, not value
    elif isinstance(value, int | float):
        yield path, value + 1
        yield path, value - 1
    elif isinstance(value, str):
        yield path, value + "x"


def misfits(schema: Mapping[str, Any], text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield contents that do not fit a form: a description, and the content.

    Args:
        schema: the form's schema.
        text: a text that no field has among its choices.
    """
    content: dict[str, Any] = schema_values.example(schema, optional=True)
    for key, member in (schema.get("properties") or {}).items():
        type_ = member.get("type")
        maximum = member.get("maximum")
        max_length = member.get("maxLength")
        if "enum" in member or "oneOf" in member:
            yield f"{key} is none of the choices", {**content, key: text}
        elif type_ in MISFITS:
            yield f"{key} is no {type_}", {**content, key: MISFITS[type_]}
        if isinstance(maximum, int | float):
            yield f"{key} is over the maximum", {**content, key: maximum + 1}
        if isinstance(max_length, int) and max_length < MAX_LENGTH:
            yield f"{key} is too long", {**content, key: "x" * (max_length + 1)}
        if key in (schema.get("required") or []):
            yield f"{key} is missing", {other: value for other, value in content.items() if other != key}
