"""The event streams of waiting calls: a client returns with the id of the last event, and gets what came after it.

The id holds the client's position in the call. The mailbox has the record of the call: its phase, and messages.

    ASKED          the client gets the question, and then polls until it has answered
    RUNNING        the client gets polls, until another function has ended the round
    OUT_OF_TIME    this request runs the next round, and the client gets its outcome
    OVER           the client gets the response

A poll is an event without a message, after which the client waits and returns again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions import observability
from mcp_functions.legacy import responses
from mcp_functions.legacy.call_ids import StreamPosition
from mcp_functions.legacy.errors import QuestionExpired
from mcp_functions.legacy.mailbox import Phase
from mcp_functions.legacy.responses import StreamEvent
from mcp_functions.legacy.round_records import WaitingCall, run_next_round
from mcp_functions.protocol.errors import InternalError, McpError, OutcomeUnknown, TemporarilyUnavailable
from mcp_functions.store import Conflict

if TYPE_CHECKING:
    from mcp_functions.legacy.exchange import Exchange
    from mcp_functions.legacy.mailbox import CallRecord, Mailbox, StoredRecord

    Events = tuple[StreamEvent, ...]

# The milliseconds before a client returns: after its first poll in a row, its second, and so on. The last is repeated.
POLL_PAUSES = (500, 700, 980, 1372, 1920, 2689, 3764, 5000)
FIRST_PAUSE = POLL_PAUSES[0]
LONGEST_PAUSE = POLL_PAUSES[-1]


def resume(exchange: Exchange, mailbox: Mailbox, last_event_id: str) -> Events | None:
    """Return the events after an event; None if no event can follow it.

    Raises:
        SessionNotFound: this client did not receive the event.
        TemporarilyUnavailable, Misconfigured: no key is available for the event id.
    """
    position = mailbox.ids.read_event(last_event_id, exchange)
    if position.last:
        return None
    notes = observability.current()
    notes.conclude("complete")  # the request has done its work, even if the call has failed
    try:
        stored = mailbox.find(position.stream)
    except TemporarilyUnavailable as error:
        notes.reason = error.reason
        return _poll(mailbox, position, LONGEST_PAUSE)
    except McpError as error:
        notes.misconfigured = True
        return _error(position, error)
    if stored is None:
        return _error(position, QuestionExpired(reason="nothing_waits"))
    return _following(exchange, mailbox, position, stored)


def _following(exchange: Exchange, mailbox: Mailbox, position: StreamPosition, stored: StoredRecord) -> Events:
    """Return the events that follow a position, by the phase of the call."""
    record = stored.record
    is_in_time = exchange.deployment.now() < record.until
    if record.phase == Phase.OUT_OF_TIME and record.call:
        waiting = WaitingCall(exchange, mailbox, position.stream, record.step, record.call, unseen=record.messages)
        return _outcome_events(waiting, position, stored)
    if record.phase == Phase.RUNNING:
        return _poll(mailbox, position) if is_in_time else _error(position, OutcomeUnknown(reason="runner_died"))
    if record.step > position.step:
        return events_after(mailbox, position, record)
    # The client has received the question, and has not answered it.
    if is_in_time:
        return _poll(mailbox, position, POLL_PAUSES[position.polls])
    return _error(position, QuestionExpired(reason="not_answered"))


def events_after(mailbox: Mailbox, position: StreamPosition, record: CallRecord) -> Events:
    """Return the events that bring a record's messages; a poll if the record waits for a round."""
    if record.phase in (Phase.RUNNING, Phase.OUT_OF_TIME):
        return _poll(mailbox, position)
    if not responses.is_unicode(record.messages):  # Lambda's runtime could not encode the response
        return _error(position, InternalError(reason="the function returned half of a surrogate pair"))
    # The first event repeats the old position: a client that loses the rest of the stream resumes from there.
    first = StreamEvent(None, mailbox.ids.write_event(position._replace(polls=0)), FIRST_PAUSE)
    *before, last = record.messages  # the last is the question or the response
    reached = StreamPosition(position.stream, record.step, last=record.phase == Phase.OVER)
    return (first, *map(StreamEvent, before), StreamEvent(last, mailbox.ids.write_event(reached)))


def _outcome_events(waiting: WaitingCall, position: StreamPosition, stored: StoredRecord) -> Events:
    """Run another round of a call that ran out of time, and return the events of its outcome."""
    mailbox = waiting.mailbox
    try:
        claim = mailbox.claim(stored, waiting.exchange)
    except Conflict:  # another function runs the round
        return _poll(mailbox, position)
    except McpError as error:  # a later request of the client runs the round
        observability.current().reason = error.reason
        return _poll(mailbox, position)
    record = run_next_round(waiting, claim, answers=None)  # the last round asked nothing
    return events_after(mailbox, position, record)


def _poll(mailbox: Mailbox, position: StreamPosition, milliseconds: int = FIRST_PAUSE) -> Events:
    """Return the event after which the client polls again, after a pause."""
    polls = min(position.polls + 1, len(POLL_PAUSES) - 1)
    event_id = mailbox.ids.write_event(position._replace(polls=polls))
    return (StreamEvent(None, event_id, milliseconds),)


def _error(position: StreamPosition, error: McpError) -> Events:
    """Note the reason of an error, and return the error without an event id, because no event follows it."""
    observability.current().reason = error.reason
    return (StreamEvent(responses.error_message(position.stream.request, error.to_json())),)
