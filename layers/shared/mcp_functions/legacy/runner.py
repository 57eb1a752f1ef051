"""Sends the calls of legacy clients to the modern server, which speaks 2026-07-28.

    run_request   sends one request
    run_rounds    sends further requests for a call that needs more time than one request has

Each of these requests is a round of the call: it runs the call's handler, with the state of the last round.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions import observability
from mcp_functions.http import responses
from mcp_functions.legacy.modern_requests import modern_request
from mcp_functions.protocol.errors import InsufficientScope, InternalError, Unauthorized, is_ctrl_c, to_mcp_error
from mcp_functions.protocol.messages import Result, value_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.legacy.call import Call
    from mcp_functions.legacy.request import LegacyRequest


class Outcome(NamedTuple):
    """The outcome of one modern request: a result or an error."""

    result: Mapping[str, Any] = {}
    error: Mapping[str, Any] = {}  # a JSON-RPC error
    notifications: tuple[Mapping[str, Any], ...] = ()  # sent before the result
    refusal: Mapping[str, Any] | None = None  # the HTTP response, if the error is a status 401 or 403

    @property
    def is_final(self) -> bool:
        """Whether the call has ended; otherwise it needs another round."""
        return self.result.get("resultType") != "input_required"

    @property
    def questions(self) -> Mapping[str, Any]:
        """The questions that the next round needs answers to (`inputRequests`), by key."""
        questions: Mapping[str, Any] = {} if self.is_final else self.result.get("inputRequests", {})
        return questions

    @property
    def needs_time(self) -> bool:
        """Whether the call needs another round only for lack of time, and asks nothing."""
        return not self.is_final and not self.questions

    @property
    def state(self) -> str | None:
        """The `requestState` with which the next round continues."""
        return self.result.get("requestState")


MIN_ROUND_SECONDS = 15.0  # `run_rounds` begins another round only if the gateway still waits for this time


def run_rounds(
    request: LegacyRequest, call: Call, capabilities: Mapping[str, Any], answers: Mapping[str, Any] | None = None
) -> Outcome:
    """Run rounds of a call until it ends, asks a question, or the gateway does not wait for another round.

    Args:
        request: the HTTP request of the client, for which the gateway waits.
        call: the call, with the state of its last round.
        capabilities: the client's capabilities that the round may use.
        answers: the answers to the questions of the last round, by key; None if it asked nothing.

    Returns:
        The outcome of the last round, with the notifications of all rounds.
    """
    notifications: tuple[Mapping[str, Any], ...] = ()
    while True:
        outcome = run_request(request, call, capabilities, answers)
        notifications += outcome.notifications
        if not outcome.needs_time or request.seconds_left < MIN_ROUND_SECONDS:
            return outcome._replace(notifications=notifications)
        call = call._replace(state=outcome.state)
        answers = None  # the state holds them now


# The JSON-RPC error for a problem with the access token. Batches and event streams show it instead of the HTTP status.
ACCESS_DENIED_ERROR = {"code": InsufficientScope.code, "message": InsufficientScope.default_message}


def run_request(
    request: LegacyRequest, call: Call, capabilities: Mapping[str, Any], answers: Mapping[str, Any] | None = None
) -> Outcome:
    """Run one modern request; an exception becomes the outcome's error. The arguments are those of `run_rounds`."""
    notes = observability.current()
    sent = modern_request(request, call, capabilities, answers)
    try:
        answer = request.deployment.modern.answer(sent)
    except (Unauthorized, InsufficientScope) as error:
        notes.add_error(error)
        return Outcome(error=ACCESS_DENIED_ERROR, refusal=responses.failure(error, call.id))
    except BaseException as error:  # a crash becomes a JSON-RPC error, so the client learns which request crashed
        if is_ctrl_c(error):
            raise
        notes.add_error(error)
        return Outcome(error=to_mcp_error(error).to_json())
    if isinstance(answer, Result):
        outcome = Outcome(answer.result, notifications=answer.notifications)
    else:
        outcome = _forwarded_outcome(answer.response)
    _note_outcome(outcome)
    return outcome


def _forwarded_outcome(response: Mapping[str, Any]) -> Outcome:
    """Read the HTTP response of another function: one JSON message, or an event stream."""
    if response["statusCode"] in (401, 403):  # the access token is the problem
        return Outcome(error=ACCESS_DENIED_ERROR, refusal=response)
    try:
        *notifications, last = [json.loads(text) for text in _message_texts(response["body"])]
    except ValueError:  # the body is not JSON, or a stream without a message
        notifications, last = [], None
    if not isinstance(last, dict) or not (last.get("result") or last.get("error")):
        return Outcome(error=InternalError().to_json())
    return Outcome(result=last.get("result") or {}, error=last.get("error") or {}, notifications=tuple(notifications))


def _message_texts(body: str) -> list[str]:
    """Return the JSON texts in a body."""
    if not body.startswith("event:"):
        return [body]
    return [line.removeprefix("data: ") for line in body.split("\n") if line.startswith("data: ")]


def _note_outcome(outcome: Outcome) -> None:
    """Note for the log how a modern request ended."""
    notes = observability.current()
    if outcome.questions:
        notes.conclude("input_required")
    elif outcome.needs_time:
        notes.conclude("shed")  # the log's name for a round that ended for lack of time
    elif outcome.error:
        notes.conclude("failed" if _is_failure(outcome.error) else "refused", "function")
        notes.code = outcome.error.get("code")
    else:
        notes.conclude("complete")
        notes.tool_error = outcome.result.get("isError") is True


def _is_failure(error: Mapping[str, Any]) -> bool:
    """Return whether the function failed. With `retryable` it only refused a caller, who may try again."""
    return error.get("code") == InternalError.code and value_at(error, "data", "retryable") is not True
