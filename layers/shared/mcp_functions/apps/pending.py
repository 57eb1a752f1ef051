"""Complete results that carry a question: a form for the user, or words for the model.

The text is for the model, which must not answer in the user's place. The form's state is in `_meta` alone, because
hosts keep `_meta` from the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.apps.rungs import APP, WORDS
from mcp_functions.rounds.input_requests import describe_request
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.wire_types import InputRequest

META_FORM = "mcp-functions/form"  # in the result's `_meta`: what the form shows and returns
ONLY_THE_USER = "Only the user can answer this. Do not answer for the user, and do not call the tool again meanwhile."
FORM_REPORTS = (
    "The form reports the outcome here when the user has answered. If it reports none, ask the user, who sees it."
)
AT_WORK = "The work is not finished, and nothing is lost."


class Pending(NamedTuple):
    """A call that waits for its user.

    Attributes:
        tool: the name of the tool that asks.
        questions: by key; empty if only the time was up.
        state: sealed under the label of its channel.
        asked: when, in unix milliseconds.
        expires: when the state ends, in unix milliseconds.
        promises: whether the tool has an `outputSchema`. Official clients then accept a result without structured
            content only as an error.

    """

    tool: str
    questions: Mapping[str, InputRequest]
    state: str
    asked: int
    expires: int
    promises: bool


def for_app(pending: Pending) -> dict[str, Any]:
    """Write the result that the form shows. It is no error: the list for apps promises no structured content."""
    form = {
        "tool": f"{pending.tool}{APP.suffix}",
        "state": pending.state,
        "questions": {key: question["params"] for key, question in pending.questions.items()},
        "asked": pending.asked,
        "expires": pending.expires,
    }
    text = _for_user(pending.questions)
    return {"content": [{"type": "text", "text": text}], "isError": False, "_meta": {META_FORM: form}}


def for_model(pending: Pending) -> dict[str, Any]:
    """Write the result that tells the model what to ask the user, and how to pass on the answer."""
    text = _for_model(f"{pending.tool}{WORDS.suffix}", pending.questions, pending.state)
    return {"content": [{"type": "text", "text": text}], "isError": pending.promises}


def open_result() -> dict[str, Any]:
    """Write the result for a form that asks whether it can still be answered."""
    return {"content": [], "isError": False, "_meta": {META_FORM: {"status": "open"}}}


def _for_user(questions: Mapping[str, InputRequest]) -> str:
    if not questions:
        return f"{AT_WORK} The form beside this result continues it by itself. {FORM_REPORTS}"
    asks = " / ".join(map(describe_request, questions.values()))
    return f"Not finished yet: a form asks the user: {asks}. {ONLY_THE_USER} {FORM_REPORTS}"


def _for_model(companion: str, questions: Mapping[str, InputRequest], state: str) -> str:
    call = f'call {companion} with "state": "{state}"'
    if not questions:
        return f"{AT_WORK} To continue it, {call}."
    asks = " / ".join(f"{key}: {describe_request(question)}" for key, question in questions.items())
    return (
        f"Not finished yet: this tool asks the user: {asks}. {ONLY_THE_USER} "
        f'When the user has answered, {call} and "answers": for each key its "action" ("accept", "decline" or '
        '"cancel") and, if accepted, its "content", an object of the fields.'
    )
