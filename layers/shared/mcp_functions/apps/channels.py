"""How a tool asks its user if the client cannot: through a form in the client's host, or through its model.

A client that can ask declares elicitation. What any other client declares in a request decides:

    MCP Apps                         APP     the host shows a form
    nothing for questions            MODEL   the model asks the user, and passes on the answers
                                             if the author allows that for each question: @tool(ask_in_words=["seat"])
    nothing, and it is not allowed   -       the call ends, and its result says why (`unasked`)

Both get the questions in a complete result (`asking`), and send the answers by calling a second tool (`companions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.messages import shows_apps, shows_forms, value_at
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from mcp_functions.protocol.wire_types import JSONObject

    class AskingHandler(Protocol):
        """What a channel must know about a handler that asks."""

        kind: str  # "tool", "prompt" or "resource"
        name: str
        answer_within: int  # how long an answer is accepted, in seconds
        may_show_form: bool
        ask_in_words: Sequence[str]  # keys of the questions whose answers the model may pass on
        requires: Sequence[str]  # capabilities that it cannot do without, such as "elicitation.url"

        def describe(self) -> dict[str, Any]:
            """Write its entry in a list."""


class Channel(NamedTuple):
    """A way to ask, and to take the answers."""

    answered_by: str  # who gives the answers, for the audit and the log
    suffix: str  # the second tool is named after the tool that asks, with this suffix
    # Each of the next two keeps a state from opening in the other channel.
    label: bytes  # of the seal of a state
    method: str  # in the claims of a state, for an author's own codec, which has no labels


APP = Channel(answered_by="app", suffix="-form", label=b"ks1/app", method="apps/answer")
MODEL = Channel(answered_by="model", suffix="-answer", label=b"ks1/words", method="words/answer")


def choose(
    handler: AskingHandler, questions: Mapping[str, JSONObject], declared: Mapping[str, Any], last: Channel | None
) -> Channel | None:
    """Choose the channel for the questions of one round; None if the user cannot be asked.

    Args:
        handler: the handler that asks.
        questions: the questions, by key; empty for a round that ended only because its time was up.
        declared: the client's capabilities on this request.
        last: the channel of the last round, which the call keeps; None in its first round.
    """
    if any(question["method"] != "elicitation/create" for question in questions.values()):
        return None  # the client itself or its model must answer
    # A call that has begun in a channel stays in it, even if the client declares elicitation by now.
    has_own_forms = shows_forms(declared) and last is None
    chosen = None
    if handler.may_show_form and shows_apps(declared) and not has_own_forms:
        chosen = APP
    elif _may_ask_in_words(handler, questions):
        chosen = MODEL
    is_other_channel = last is not None and chosen is not last
    return None if is_other_channel else chosen


def _may_ask_in_words(handler: AskingHandler, questions: Mapping[str, JSONObject]) -> bool:
    """Tell whether the model may ask the questions of a tool. Without a question, it may continue each tool's call."""
    if handler.kind != "tool":
        return False
    # The user gives a consent in person. The author cannot allow the model to pass it on.
    return all(key in handler.ask_in_words and not _is_consent(question) for key, question in questions.items())


def _is_consent(question: JSONObject) -> bool:
    """Tell whether a question asks for a permission: a page, or a form with a yes-or-no field or no field at all."""
    fields = value_at(question, "params", "requestedSchema", "properties")
    if not fields:
        return True
    return any(field.get("type") == "boolean" for field in fields.values())
