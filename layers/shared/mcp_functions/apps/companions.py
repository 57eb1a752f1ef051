"""The second tools that take a user's answers, for clients that cannot show the questions of a tool.

    tools/call book {"city": "Rome"}                           ->  a result with a question and a state
    tools/call book-answer {"state": "ks1.…", "answers": {…}}  ->  the result of `book`, or its next question

Such a tool is the companion of the tool that asks. The form in the host calls `book-form`, and the model calls
`book-answer`. This module writes their entries for `tools/list`. `companion_calls` reads their calls.
"""

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
CHECK_SCHEMA = {"type": "boolean", "description": "Only ask whether the state can still be used"}
FORM_SCHEMA = {**MODEL_SCHEMA, "properties": {**MODEL_SCHEMA["properties"], "check": CHECK_SCHEMA}}


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
        f"Continue a call of {tool} that is not finished. Pass on what the user has answered, and never answer in the "
        f"user's place. Call this only after {tool} has asked and the user has replied."
    )
    return {"name": f"{tool}{MODEL.suffix}", "description": text, "inputSchema": MODEL_SCHEMA}
