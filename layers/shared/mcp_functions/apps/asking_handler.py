"""The type of a handler, as this room uses it: a tool, a prompt or a resource (`handlers.base`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class AskingHandler(Protocol):
    """A handler that may ask its user."""

    kind: str  # "tool", "prompt" or "resource"
    name: str
    answer_within: int  # how long an answer is accepted, in seconds
    may_show_form: bool
    ask_in_words: Sequence[str]  # keys of the questions whose answers the model may pass on
    requires: Sequence[str]  # capabilities that the client must declare, for example "elicitation.url"

    def describe(self) -> dict[str, Any]:
        """Write its entry in a list."""
