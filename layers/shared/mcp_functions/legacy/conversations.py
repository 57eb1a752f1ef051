"""Asks clients of 2025 questions without a Lambda that waits for the answer.

    the client sends          the server, a new process each time
    POST tools/call           runs round 1, which asks; stores the phase ASKED; the stream ends with the question
    GET  Last-Event-ID        finds no answer: the client must return later (`streams.resume`)
    POST the answer           stores the phase RUNNING, runs round 2, stores its result in the phase OVER; 202
    GET  Last-Event-ID        responds with the result

A round is one run of the call's handler, with the answers so far. A table has an item for each call, whose phase says
what the call waits for. It changes ASKED to RUNNING only once, so an answer that is sent twice runs one round.

A round may ask several questions. The client gets one after the other: the JSON-RPC id of each question holds the
earlier answers and the remaining questions, sealed (encrypted and authenticated).
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.legacy import final_messages, streams
from mcp_functions.legacy.call_ids import CallStream, StreamPosition
from mcp_functions.legacy.call_store import Phase
from mcp_functions.legacy.errors import UnknownQuestion
from mcp_functions.legacy.final_messages import Obstacle
from mcp_functions.legacy.responses import Reply
from mcp_functions.legacy.waiting_call import WaitingCall
from mcp_functions.protocol.errors import InvalidRequest, McpError, Misconfigured, StateTooLarge
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.protocol.messages import value_at
from mcp_functions.store import Conflict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.legacy.call import Call
    from mcp_functions.legacy.call_ids import PendingQuestion
    from mcp_functions.legacy.call_store import CallStore, StoredRecord
    from mcp_functions.legacy.request import LegacyRequest
    from mcp_functions.legacy.runner import Outcome

NONCE_BYTES = 12  # random bytes that distinguish a call from an earlier one with the same request id


def begin(request: LegacyRequest, store: CallStore, call: Call, outcome: Outcome) -> Reply:
    """Ask the questions of a call's first round, or let the client return for its next round.

    The question is stored before the client sees it. If that fails, the call ends with an explanation, so that no user
    answers a question in vain.
    """
    stream = CallStream(
        session=request.session.id if request.session else "",
        request=call.id,
        nonce=base64url(os.urandom(NONCE_BYTES)),
        principal=request.principal,
        ends=request.answer_deadline,
    )
    try:
        record = WaitingCall(request, store, stream, call).outcome_record(outcome)
        if record.phase == Phase.OVER:
            *notifications, last = record.messages
            return Reply(last, notifications)
        first_events = streams.events_after(store, StreamPosition(stream, step=0), record)
        store.create(stream, record)
    except McpError as error:
        notes = observability.current()
        notes.reason = error.reason
        if isinstance(error, StateTooLarge):  # for an item of the table, or for an event id
            obstacle = Obstacle.TOO_LARGE
        else:
            obstacle = Obstacle.TABLE_UNAVAILABLE
            notes.misconfigured = isinstance(error, Misconfigured)
        return Reply(final_messages.unfinished_message(call, outcome, obstacle), outcome.notifications)
    return Reply(events=first_events)


def receive_answer(request: LegacyRequest, message: Mapping[str, Any]) -> None:
    """Receive one response of a client. A late or repeated answer has no effect.

    Raises:
        UnknownQuestion: this server did not ask this client.
        InvalidRequest: the response has a result and an error.
        TemporarilyUnavailable, Misconfigured: the answer cannot be stored, and the call did not continue.
    """
    store = request.deployment.call_store
    if store is None or request.session is None:
        raise UnknownQuestion
    # 2025-11-25, basic, "Responses": "Either a `result` or an `error` MUST be set. A response MUST NOT set both."
    # `revisions.message_kind` has refused a message that sets neither.
    if message.get("result") is not None and message.get("error") is not None:
        raise InvalidRequest(message="A response holds a result or an error, and not both")
    question = store.ids.read_question(message["id"], request.client)
    notes = observability.current()
    notes.conclude("complete")
    stored = store.retry(lambda: store.find(question.stream), request.gateway_deadline)
    if stored is None:
        notes.reason = "answered_late"
        return
    if stored.record.phase != Phase.ASKED or stored.record.step != question.step:
        notes.reason = "answered_before"
        return
    if request.deployment.now() >= question.stream.ends:
        notes.reason = "answered_late"
        return
    waiting = WaitingCall(request, store, question.stream, question.call, step=question.step)
    try:
        _continue_call(waiting, question, stored, message)
    except Conflict:  # the same answer, sent twice at the same time, has continued the call
        notes.reason = "answered_before"


def receive_notification(request: LegacyRequest, message: Mapping[str, Any]) -> None:
    """Cancel the waiting call that a client names: a later answer has no effect. Other notifications need no action."""
    observability.current().conclude("complete")
    store = request.deployment.call_store
    request_id = value_at(message, "params", "requestId")
    if message["method"] != "notifications/cancelled" or type(request_id) not in (str, int):
        return
    if store and request.session:
        # A notification has no response. If the table is unavailable, the call ends at its deadline.
        with suppress(McpError):
            store.delete(request.session.id, request_id, request.principal)


def _continue_call(
    waiting: WaitingCall, question: PendingQuestion, stored: StoredRecord, message: Mapping[str, Any]
) -> None:
    """Continue a call with its answer; Conflict if another request has already continued it."""
    store = waiting.store
    deadline = waiting.request.gateway_deadline
    result = message.get("result")
    if not isinstance(result, dict):  # the client could not ask its user
        observability.current().reason = "client_error"
        asked = dict(stored.record.messages[-1])
        last = final_messages.client_error_message(question.call, asked, message.get("error"))
        store.replace(stored, waiting.end_record(last), deadline)
        return
    answer = {name: value for name, value in result.items() if name != "_meta"}
    answers = {**question.answers, question.key: answer}
    if question.rest:
        next_question = store.retry(lambda: waiting.question_record(question.rest, answers), deadline)
        store.replace(stored, next_question, deadline)
    else:
        waiting.run_next_round(stored, answers)
