"""Asks the questions of a call whose client has no elicitation: in a form of the host, or through the model.

A client with elicitation gets an InputRequiredResult, and repeats its request with the answers. Other clients know only
complete results. They get one with the questions and a sealed state, and call a second tool with the answers and the
state: the companion (`apps.companions`).

    channel `APP`     the `_meta` of the result has questions and state, because hosts hide `_meta` from the model
    channel `MODEL`   the text of the result tells the model what to ask, and how to pass on answers and state
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.apps import channels, companion_calls, unasked
from mcp_functions.protocol.errors import ToolError
from mcp_functions.rounds.input_requests import missing_capabilities

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.apps.asking_handler import AskingHandler
    from mcp_functions.apps.channels import Channel
    from mcp_functions.protocol.messages import Request
    from mcp_functions.protocol.wire_types import JSONObject
    from mcp_functions.rounds.round import Round
    from mcp_functions.seal.binding import Binding

META_FORM = "mcp-functions/form"  # the member of the result's `_meta` with what the form shows and returns


def ask(  # noqa: PLR0913 - the parts of a call, and of its deployment
    handler: AskingHandler,
    request: Request,
    round_: Round,
    *,
    last_channel: Channel | None,
    audience: str,
    seal: Callable[[Binding, Mapping[str, Any], Channel], str],
    now: float,
) -> dict[str, Any]:
    """Return the complete result that asks the questions of a round; there are none if the round paused.

    Args:
        handler: the handler that asks.
        request: the request of the round.
        round_: the round, which has ended.
        last_channel: the channel of the last round, in which the call goes on; None if no round used a channel.
        audience: the server that opens the state: "<service>/<stage>".
        seal: seals a record as a state, for the requests of a binding in a channel.
        now: the time in unix seconds.

    Raises:
        ToolError: the user cannot be asked, and the text tells the model what to do.
        MissingRequiredClientCapability: the handler cannot do without what the client lacks.
    """
    questions = round_.requests
    channel = channels.choose(handler, questions, request.capabilities, last_channel)
    missing = missing_capabilities(questions.values(), request.capabilities)
    if channel is None or unasked.is_required(handler, missing):
        raise ToolError(unasked.explain(handler, questions, missing, is_of_2025=request.is_of_2025))
    binding = companion_calls.bind_state(channel, audience, handler.name, request.principal)
    record = round_.next_record()
    # A call of the companion does not repeat the arguments of the tool, so the state has them.
    record[companion_calls.ARGUMENTS_KEY] = request.params.get("arguments") or {}
    state = seal(binding, record, channel)
    if channel is channels.APP:
        return _for_app(handler, questions, state, now)
    return _for_model(handler, questions, state)


def open_result() -> dict[str, Any]:
    """Write the result for a form that asks whether it can still be answered."""
    return {"content": [], "isError": False, "_meta": {META_FORM: {"status": "open"}}}


# Parts of the texts for the model.
ONLY_THE_USER = "Only the user can answer this. Do not answer for the user, and do not call the tool again meanwhile."
FORM_REPORTS = (
    "The form reports the outcome here when the user has answered. If it reports none, ask the user, who sees it."
)
STILL_AT_WORK = "The work is not finished, and nothing is lost."


def _for_app(handler: AskingHandler, questions: Mapping[str, JSONObject], state: str, now: float) -> dict[str, Any]:
    """Write the result that the form shows. It is no error: `listings` removes the `outputSchema`."""
    asked_ms = int(now * 1000)
    form = {
        "tool": f"{handler.name}{channels.APP.suffix}",
        "state": state,
        "questions": {key: question["params"] for key, question in questions.items()},
        "asked": asked_ms,
        "expires": asked_ms + handler.answer_within * 1000,
    }
    if questions:
        asks = " / ".join(map(unasked.describe_request, questions.values()))
        text = f"Not finished yet: a form asks the user: {asks}. {ONLY_THE_USER} {FORM_REPORTS}"
    else:
        text = f"{STILL_AT_WORK} The form beside this result continues it by itself. {FORM_REPORTS}"
    return {"content": [{"type": "text", "text": text}], "isError": False, "_meta": {META_FORM: form}}


def _for_model(handler: AskingHandler, questions: Mapping[str, JSONObject], state: str) -> dict[str, Any]:
    """Write the result that tells the model what to ask the user, and how to pass on the answer."""
    call = f'call {handler.name}{channels.MODEL.suffix} with "state": "{state}"'
    if questions:
        asks = " / ".join(f"{key}: {unasked.describe_request(question)}" for key, question in questions.items())
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
