"""What a model is told where its user cannot be asked: what was asked, why nobody heard it, and what can be done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mcp_functions.protocol.errors import capability_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Why: TypeAlias = Literal[
    "client", "leaves", "revision", "mailbox", "trouble", "words", "size", "time", "refused", "failed", "task"
]

BECAUSE: dict[Why, str] = {
    "client": "this client did not declare that it can be asked",
    "leaves": "this client does not come back for what follows an answer",
    "revision": "this server asks clients of this revision nothing, because they do not come back for the answer",
    "mailbox": "this server keeps no mailbox for questions to clients of this revision (its operator can give it one)",
    "trouble": "the server's mailbox for questions cannot be reached just now",
    "words": "this client's revision has no words for it",
    "size": "the call is too large to be carried from question to answer",
    "time": "the work takes longer than one request, and this server cannot go on with it for this client",
    "refused": "the client refused",
    "failed": "the client could not ask its user",
    "task": "it runs as a task, which clients of this revision do not know",
}
STOOD = "What was done before stands; nothing after it was done."
INSTEAD = (
    "If the tool has an argument for it, ask the user yourself and call it again with the answer. "
    "Otherwise tell the user that a client of MCP revision 2026-07-28 can go on here."
)


def unanswered(asked: Iterable[str], why: Why, *, code: int | None = None) -> str:
    """Say that a call cannot go on.

    Args:
        asked: each question in words, as `input_requests.describe_request` writes it.
        why: one of `BECAUSE`.
        code: of the JSON-RPC error that the client answered with, if it did.

    """
    because = BECAUSE[why] if code is None else f"{BECAUSE[why]} (it answered with JSON-RPC error {code})"
    questions = " ".join(f"It asks: {each}." for each in asked if each)
    return f"Not finished: {because}. {questions} {STOOD} {INSTEAD}".replace("  ", " ")


def lacking(required: Mapping[str, Any]) -> str:
    """Say which of its capabilities a client did not declare."""
    return f"something that needs the capability {', '.join(capability_names(required))}"
