"""Runs the calls of clients of 2025 on the modern server, which speaks 2026-07-28.

    run_request   writes one modern request, and lets the server answer it
    run_rounds    sends further requests for a call that needs more time than one request has

Each of these requests is a round of the call: it runs the call's handler, with the state of the last round.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from mcp_functions import observability
from mcp_functions.handlers import lookup
from mcp_functions.http import responses
from mcp_functions.protocol import header_parameters, headers
from mcp_functions.protocol.constants import (
    CALL_METHODS,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_CLIENT_REVISION,
    META_LOG_LEVEL,
    META_PROTOCOL_VERSION,
    PROTOCOL_VERSION,
)
from mcp_functions.protocol.errors import InsufficientScope, InternalError, Unauthorized, is_ctrl_c, to_mcp_error
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.messages import Request, Result, value_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.legacy.call_ids import Call
    from mcp_functions.legacy.request import LegacyRequest
    from mcp_functions.protocol.catalog_types import Catalog
    from mcp_functions.protocol.event_types import Event
    from mcp_functions.protocol.wire_types import ClientCapabilities, JSONRPCRequest, Meta


class Outcome(NamedTuple):
    """The outcome of one modern request: a result or an error."""

    result: Mapping[str, Any] = {}
    error: Mapping[str, Any] = {}  # a JSON-RPC error
    notifications: tuple[Mapping[str, Any], ...] = ()  # sent before the result
    # the HTTP response, if the error is a status 401 or 403
    refusal: Mapping[str, Any] | None = None

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


# the part of the gateway's time that a request must leave, to store and write its outcome
SPARE_SECONDS = 1.5
# `run_rounds` begins another round only if the gateway still waits for this time
MIN_ROUND_SECONDS = 15.0
# These headers have another meaning in 2026-07-28, or none.
DROPPED_HEADERS = ("mcp-session-id", "last-event-id", "content-length", "content-encoding")
# The JSON-RPC error for a problem with the access token: an event of a later stream cannot have an HTTP status.
ACCESS_DENIED_ERROR = {"code": InsufficientScope.code, "message": InsufficientScope.default_message}


def run_rounds(
    request: LegacyRequest,
    call: Call,
    capabilities: ClientCapabilities,
    answers: Mapping[str, Any] | None = None,
    notifications: tuple[Mapping[str, Any], ...] = (),
) -> Outcome:
    """Run rounds of a call until it ends, asks a question, or the gateway does not wait for another round.

    Args:
        request: the HTTP request of the client, for which the gateway waits.
        call: the call, with the state of its last round.
        capabilities: the client's capabilities that the round may use.
        answers: the answers to the questions of the last round, by key; None if it asked nothing.
        notifications: those of earlier rounds, which the client has not received.

    Returns:
        The outcome of the last round, with the notifications of all rounds.
    """
    earlier: Outcome | None = None
    while True:
        outcome = run_request(request, call, capabilities, answers)
        if earlier and outcome.refusal is not None:
            # The token has expired since the earlier round. The client's next token continues after that round.
            return earlier._replace(notifications=notifications)
        earlier = outcome
        notifications += outcome.notifications
        if not outcome.needs_time or request.seconds_left < MIN_ROUND_SECONDS:
            return outcome._replace(notifications=notifications)
        call = call._replace(state=outcome.state)
        answers = None  # the state holds them now


def run_request(
    request: LegacyRequest, call: Call, capabilities: ClientCapabilities, answers: Mapping[str, Any] | None = None
) -> Outcome:
    """Run one modern request; an exception becomes the outcome's error. The arguments are those of `run_rounds`."""
    notes = observability.current()
    message = _message(request, call, capabilities, answers)
    try:
        answer = request.deployment.answer_modern(_modern_request(request, message))
    except (Unauthorized, InsufficientScope) as error:
        notes.add_error(error)
        return Outcome(error=ACCESS_DENIED_ERROR, refusal=responses.failure(error, call.id))
    # a crash becomes a JSON-RPC error, so the client learns which request crashed
    except BaseException as error:
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


