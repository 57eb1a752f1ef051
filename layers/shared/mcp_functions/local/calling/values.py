"""Reads a text of the user as a value of a JSON Schema: "yes" as true, "a, b" as a list, a title as its value."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.wire_types import JSONValue

BOOLEANS = {"true": True, "yes": True, "y": True, "false": False, "no": False, "n": False}
HINTS = {"boolean": "yes | no", "array": "several, with commas"}  # by type: what the user may type
MAX_REASON = 200  # characters of a reason that are shown


def read_valid(text: str, schema: Mapping[str, Any], root: Mapping[str, Any]) -> JSONValue:
    """Read a value that fits its schema.

    Args:
        text: the text that the user typed.
        schema: the JSON Schema of the value.
        root: the schema around it, which may have the definitions.

    Raises:
        ValueError: there is no text, or it is no such value; the message says why.

    """
    if not text:
        nothing = "an answer is needed"
        raise ValueError(nothing)
    value = read(text, schema)
    problem = find_problem(value, schema, root)
    if problem:
        raise ValueError(problem)
    return value


def read(text: str, schema: Mapping[str, Any]) -> JSONValue:
    """Read a value as the schema's type, without a check of the schema's other rules.

    Raises:
        ValueError: the text is no such value; the message says why.
    """
    options = choices(schema)
    if options:
        return _choice(text, options)
    kind = schema.get("type")
    if kind == "string":
        return text
    if kind == "boolean" and text.lower() in BOOLEANS:
        return BOOLEANS[text.lower()]
    if kind == "array" and not text.startswith("["):
        return [read(part.strip(), schema.get("items", {})) for part in text.split(",")]
    try:
        return json.loads(text)
    except ValueError:
        if kind is None:
            return text
        wrong = f"{text!r} is no {HINTS.get(kind, kind)}"
        raise ValueError(wrong) from None  # the user did not mean JSON, so its error would not help


def choices(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a choice, by the text that selects each: a title, or the value itself."""
    constants = [option for option in schema.get("oneOf") or schema.get("anyOf") or () if "const" in option]
    if constants:
        return {str(option.get("title", option["const"])): option["const"] for option in constants}
    values = schema.get("enum", ())
    labels = [str(label) for label in schema.get("enumNames", values)]
    return dict(zip(labels, values, strict=False))


def hint(schema: Mapping[str, Any]) -> str:
    """Return what a prompt says about a value: its choices, or its format or type; "" for any text."""
    options = choices(schema) or choices(schema.get("items", {}))
    if options:
        return " | ".join(options)
    kind = str(schema.get("format") or schema.get("type", ""))
    if kind == "string":
        return ""
    return HINTS.get(kind, kind)


def find_problem(value: object, schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """Return why a value does not fit its schema; "" if it does.

    Args:
        value: the value, as JSON has it.
        schema: the JSON Schema of the value.
        root: the schema around it, which may have the definitions.

    """
    definitions = {name: root[name] for name in ("$defs", "definitions") if name in root}
    whole = {**definitions, **schema}
    validator = Draft202012Validator(whole, format_checker=Draft202012Validator.FORMAT_CHECKER)
    error = best_match(validator.iter_errors(value))
    if error is None:
        return ""
    path = ".".join(map(str, error.absolute_path))
    reason = " ".join(error.message.split())[:MAX_REASON]
    return f"{path}: {reason}" if path else reason


def _choice(text: str, options: Mapping[str, Any]) -> JSONValue:
    for label, value in options.items():
        if text.lower() in {label.lower(), str(value).lower()}:
            return value
    wrong = f"{text!r} is none of: {', '.join(options)}"
    raise ValueError(wrong)
