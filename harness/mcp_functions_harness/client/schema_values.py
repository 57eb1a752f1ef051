"""Makes values for JSON Schemas: arguments of a tool, and answers to a question.

Both the schema and the values come from the called server, so nothing is certain about their types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.wire_types import InputRequest, InputResponse, JSONValue, Schema

TEXT = "example"  # the value of a text for which the schema says nothing more
FORMATS = {
    "email": "someone@example.com",
    "uri": "https://example.com/",
    "date": "2026-11-21",
    "date-time": "2026-11-21T12:00:00Z",
}
MAX_DEPTH = 6  # levels of a schema that are followed


def example(schema: Schema | Mapping[str, Any], *, optional: bool = False) -> JSONValue:
    """Return a value that a schema accepts, as far as its most frequent keywords tell."""
    return _Example(schema, optional).value(schema)


def answer(request: InputRequest) -> InputResponse:
    """Return the answer of a user who accepts."""
    params = request.get("params") or {}
    if request.get("method") == "sampling/createMessage":
        content = {"type": "text", "text": "example"}
        return {"role": "assistant", "content": content, "model": "model", "stopReason": "endTurn"}
    if request.get("method") == "roots/list":
        return {"roots": [{"uri": "file:///example", "name": "example"}]}
    if params.get("mode") == "url":
        return {"action": "accept"}
    return {"action": "accept", "content": example(params.get("requestedSchema") or {}, optional=True)}


class _Example(NamedTuple):
    """Builds example values of one schema."""

    root: Mapping[str, Any]
    optional: bool

    def value(self, schema: object, depth: int = 0) -> JSONValue:
        """Return a value for a part of the schema."""
        if not isinstance(schema, dict) or depth > MAX_DEPTH:
            return TEXT
        ref = schema.get("$ref")
        if isinstance(ref, str):
            return self.value(self._resolve(ref), depth + 1)
        for keyword in ("const", "default"):
            if keyword in schema:
                return schema[keyword]
        for keyword in ("enum", "examples"):  # the server's list may be anything
            values = schema.get(keyword)
            if isinstance(values, list) and values:
                return values[0]
        for keyword in ("oneOf", "anyOf", "allOf"):
            choices = schema.get(keyword)
            if isinstance(choices, list) and choices:
                return self.value(choices[0], depth + 1)
        return self._of_type(schema, depth)

    def _of_type(self, schema: dict[str, Any], depth: int) -> object:
        type_ = schema.get("type")
        if isinstance(type_, list) and type_:
            type_ = type_[0]
        match type_:
            case "integer" | "number":
                minimum = _number(schema, "minimum", _number(schema, "exclusiveMinimum", 0) + 1)
                return min(minimum, _number(schema, "maximum", minimum))
            case "boolean":
                return True
            case "null":
                return None
            case "array":
                item = self.value(schema.get("items", {}), depth + 1)
                return [item] * max(1, int(_number(schema, "minItems", 1)))
            case "object":
                members = schema.get("properties") or {}
                required = schema.get("required") or []
                names = [name for name in members if self.optional or name in required]
                return {name: self.value(members[name], depth + 1) for name in names}
        text = FORMATS.get(str(schema.get("format")), TEXT).ljust(int(_number(schema, "minLength", 0)), "x")
        return text[: int(_number(schema, "maxLength", len(text)))]

    def _resolve(self, ref: str) -> object:
        """Return the part of the schema to which a $ref points, e.g. "#/$defs/Seat"; None if it is missing."""
        value: object = self.root
        for part in ref.removeprefix("#").split("/")[1:]:
            value = value.get(part) if isinstance(value, dict) else None
        return value


def _number(schema: dict[str, Any], keyword: str, default: float) -> float:
    """Return a limit of a schema; the default if it is missing, or is no number."""
    limit = schema.get(keyword)
    return limit if isinstance(limit, int | float) and not isinstance(limit, bool) else default
