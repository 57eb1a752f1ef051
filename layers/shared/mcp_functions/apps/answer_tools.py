"""The answer tools: second tools that take a user's answers, for clients that cannot show the questions of a tool.

    tools/call book {"city": "Rome"}                           ->  a result with a question and a state
    tools/call book-answer {"state": "ks1.…", "answers": {…}}  ->  the result of `book`, or its next question

A tool has at most two of them:

    FORM     `book-form`, which a form calls. The host of the client shows the form (MCP Apps).
    MODEL    `book-answer`, which the model calls after it has asked in the chat. The author must allow that for each
             question: @tool(ask_in_words=["seat"]).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import ListEntry, Schema


from mcp_functions.tuples import NamedTuple


class AnswerTool(NamedTuple):
    """One of the two answer tools."""

    suffix: str  # of its name: "book-form" takes the answers for "book"
    answered_by: str  # who gives the answers, for the audit and the log
    # The state, which is the sealed record of the call, must not open for the other answer tool. So each one has its
    # own label, which is part of the encryption, and its own method, which is in the state. An author's own encryption
    # has no labels.
    label: bytes
    method: str


FORM = AnswerTool(suffix="-form", answered_by="app", label=b"ks1/app", method="apps/answer")
MODEL = AnswerTool(suffix="-answer", answered_by="model", label=b"ks1/words", method="words/answer")

ANSWER_SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": ["accept", "decline", "cancel"]},
        "content": {"type": "object", "description": "The filled-in fields, if the user accepts"},
    },
    "required": ["action"],
}
MODEL_SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "state": {"type": "string", "description": "As the pending result has it, unchanged"},
        "answers": {"type": "object", "description": "By the question's key", "additionalProperties": ANSWER_SCHEMA},
    },
    "required": ["state"],
}
CHECK_SCHEMA: Schema = {"type": "boolean", "description": "Only ask whether the state can still be used"}
FORM_SCHEMA: Schema = {**MODEL_SCHEMA, "properties": {**MODEL_SCHEMA["properties"], "check": CHECK_SCHEMA}}


def describe_form_tool(tool: str) -> ListEntry:
    """Write the entry of `<tool>-form` in `tools/list`."""
    return {
        "name": f"{tool}{FORM.suffix}",
        "description": f"Takes the answers that a person gives in the form of {tool}. Only the form calls it.",
        "inputSchema": FORM_SCHEMA,
        "_meta": {"ui": {"visibility": ["app"]}},
    }


def describe_model_tool(tool: str) -> ListEntry:
    """Write the entry of `<tool>-answer` in `tools/list`."""
    text = (
        f"Continue a call of {tool} that is not finished. Pass on what the user has answered, and never answer in the "
        f"user's place. Call this only after {tool} has asked and the user has replied."
    )
    return {"name": f"{tool}{MODEL.suffix}", "description": text, "inputSchema": MODEL_SCHEMA}
