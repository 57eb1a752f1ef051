"""Asks the questions of a call whose client has no elicitation: in a form of the host, or through the model.

A client with elicitation gets an InputRequiredResult, and repeats its request with the answers. Other clients know only
complete results. They get one with the questions and a sealed state. Then a second tool, the answer tool, is called
with the answers and the state (`answer_tools`):

    FORM     the `_meta` of the result has questions and state, because hosts hide `_meta` from the model
    MODEL    the text of the result tells the model what to ask, and how to pass on answers and state

If neither can ask, the call ends, and its result says why (`rounds.unfinished`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions.apps.answer_tools import FORM, MODEL
from mcp_functions.protocol.constants import META_FORM
from mcp_functions.protocol.errors import ToolError
from mcp_functions.protocol.messages import shows_apps, shows_forms, value_at
from mcp_functions.rounds import unfinished
from mcp_functions.rounds.input_requests import missing_capabilities

if TYPE_CHECKING:
    from mcp_functions.apps.answer_tools import AnswerTool
    from mcp_functions.protocol.messages import Request
    from mcp_functions.protocol.wire_types import ClientCapabilities, InputRequest, InputRequests, ResultObject
    from mcp_functions.rounds.unfinished import AskingHandler

ONLY_THE_USER = "Only the user can answer this. Do not answer for the user, and do not call the tool again meanwhile."
FORM_REPORTS = (
    "The form reports the outcome here when the user has answered. If it reports none, ask the user, who sees it."
)
STILL_AT_WORK = "The work is not finished, and nothing is lost."


def choose_answer_tool(
    handler: AskingHandler, questions: InputRequests, request: Request, last: AnswerTool | None
) -> AnswerTool:
    """Choose the answer tool for the questions of a round.

    There is no question if the handler only needs another request to finish its work. The last answers of the call came
    from the answer tool `last`.

    Raises:
        ToolError: the user cannot be asked, and the text tells the model what to do.
        MissingRequiredClientCapability: the handler cannot do without what the client lacks.
    """
    missing = missing_capabilities(questions.values(), request.capabilities)
    chosen = _usable_answer_tool(handler, questions, request.capabilities, last)
    if chosen is None or unfinished.is_required(handler, missing):
        raise ToolError(unfinished.explain(handler, questions, missing, request.params["_meta"]))
    return chosen


def _usable_answer_tool(
    handler: AskingHandler, questions: InputRequests, declared: ClientCapabilities, last: AnswerTool | None
) -> AnswerTool | None:
    """Return the answer tool for some questions, or None; `declared` has the client's capabilities."""
    if any(question["method"] != "elicitation/create" for question in questions.values()):
        return None  # the client itself or its model must answer, and not the user
    has_own_forms = last is None and shows_forms(declared)
    if handler.may_show_form and shows_apps(declared) and not has_own_forms:
        usable = FORM
    elif _model_may_ask(handler, questions):
        usable = MODEL
    else:
        return None
    return usable if last in (None, usable) else None  # each request of a call asks in one way


def _model_may_ask(handler: AskingHandler, questions: InputRequests) -> bool:
    if handler.kind != "tool":
        return False
    if not questions:
        return True  # the model only calls again, so that the tool can finish its work
    # The user gives a consent in person. The author cannot allow the model to pass it on.
    return all(key in handler.ask_in_words and not _is_consent(question) for key, question in questions.items())


def _is_consent(question: InputRequest) -> bool:
    """Tell whether a question asks for a permission: a page, or a form with a yes-or-no field or no field at all."""
    fields = value_at(question, "params", "requestedSchema", "properties")
    if not fields:
        return True
    return any(field.get("type") == "boolean" for field in fields.values())


def make_result(
    answer_tool: AnswerTool, handler: AskingHandler, questions: InputRequests, state: str, now: float
) -> ResultObject:
    """Write the complete result that asks the questions; `now` is in unix seconds."""
    if answer_tool is FORM:
        return _result_for_form(handler, questions, state, now)
    return _result_for_model(handler, questions, state)


def _result_for_form(handler: AskingHandler, questions: InputRequests, state: str, now: float) -> ResultObject:
    """Write the result that the form shows. It is no error: `listings` removes the `outputSchema`."""
    asked_ms = int(now * 1000)
    form = {
        "tool": f"{handler.name}{FORM.suffix}",
        "state": state,
        "questions": {key: question["params"] for key, question in questions.items()},
        "asked": asked_ms,
        "expires": asked_ms + handler.answer_within * 1000,
    }
    if questions:
        asks = " / ".join(map(unfinished.describe_request, questions.values()))
        text = f"Not finished yet: a form asks the user: {asks}. {ONLY_THE_USER} {FORM_REPORTS}"
    else:
        text = (
            f"{STILL_AT_WORK} The form beside this result continues it by itself, and reports the outcome here with the"
            " next message. If it reports none, ask the user, who sees it."
        )
    return {"content": [{"type": "text", "text": text}], "isError": False, "_meta": {META_FORM: form}}


def result_for_check() -> ResultObject:
    """Write the result for a form that asks whether it can still be answered: it can."""
    return {"content": [], "isError": False, "_meta": {META_FORM: {"status": "open"}}}


def _result_for_model(handler: AskingHandler, questions: InputRequests, state: str) -> ResultObject:
    """Write the result that tells the model what to ask the user, and how to pass on the answer."""
    call = f'call {handler.name}{MODEL.suffix} with "state": "{state}"'
    if questions:
        asks = " / ".join(f"{key}: {unfinished.describe_request(question)}" for key, question in questions.items())
        text = (
            f"Not finished yet: this tool asks the user: {asks}. {ONLY_THE_USER} "
            f'When the user has answered, {call} and "answers": for each key its "action" ("accept", "decline" or '
            '"cancel") and, if accepted, its "content", an object of the fields.'
        )
    else:
        text = f"{STILL_AT_WORK} To continue it, {call}."
    # Official clients accept a result without the structured content of an `outputSchema` only as an error.
    must_be_error = "outputSchema" in handler.describe()
    return {"content": [{"type": "text", "text": text}], "isError": must_be_error}
