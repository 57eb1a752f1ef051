"""Runs the calls of clients of 2025: each request of 2026-07-28 is a round, with the state of the last round."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mcp_functions import observability
from mcp_functions.http import responses
from mcp_functions.legacy.current_requests import write_request
from mcp_functions.legacy.outcomes import RoundOutcome, access_denied, read_response
from mcp_functions.protocol.errors import InsufficientScope, Unauthorized, is_ctrl_c, to_mcp_error
from mcp_functions.protocol.messages import Result

if TYPE_CHECKING:
    from mcp_functions.legacy.call_ids import LegacyCall
    from mcp_functions.legacy.request import LegacyRequest
    from mcp_functions.protocol.wire_types import ClientCapabilities, InputResponses, JSONRPCMessage, ResultObject

MIN_ROUND_SECONDS = 15.0  # another round begins only if the gateway still waits for so long


def run_rounds(
    request: LegacyRequest,
    call: LegacyCall,
    capabilities: ClientCapabilities,
    answers: InputResponses | None = None,
    notifications: tuple[JSONRPCMessage, ...] = (),
) -> RoundOutcome:
    """Run rounds of a call until it ends, asks a question, or the gateway does not wait for another round.

    The call has the state of its last round, and `answers` are those to its questions; None if it asked nothing. The
    outcome of the last round has the notifications of all rounds, and those given, which the client has not received.
    """
    earlier: RoundOutcome | None = None
    while True:
        outcome = run_round(request, call, capabilities, answers)
        if earlier and outcome.access_denied is not None:
            # The token has expired since the earlier round. The client's next token continues after that round.
            return earlier._replace(notifications=notifications)
        earlier = outcome
        notifications += outcome.notifications
        if not outcome.needs_time or request.seconds_left < MIN_ROUND_SECONDS:
            return outcome._replace(notifications=notifications)
        call = call._replace(state=outcome.state)
        answers = None  # the state holds them now


def run_round(
    request: LegacyRequest, call: LegacyCall, capabilities: ClientCapabilities, answers: InputResponses | None = None
) -> RoundOutcome:
    """Run one round of a call; an exception becomes the outcome's error. The arguments are those of `run_rounds`."""
    notes = observability.current()
    current = write_request(request, call, capabilities, answers)
    try:
        answer = request.deployment.answer_current(current)
    except (Unauthorized, InsufficientScope) as error:
        notes.add_error(error)
        return access_denied(responses.failure(error, call.id))
    except BaseException as error:  # a JSON-RPC error tells the client which request crashed
        if is_ctrl_c(error):
            raise
        notes.add_error(error)
        return RoundOutcome({}, to_mcp_error(error).to_json())
    if isinstance(answer, Result):
        result = cast("ResultObject", answer.result)
        outcome = RoundOutcome(result, notifications=cast("tuple[JSONRPCMessage, ...]", answer.notifications))
    else:
        outcome = read_response(answer.response)
    outcome.note()
    return outcome
