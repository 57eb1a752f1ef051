"""Fills in a form with the values of --answer: KEY=VALUE, KEY.FIELD=VALUE, or KEY={JSON}."""

import json
from collections.abc import Mapping

from mcp_functions.protocol.wire_types import JSONObject, JSONValue, Schema
from mcp_functions_harness.calling import values
from mcp_functions_harness.problems import Problem


def read(key: str, options: Mapping[str, str], schema: Schema) -> JSONObject:
    """Return the fields that the options give.

    Args:
        key: the question's key.
        options: the values of --answer, by KEY or KEY.FIELD; those of other keys are left out.
        schema: the form.

    Raises:
        Problem: an option names no field of the form, or its value does not fit.
    """
    content: JSONObject = {}
    for name, text in options.items():
        option_key, _, field = name.partition(".")
        if option_key == key:
            content |= _read_fields(key, field, text, schema.get("properties", {}))
    problem = values.find_problem(content, schema, schema)
    if problem:
        raise Problem(f"the answer to {key} does not fit: {problem}")
    return content


def _read_fields(key: str, field: str, text: str, fields: Mapping[str, Schema]) -> JSONObject:
    """Read one option. It names its field, or gives the only field, or is a JSON object of fields."""
    if field:
        return {field: _read_field(key, field, text, fields)}
    if len(fields) == 1 and not text.startswith("{"):
        only = next(iter(fields))
        return {only: _read_field(key, only, text, fields)}
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise Problem(f"the answer to {key} does not fit: give {key}.FIELD=VALUE for: {', '.join(fields)}")
    return content


def _read_field(key: str, field: str, text: str, fields: Mapping[str, Schema]) -> JSONValue:
    if field not in fields:
        raise Problem(f"the form has no {field}; it has: {', '.join(fields)}")
    try:
        return values.read(text, fields[field])
    except ValueError as error:
        raise Problem(f"the answer to {key} does not fit: {error}") from None
