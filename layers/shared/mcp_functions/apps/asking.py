"""Asks the questions of a round whose client has no elicitation: with a form, or with words for the model.

A round is one request of a call. A client with elicitation gets an InputRequiredResult, and repeats its request with
the answers. Other clients know only complete results, so here a complete result has the question, and a sealed state. A
companion tool (`apps.companions`) takes the answers and the state.

    channel `APP`     the `_meta` of the result has questions and state, because hosts keep `_meta` from the model
    channel `WORDS`   the result's text tells the model what to ask, and how to pass on answers and state
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.apps import companions, hosts, rungs
from mcp_functions.protocol.constants import META_CLIENT_REVISION
from mcp_functions.protocol.errors import ToolError
from mcp_functions.rounds.input_requests import describe_request
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.messages import Request
    from mcp_functions.protocol.wire_types import InputRequest
    from mcp_functions.seal.binding import Binding
    from mcp_functions.seal.request_state import RequestStates

META_FORM = "mcp-functions/form"  # the member of the result's `_meta` with what the form shows and returns
ONLY_THE_USER = "Only the user can answer this. Do not answer for the user, and do not call the tool again meanwhile."
FORM_REPORTS = (
    "The form reports the outcome here when the user has answered. If it reports none, ask the user, who sees it."
)
AT_WORK = "The work is not finished, and nothing is lost."


class OpenRound(NamedTuple):
    """A round that ended without a result.

    Attributes:
        handler: the handler that asks.
        request: the request that began the round.
        channel: the channel of the companion that the request called; None if it called the handler itself.
        questions: the questions, by key; empty if the round ended only because its time was up.
        lacking: the capabilities that the client would need, as ClientCapabilities.
        now: the time in unix seconds.

    """

    handler: rungs.AskingHandler
    request: Request
    channel: rungs.Channel | None
    questions: Mapping[str, InputRequest]
    lacking: Mapping[str, Any]
    now: float


def is_carried(round_: OpenRound) -> bool:
    """Tell whether the client goes on by itself: it asks its user, or repeats its request.

    Otherwise this module asks. An earlier client (of 2025) is asked by `legacy`.
    """
    if round_.channel or round_.lacking:
        return False
    meta = round_.request.params["_meta"]
    return META_CLIENT_REVISION in meta or hosts.carries_empty_rounds(meta, round_.request.capabilities)


def ask(
    round_: OpenRound,
    audience: str,
    states: Callable[..., RequestStates] | None,
    seal: Callable[[RequestStates | None, Binding, Mapping[str, Any]], str],
) -> dict[str, Any]:
    """Write the complete result that asks the questions of a round.

    Args:
        round_: the round, of a client that does not go on by itself (`is_carried`).
        audience: the audience of the states: the functions that open them.
        states: a function `(seconds to answer, label)` that makes the seal of a channel; None without keys.
        seal: a function `(seal, binding, extra members)` that seals the round's record, and returns the state.

    Raises:
        ToolError: the user cannot be asked, and the text tells the model what to do.
        MissingRequiredClientCapability: the handler cannot do without what the client lacks.

    """
    handler = round_.handler
    request = round_.request
    channel = _channel(round_)
    if channel is None:
        earlier = META_CLIENT_REVISION in request.params["_meta"]
        raise ToolError(rungs.not_asked(handler, round_.questions, round_.lacking, earlier=earlier))
    seal_of_channel = states(handler.answer_within, channel.label) if states else None
    binding = companions.bind(channel, audience, handler.name, request.principal)
    # The companion's call does not repeat the arguments of the tool, so the state has them.
    arguments = request.params.get("arguments") or {}
    state = seal(seal_of_channel, binding, {companions.ARGUMENTS: arguments})
    return _for_app(round_, state) if channel is rungs.APP else _for_model(round_, state)


def open_result() -> dict[str, Any]:
    """Write the result for a form that asks whether it can still be answered."""
    return {"content": [], "isError": False, "_meta": {META_FORM: {"status": "open"}}}


def _channel(round_: OpenRound) -> rungs.Channel | None:
    """Return the way to ask; None if the tool requires what the client lacks, or the user cannot be asked."""
    if rungs.is_required(round_.handler, round_.lacking):
        return None
    declared = round_.request.capabilities
    if round_.channel is None:
        return rungs.choose(round_.handler, round_.questions, declared)
    # A call stays on the rung on which it began, even if its client declares elicitation by now.
    without_elicitation = {name: value for name, value in declared.items() if name != "elicitation"}
    chosen = rungs.choose(round_.handler, round_.questions, without_elicitation)
    return chosen if chosen is round_.channel else None


def _for_app(round_: OpenRound, state: str) -> dict[str, Any]:
    """Write the result that the form shows. It is no error: the list for apps promises no structured content."""
    asked_ms = int(round_.now * 1000)
    form = {
        "tool": f"{round_.handler.name}{rungs.APP.suffix}",
        "state": state,
        "questions": {key: question["params"] for key, question in round_.questions.items()},
        "asked": asked_ms,
        "expires": asked_ms + round_.handler.answer_within * 1000,
    }
    asks = " / ".join(map(describe_request, round_.questions.values()))
    text = f"Not finished yet: a form asks the user: {asks}. {ONLY_THE_USER} {FORM_REPORTS}"
    if not asks:
        text = f"{AT_WORK} The form beside this result continues it by itself. {FORM_REPORTS}"
    return {"content": [{"type": "text", "text": text}], "isError": False, "_meta": {META_FORM: form}}


def _for_model(round_: OpenRound, state: str) -> dict[str, Any]:
    """Write the result that tells the model what to ask the user, and how to pass on the answer."""
    call = f'call {round_.handler.name}{rungs.WORDS.suffix} with "state": "{state}"'
    asks = " / ".join(f"{key}: {describe_request(question)}" for key, question in round_.questions.items())
    text = (
        f"Not finished yet: this tool asks the user: {asks}. {ONLY_THE_USER} "
        f'When the user has answered, {call} and "answers": for each key its "action" ("accept", "decline" or '
        '"cancel") and, if accepted, its "content", an object of the fields.'
    )
    if not asks:
        text = f"{AT_WORK} To continue it, {call}."
    # Official clients accept a result without the structured content of an `outputSchema` only as an error.
    return {"content": [{"type": "text", "text": text}], "isError": "outputSchema" in round_.handler.describe()}
