"""Values from schemas: arguments for a tool, answers to a question, and others that do not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FORMATS = {
    "email": "someone@example.com",
    "uri": "https://example.com/",
    "date": "2026-11-21",
    "date-time": "2026-11-21T12:00:00Z",
}
MAX_DEPTH = 6
UNFIT: dict[str, Any] = {"string": 7, "integer": "seven", "number": "seven", "boolean": "perhaps", "array": "one"}


def example(schema: Mapping[str, Any], text: str = "example", *, optional: bool = False) -> Any:  # noqa: ANN401 - JSON is any value
    """Write a value that a schema takes, as far as one can tell from its commonest words.

    Args:
        schema: JSON Schema.
        text: for strings that may be anything.
        optional: whether properties that are not required are given too.

    """
    return _example(schema, schema, text, optional, 0)


def responses(requests: Mapping[str, Any], text: str = "example") -> dict[str, Any]:
    """Answer every question of an `input_required` result."""
    return {key: response(request, text) for key, request in requests.items()}


def response(request: Mapping[str, Any], text: str = "example") -> dict[str, Any]:
    """Answer one question as a willing user would."""
    params = request.get("params") or {}
    match request.get("method"):
        case "sampling/createMessage":
            said = {"type": "text", "text": text}
            return {"role": "assistant", "content": said, "model": "model", "stopReason": "endTurn"}
        case "roots/list":
            return {"roots": [{"uri": "file:///example", "name": "example"}]}
    if params.get("mode") == "url":
        return {"action": "accept"}
    return {"action": "accept", "content": example(params.get("requestedSchema") or {}, text, optional=True)}


def others(schema: Mapping[str, Any], value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Write objects that differ from `value` in one place, and that the schema may take too."""
    properties = schema.get("properties") or {}
    for key in [*value, *(key for key in properties if key not in value)]:
        member = properties.get(key) or {}
        for other in _others(member, value.get(key, example(member) if member else None)):
            yield {**value, key: other}


def unfit(schema: Mapping[str, Any], text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Write contents that do not fit a form, each with what is wrong with it."""
    good: dict[str, Any] = example(schema, optional=True)
    required = schema.get("required") or []
    for key, member in (schema.get("properties") or {}).items():
        type_ = member.get("type")
        if "enum" in member or "oneOf" in member:
            yield f"{key} is none of the choices", {**good, key: text}
        elif type_ in UNFIT:
            yield f"{key} is no {type_}", {**good, key: UNFIT[type_]}
        if isinstance(most := member.get("maximum"), int | float):
            yield f"{key} is over the maximum", {**good, key: most + 1}
        if isinstance(longest := member.get("maxLength"), int) and longest < 10_000:  # noqa: PLR2004 - a bounded body
            yield f"{key} is too long", {**good, key: "x" * (longest + 1)}
        if key in required:
            yield f"{key} is missing", {other: value for other, value in good.items() if other != key}


def _example(schema: Any, root: Any, text: str, optional: bool, depth: int) -> Any:  # noqa: ANN401, FBT001 - JSON
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return text
    if isinstance(ref := schema.get("$ref"), str):
        return _example(_resolved(ref, root), root, text, optional, depth + 1)
    for word in ("const", "default"):
        if word in schema:
            return schema[word]
    for word in ("enum", "examples"):
        if isinstance(listed := schema.get(word), list) and listed:
            return listed[0]
    for word in ("oneOf", "anyOf", "allOf"):
        if isinstance(choices := schema.get(word), list) and choices:
            return _example(choices[0], root, text, optional, depth + 1)
    return _of_type(schema, root, text, optional, depth)


def _of_type(schema: dict[str, Any], root: Any, text: str, optional: bool, depth: int) -> Any:  # noqa: ANN401, FBT001
    type_ = schema.get("type")
    match type_[0] if isinstance(type_, list) and type_ else type_:
        case "integer" | "number":
            least = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
            return min(least, schema.get("maximum", least))
        case "boolean":
            return True
        case "null":
            return None
        case "array":
            items = _example(schema.get("items", {}), root, text, optional, depth + 1)
            return [items] * max(1, schema.get("minItems", 1))
        case "object":
            wanted = schema.get("properties") or {}
            required = schema.get("required") or []
            return {
                key: _example(member, root, text, optional, depth + 1)
                for key, member in wanted.items()
                if optional or key in required
            }
    return _string(schema, text)


def _string(schema: dict[str, Any], text: str) -> str:
    written: str = FORMATS.get(str(schema.get("format")), text)
    written += "x" * max(0, schema.get("minLength", 0) - len(written))
    longest: int = schema.get("maxLength", len(written))
    return written[:longest]


def _resolved(ref: str, root: Any) -> Any:  # noqa: ANN401 - JSON
    found = root
    for part in ref.removeprefix("#").split("/")[1:]:
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _others(schema: Mapping[str, Any], value: Any) -> Iterator[Any]:  # noqa: ANN401 - JSON
    if isinstance(choices := schema.get("enum"), list):
        yield from (choice for choice in choices if choice != value)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value - 1)
    elif isinstance(value, str):
        yield value + "x"
    elif isinstance(value, dict) and value:
        yield from others(schema, value)
    elif isinstance(value, dict):
        yield {"example": "example"}
