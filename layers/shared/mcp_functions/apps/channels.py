"""Chooses how a tool asks its user if the client cannot show questions, which means that it has no elicitation.

    APP      a form shows the questions. The client must declare MCP Apps, and its host shows the form.
    MODEL    the model asks the questions in the chat, and passes on the answers. The author must allow that for each
             question: @tool(ask_in_words=["seat"]).

Without a channel, the call ends, and its result says why (`unasked`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.messages import shows_apps, shows_forms, value_at
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.apps.asking_handler import AskingHandler
    from mcp_functions.protocol.wire_types import JSONObject


class Channel(NamedTuple):
    """A way to ask. The answers arrive in a call of a second tool, with a state: the sealed record of the call."""

    answered_by: str  # who gives the answers, for the audit and the log
    suffix: str  # of the second tool's name: "book-form" takes the answers for "book"
    # A state must not open in the other channel. So each channel has its own label, which is part of the encryption,
    # and its own method, which is in the state. An author's own encryption has no labels.
    label: bytes
    method: str


APP = Channel(answered_by="app", suffix="-form", label=b"ks1/app", method="apps/answer")
MODEL = Channel(answered_by="model", suffix="-answer", label=b"ks1/words", method="words/answer")


def choose(
    handler: AskingHandler, questions: Mapping[str, JSONObject], declared: Mapping[str, Any], last: Channel | None
) -> Channel | None:
    """Choose the channel for some questions; None if the user cannot be asked.

    Args:
        handler: the handler that asks.
        questions: the questions, by key; empty if the handler only needs another request to finish its work.
        declared: the client's capabilities on this request.
        last: the channel in which the call has asked before; None if it has not.
    """
    if any(question["method"] != "elicitation/create" for question in questions.values()):
        return None  # the client itself or its model must answer, and not the user
    can_show_form = handler.may_show_form and shows_apps(declared)
    chosen = MODEL if _model_may_ask(handler, questions) else None
    if can_show_form and (last is not None or not shows_forms(declared)):  # a call that has begun ignores elicitation
        chosen = APP
    return chosen if last in (None, chosen) else None  # a call stays in its channel


def _model_may_ask(handler: AskingHandler, questions: Mapping[str, JSONObject]) -> bool:
    """Tell whether the model may ask the questions of a tool."""
    if handler.kind != "tool":
        return False
    if not questions:
        return True  # the model only calls again, so that the tool can finish its work
    # The user gives a consent in person. The author cannot allow the model to pass it on.
    return all(key in handler.ask_in_words and not _is_consent(question) for key, question in questions.items())


def _is_consent(question: JSONObject) -> bool:
    """Tell whether a question asks for a permission: a page, or a form with a yes-or-no field or no field at all."""
    fields = value_at(question, "params", "requestedSchema", "properties")
    if not fields:
        return True
    return any(field.get("type") == "boolean" for field in fields.values())
