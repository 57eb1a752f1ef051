"""Asks the questions of a round below elicitation: with a form, or with words for the model.

`dispatch.conversations` comes here for a client without elicitation, and for the companion of a tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.apps import companions, hosts, not_asked, pending, rungs
from mcp_functions.protocol.constants import META_EARLIER
from mcp_functions.protocol.errors import ToolError
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Protocol

    from mcp_functions.apps.rungs import Channel
    from mcp_functions.protocol.messages import Request
    from mcp_functions.protocol.wire_types import InputRequest
    from mcp_functions.seal.binding import Binding
    from mcp_functions.seal.request_state import RequestStates

    class AskingHandler(rungs.Asking, Protocol):
        """What a question below elicitation needs of a handler."""

        name: str
        answer_within: int

        def describe(self) -> dict[str, Any]:
            """Write its entry in a list."""


class OpenRound(NamedTuple):
    """A round that ended without a result.

    Attributes:
        handler: that asks.
        request: that began the round.
        channel: the rung on which the conversation began; None if the client itself sent the state.
        questions: by key; empty if only the time was up.
        lacking: the capabilities that the client would need, as ClientCapabilities.
        now: unix seconds.

    """

    handler: AskingHandler
    request: Request
    channel: Channel | None
    questions: Mapping[str, InputRequest]
    lacking: Mapping[str, Any]
    now: float


def is_carried(round_: OpenRound) -> bool:
    """Tell whether the client carries the round by itself: it asks its user, or repeats its request."""
    if round_.channel or round_.lacking:
        return False
    meta = round_.request.params["_meta"]
    return META_EARLIER in meta or hosts.carries_empty_rounds(meta, round_.request.capabilities)


def ask(
    round_: OpenRound,
    audience: str,
    states: Callable[..., RequestStates] | None,
    seal: Callable[[RequestStates | None, Binding, Mapping[str, Any]], str],
) -> dict[str, Any]:
    """Write the complete result that asks the questions of a round.

    Args:
        round_: that the client does not carry by itself.
        audience: of the states.
        states: makes the seal for a time to answer, in seconds, and a label; None without keys.
        seal: seals the state with a seal, for a binding, with more members of its record.

    Raises:
        ToolError: the user cannot be asked, and the text tells the model what to do.
        MissingRequiredClientCapability: as `not_asked.words` raises it.

    """
    handler, request, channel = round_.handler, round_.request, _channel(round_)
    if channel is None:
        earlier = META_EARLIER in request.params["_meta"]
        raise ToolError(not_asked.words(handler, round_.questions, round_.lacking, earlier=earlier))
    labelled = states(handler.answer_within, channel.label) if states else None
    binding = companions.bind(channel, audience, handler.name, request.principal)
    asked = int(round_.now * 1000)
    waiting = pending.Pending(
        tool=handler.name,
        questions=round_.questions,
        state=seal(labelled, binding, {companions.ARGUMENTS: request.params.get("arguments") or {}}),
        asked=asked,
        expires=asked + handler.answer_within * 1000,
        promises="outputSchema" in handler.describe(),
    )
    return pending.for_app(waiting) if channel is rungs.APP else pending.for_model(waiting)


def _channel(round_: OpenRound) -> Channel | None:
    if rungs.is_required(round_.handler, round_.lacking):
        return None
    declared = round_.request.capabilities
    if round_.channel is None:
        return rungs.choose(round_.handler, round_.questions, declared)
    # A conversation ends on the rung on which it began, whatever its client declares by now.
    without = {name: value for name, value in declared.items() if name != "elicitation"}
    chosen = rungs.choose(round_.handler, round_.questions, without)
    return chosen if chosen is round_.channel else None
