"""The event streams of waiting calls: a client returns with the id of the last event, and gets what came after it.

The id holds the client's position in the call. The record of the call is in a table, and has its phase and messages:

    ASKED          the client gets the question, and then polls until it has answered
    RUNNING        the client gets polls, until another function has ended the round
    OUT_OF_TIME    this request runs the next round, and the client gets its outcome
    OVER           the client gets the response

A poll is an event without a message, after which the client waits and returns again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mcp_functions import observability
from mcp_functions.http.responses import check_size
from mcp_functions.legacy import explanations, responses
from mcp_functions.legacy.call_ids import CallStream, StreamPosition
from mcp_functions.legacy.call_store import Phase
from mcp_functions.legacy.errors import QuestionExpired
from mcp_functions.legacy.explanations import Reason
from mcp_functions.legacy.responses import StreamEvent
from mcp_functions.legacy.waiting_calls import WaitingCall
from mcp_functions.protocol.errors import McpError, Misconfigured, OutcomeUnknown, StateTooLarge, TemporarilyUnavailable
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.store import Conflict

if TYPE_CHECKING:
    from mcp_functions.legacy.call_ids import LegacyCall
    from mcp_functions.legacy.call_store import CallRecord, CallStore, StoredRecord
    from mcp_functions.legacy.outcomes import RoundOutcome
    from mcp_functions.legacy.request import LegacyRequest
    from mcp_functions.protocol.event_types import Response

    Events = tuple[StreamEvent, ...]

# The milliseconds before a client returns: after its first poll in a row, its second, and so on. The last is repeated.
POLL_PAUSES = (500, 700, 980, 1372, 1920, 2689, 3764, 5000)
FIRST_PAUSE = POLL_PAUSES[0]
LONGEST_PAUSE = POLL_PAUSES[-1]
NONCE_BYTES = 12  # random bytes that distinguish calls with the same request id


def begin(request: LegacyRequest, store: CallStore, call: LegacyCall, outcome: RoundOutcome) -> Response:
    """Ask the questions of a call's first round, or let the client return for its next round.

    The question is stored before the client sees it. If that fails, the call ends with an explanation, so that no user
    answers a question in vain.
    """
    stream = CallStream(
        session=request.owner.session or "",
        request=call.id,
        nonce=base64url(os.urandom(NONCE_BYTES)),
        principal=request.owner.principal,
        ends=request.answer_deadline,
    )
    try:
        record = WaitingCall(request, store, stream, call).outcome_record(outcome)
        if record.phase == Phase.OVER:
            *notifications, last = record.messages
            return responses.message_response(request.http, last, notifications)
        events = _events_after(store, StreamPosition(stream, step=0), record)
        store.create(stream, record)
    except McpError as error:
        notes = observability.current()
        notes.reason = error.reason
        if isinstance(error, StateTooLarge):  # for an item of the table, or for an event id
            reason = Reason.TOO_LARGE
        else:
            reason = Reason.TABLE_UNAVAILABLE
            notes.misconfigured = isinstance(error, Misconfigured)
        last = explanations.cannot_continue(call, outcome, reason)
        return responses.message_response(request.http, last, outcome.notifications)
    return responses.stream_response(events)


def resume(request: LegacyRequest, store: CallStore, last_event_id: str) -> Events | None:
    """Return the events after an event; None if no event can follow it.

    Raises:
        SessionNotFound: this client did not receive the event.
        TemporarilyUnavailable, Misconfigured: no key is available for the event id.
        AccessDenied: the access token does not suffice for the next round of the call.
    """
    position = store.ids.read_event(last_event_id, request.owner)
    if position.last:
        return None
    notes = observability.current()
    notes.conclude("complete")  # the request has done its work, even if the call has failed
    try:
        stored = store.find(position.stream)
    except TemporarilyUnavailable as error:
        notes.reason = error.reason
        return _poll(store, position, LONGEST_PAUSE)
    except McpError as error:
        notes.misconfigured = True
        return _error(position, error)
    if stored is None:
        return _error(position, QuestionExpired(reason="nothing_waits"))
    return _following(request, store, position, stored)


def _following(request: LegacyRequest, store: CallStore, position: StreamPosition, stored: StoredRecord) -> Events:
    """Return the events that follow a position, by the phase of the call."""
    record = stored.record
    is_in_time = request.deployment.now() < record.until
    if record.phase == Phase.OUT_OF_TIME and record.call:
        waiting = WaitingCall(request, store, position.stream, record.call, record.step)
        return _next_round_events(waiting, position, stored)
    if record.phase == Phase.RUNNING:
        return _poll(store, position) if is_in_time else _error(position, OutcomeUnknown(reason="runner_died"))
    if record.step > position.step:
        return _events_after(store, position, record)
    if is_in_time:  # the client has received the question, and has not answered it
        return _poll(store, position, POLL_PAUSES[position.polls])
    return _error(position, QuestionExpired(reason="not_answered"))


def _events_after(store: CallStore, position: StreamPosition, record: CallRecord) -> Events:
    """Return the events that bring a record's messages; a poll if the record waits for a round."""
    if record.phase == Phase.OUT_OF_TIME:
        return _poll(store, position)
    # The first event repeats the old position: a client that loses the rest of the stream resumes from there.
    first = StreamEvent(None, store.ids.write_event(position._replace(polls=0)), FIRST_PAUSE)
    *before, last = record.messages  # the last is the question or the response
    reached = StreamPosition(position.stream, record.step, last=record.phase == Phase.OVER)
    events = (first, *map(StreamEvent, before), StreamEvent(last, store.ids.write_event(reached)))
    try:
        check_size(responses.stream_response(events))
    except McpError as error:
        return _error(position, error)
    return events


def _next_round_events(waiting: WaitingCall, position: StreamPosition, stored: StoredRecord) -> Events:
    """Run another round of a call that ran out of time, and return the events of its outcome."""
    record = None
    try:
        record = waiting.run_next_round(stored, answers=None)  # the last round asked nothing
    except Conflict:
        pass  # another function runs the round
    except McpError as error:  # a later request of the client runs the round
        observability.current().reason = error.reason
    return _events_after(waiting.store, position, record) if record else _poll(waiting.store, position)


def _poll(store: CallStore, position: StreamPosition, milliseconds: int = FIRST_PAUSE) -> Events:
    """Return the event after which the client polls again, after a pause."""
    polls = min(position.polls + 1, len(POLL_PAUSES) - 1)
    event_id = store.ids.write_event(position._replace(polls=polls))
    return (StreamEvent(None, event_id, milliseconds),)


def _error(position: StreamPosition, error: McpError) -> Events:
    """Note the reason of an error, and return the error without an event id, because no event follows it."""
    observability.current().reason = error.reason
    return (StreamEvent(responses.error_message(position.stream.request, error.to_json())),)
