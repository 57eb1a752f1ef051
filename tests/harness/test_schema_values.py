"""Values for the schema of a server, whose keywords may have any type."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_functions_harness.client import schema_values


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer", "exclusiveMinimum": 4}, 5),
        ({"type": "integer", "exclusiveMinimum": "4"}, 1),
        ({"type": "number", "minimum": None, "maximum": "9"}, 1),
        ({"type": "integer", "minimum": 3, "maximum": True}, 3),
        ({"type": "array", "minItems": "2", "items": {"type": "boolean"}}, [True]),
        ({"type": "string", "minLength": [], "maxLength": {}}, "example"),
        ({"type": "string", "maxLength": 2}, "ex"),
    ],
)
def test_a_limit_that_is_no_number_limits_nothing(schema: dict[str, Any], value: object) -> None:
    assert schema_values.example(schema) == value
