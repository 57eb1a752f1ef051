"""The text of a call that ended because its user could not be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

EFFECTS = "Effects of earlier steps remain; later steps did not run."
NO_WAY = "this client declares no way to ask its user"
NO_TIME = "the work takes longer than one request, and this client does not continue it"
ADVICE = (
    "If the tool has an argument for it, ask the user yourself and call it again with the answer. "
    "Otherwise tell the user that a client with elicitation or MCP Apps can finish this call."
)


def unfinished(because: str, questions: Iterable[str], advice: str = ADVICE) -> str:
    """Say why a call did not finish, what it asks, and what to do instead.

    Args:
        because: why the user was not asked.
        questions: in words (`describe_request`).
        advice: for the model.

    """
    asks = [f"It asks: {each}." for each in questions if each]
    return " ".join([f"Not finished: {because}.", *asks, EFFECTS, advice])
