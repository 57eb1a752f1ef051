"""Reads what a user types as the value of a JSON Schema.

the schema                what a user may type for it
a string                  any text
a boolean                 yes, no, true, false
a choice (enum, oneOf)    the value or its title
an array                  "a, b", or JSON
any other                 JSON
"""

import json
from collections.abc import Mapping

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from mcp_functions.protocol.wire_types import JSONValue, Schema

BOOLEANS = {"true": True, "yes": True, "y": True, "false": False, "no": False, "n": False}
# by the schema's type
EXPECTED_INPUT = {"boolean": "yes | no", "array": "several, with commas"}
# the most characters of jsonschema's reason, which may contain a whole value
MAX_REASON = 200


def read_valid(text: str, schema: Schema, root: Schema) -> JSONValue:
    """Read a value that fits its schema.

    Args:
        text: the text that the user typed.
        schema: the JSON Schema of the value.
        root: the whole schema, with the definitions that `schema` may refer to.

    Raises:
        ValueError: the text is empty, or does not fit; the message says why.
    """
    if not text:
        raise ValueError("an answer is needed")
    value = read(text, schema)
    problem = find_problem(value, schema, root)
    if problem:
        raise ValueError(problem)
    return value


def read(text: str, schema: Schema) -> JSONValue:
    """Read a value of the schema's type. The schema's other rules are not checked.

    Raises:
        ValueError: the text is no value of this type; the message says why.
    """
    values = choices(schema)
    if values:
        return _read_choice(text, values)
    value_type = schema.get("type")
    if value_type == "string":
        return text
    if value_type == "boolean" and text.lower() in BOOLEANS:
        return BOOLEANS[text.lower()]
    # [ begins JSON
    if value_type == "array" and not text.startswith("["):
        return [read(part.strip(), _items(schema)) for part in text.split(",")]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        # the schema allows any type, so a text that is not JSON is a string
        if value_type is None:
            return text
        # the user did not mean JSON, so its error would not help
        raise ValueError(f"{text!r} is no {EXPECTED_INPUT.get(str(value_type), value_type)}") from None


def choices(schema: Schema) -> dict[str, JSONValue]:
    """Return the values of a choice by their labels; {} if the schema is no choice.

    In MCP, `oneOf` (`anyOf` in a list's items) has a `const` and a `title` for each value. An `enum` has labels only in
    the older `enumNames`.
    """
    options = schema.get("oneOf") or schema.get("anyOf") or ()
    constants = [option for option in options if "const" in option]
    if constants:
        return {str(option.get("title", option["const"])): option["const"] for option in constants}
    values = schema.get("enum", ())
    labels = schema.get("enumNames", values)
    return {str(label): value for label, value in zip(labels, values, strict=False)}


def expected_input(schema: Schema) -> str:
    """Return what a user may type for a value: its choices, or its format or type; "" for any text."""
    values = choices(schema) or choices(_items(schema))
    if values:
        return " | ".join(values)
    format_or_type = str(schema.get("format") or schema.get("type", ""))
    if format_or_type == "string":
        return ""
    return EXPECTED_INPUT.get(format_or_type, format_or_type)


def find_problem(value: object, schema: Schema, root: Schema) -> str:
    """Return why a value does not fit its schema; "" if it does.

    Args:
        value: the value, as JSON has it.
        schema: the JSON Schema of the value.
        root: the whole schema, with the definitions that `schema` may refer to.
    """
    definitions = {keyword: value for keyword, value in root.items() if keyword in {"$defs", "definitions"}}
    validator = Draft202012Validator({**definitions, **schema}, format_checker=Draft202012Validator.FORMAT_CHECKER)
    error = best_match(validator.iter_errors(value))
    if error is None:
        return ""
    path = ".".join(map(str, error.absolute_path))
    in_one_line = " ".join(error.message.split())
    reason = in_one_line[:MAX_REASON]
    return f"{path}: {reason}" if path else reason


def _items(schema: Schema) -> Schema:
    """Return the schema of an array's items; {} if it allows any."""
    items = schema.get("items")
    return items if isinstance(items, dict) else {}


def _read_choice(text: str, values: Mapping[str, JSONValue]) -> JSONValue:
    """Find the value whose label, or which itself, is the text; upper and lower case are equal."""
    for label, value in values.items():
        if text.lower() in {label.lower(), str(value).lower()}:
            return value
    raise ValueError(f"{text!r} is none of: {', '.join(values)}")
