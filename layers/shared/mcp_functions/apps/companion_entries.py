"""The entries of companions in `tools/list`: `book-form` for the form in a host, and `book-answer` for a model."""

from __future__ import annotations

from typing import Any

from mcp_functions.apps.channels import APP, MODEL

ANSWER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": ["accept", "decline", "cancel"]},
        "content": {"type": "object", "description": "The filled-in fields, if the user accepts"},
    },
    "required": ["action"],
}
MODEL_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "state": {"type": "string", "description": "As the pending result has it, unchanged"},
        "answers": {"type": "object", "description": "By the question's key", "additionalProperties": ANSWER_SCHEMA},
    },
    "required": ["state"],
}
FORM_SCHEMA: dict[str, Any] = {
    **MODEL_SCHEMA,
    "properties": {
        **MODEL_SCHEMA["properties"],
        "check": {"type": "boolean", "description": "Only ask whether the state can still be used"},
    },
}


def form_companion(tool: str) -> dict[str, Any]:
    """Write the entry of the companion that the form of a tool calls."""
    return {
        "name": f"{tool}{APP.suffix}",
        "description": f"Takes the answers that a person gives in the form of {tool}. Only the form calls it.",
        "inputSchema": FORM_SCHEMA,
        "_meta": {"ui": {"visibility": ["app"]}},
    }


def model_companion(tool: str) -> dict[str, Any]:
    """Write the entry of the companion that the model calls."""
    text = (
        f"Continue a call of {tool} that is not finished. Pass on what the user has answered, in the user's "
        f"place never, and only after {tool} has asked and the user has replied."
    )
    return {"name": f"{tool}{MODEL.suffix}", "description": text, "inputSchema": MODEL_SCHEMA}
