"""A tool whose author wrote its schema by hand, with everything JSON Schema 2020-12 allows."""

from typing import Any

from mcp_functions import serve, tool

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@tool(input_schema=SCHEMA)
def json_schema_2020_12_tool(contact: dict[str, Any]) -> str:
    """Accept a contact with the address that its preferred way needs."""
    return f"{contact.get('name', 'Somebody')} can be reached."


handler = serve(json_schema_2020_12_tool)