def _message(
    request: LegacyRequest, call: Call, capabilities: ClientCapabilities, answers: Mapping[str, Any] | None
) -> JSONRPCRequest:
    """Return the JSON-RPC request of 2026-07-28 for one round of a call."""
    meta: Meta = {
        **call.params["_meta"],
        META_PROTOCOL_VERSION: PROTOCOL_VERSION,
        META_CLIENT_CAPABILITIES: capabilities,
        META_CLIENT_REVISION: request.revision,
    }
    if request.session:
        name, version = request.session.client
        meta[META_CLIENT_INFO] = {"name": name, "version": version}
        meta[META_LOG_LEVEL] = request.session.level
    params = {**call.params, "_meta": meta}
    if call.state:
        params["requestState"] = call.state
    if answers is not None:
        params["inputResponses"] = dict(answers)
    return cast("JSONRPCRequest", {"jsonrpc": "2.0", "id": call.id, "method": call.method, "params": params})


def _modern_request(request: LegacyRequest, message: JSONRPCRequest) -> Request:
    return Request(
        message=message,
        headers=_headers(message, request.catalog, request.http.headers),
        principal=request.caller.principal,
        address=request.http.address,
        gateway_deadline=request.http.gateway_deadline - SPARE_SECONDS,
        event=request.http.event,
        scopes=request.caller.scopes,
        lambda_deadline=request.http.lambda_deadline,
    )


def _headers(message: JSONRPCRequest, catalog: Catalog, received: Mapping[str, str]) -> dict[str, str]:
    """Return the received headers, with those that 2026-07-28 repeats from the body."""
    method = message["method"]
    params = message["params"]
    written = {name: value for name, value in received.items() if name not in DROPPED_HEADERS}
    written["accept"] = "application/json, text/event-stream"
    written["content-type"] = "application/json"
    written["mcp-protocol-version"] = PROTOCOL_VERSION
    written["mcp-method"] = method
    # the tool, prompt or resource
    name = params.get(CALL_METHODS[method]) if method in CALL_METHODS else None
    if isinstance(name, str):
        written["mcp-name"] = headers.encode(name)
    if method == "tools/call":
        arguments = params.get("arguments")
        declared = lookup.header_arguments(catalog, name)
        written |= header_parameters.write(declared, arguments if isinstance(arguments, dict) else {})
    return written


def forwardable_event(request: Request) -> Event:
    """Return the event that API Gateway would have sent if a modern client had sent this request of `run_request`.

    A front door forwards this event to another function. It is dated back by `SPARE_SECONDS`, so that the other
    function ends before this one must.
    """
    context = request.event["requestContext"].copy()
    context["http"] = {**context["http"], "method": "POST"}
    spare_ms = int(SPARE_SECONDS * 1000)
    if type(context.get("timeEpoch")) is int and context["timeEpoch"] > spare_ms:
        context["timeEpoch"] -= spare_ms
    return {
        **request.event,
        "headers": dict(request.headers),
        "requestContext": context,
        "body": dumps(request.message),
        "isBase64Encoded": False,
    }


def _forwarded_outcome(response: Mapping[str, Any]) -> Outcome:
    """Read the HTTP response of another function: one JSON message, or an event stream."""
    if response["statusCode"] in (401, 403):  # the access token is the problem
        return Outcome(error=ACCESS_DENIED_ERROR, refusal=response)
    body = response["body"]
    texts = [body]
    if body.startswith("event:"):
        texts = [line.removeprefix("data: ") for line in body.split("\n") if line.startswith("data: ")]
    try:
        *notifications, last = map(json.loads, texts)
    except ValueError:  # the body is not JSON, or a stream without a message
        notifications, last = [], None
    if not isinstance(last, dict) or not (last.get("result") or last.get("error")):
        return Outcome(error=InternalError().to_json())
    return Outcome(result=last.get("result") or {}, error=last.get("error") or {}, notifications=tuple(notifications))


def _note_outcome(outcome: Outcome) -> None:
    """Note for the log how a modern request ended."""
    notes = observability.current()
    if outcome.questions:
        notes.conclude("input_required")
    elif outcome.needs_time:
        notes.conclude("shed")  # the log's name for a round that ended for lack of time
    elif outcome.error:
        # With `retryable` the function did not fail: it only refused a caller, who may try again.
        is_retryable = value_at(outcome.error, "data", "retryable") is True
        has_failed = outcome.error.get("code") == InternalError.code and not is_retryable
        notes.conclude("failed" if has_failed else "refused", "function")
        notes.code = outcome.error.get("code")
    else:
        notes.conclude("complete")
        notes.tool_error = outcome.result.get("isError") is True
