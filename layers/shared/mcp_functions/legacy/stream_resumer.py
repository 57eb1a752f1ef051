"""Resumes the stream of a waiting call: its client fetches the messages that the call has left since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions import observability
from mcp_functions.legacy import responses, stream_ids
from mcp_functions.legacy.errors import QuestionExpired
from mcp_functions.legacy.responses import StreamEvent
from mcp_functions.legacy.round_records import WaitingCall
from mcp_functions.legacy.stream_ids import StreamPosition
from mcp_functions.protocol.errors import InternalError, McpError, OutcomeUnknown, TemporarilyUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_functions.legacy.exchange import Exchange
    from mcp_functions.legacy.mailbox import CallRecord, Mailbox, StoredRecord
    from mcp_functions.legacy.round_records import RoundRecorder
    from mcp_functions.legacy.runner import Call
    from mcp_functions.legacy.token_seals import TokenSeal
    from mcp_functions.protocol.wire_types import RequestId

MIN_POLL_MS, MAX_POLL_MS, POLL_GROWTH = 500, 5000, 1.4  # the pause before a client returns; it grows with each poll
MAX_POLLS = 7  # the pause no longer grows after these
DELIVERABLE = ("asked", "over")  # phases that have messages for the client
INVALID_UNICODE = "the function returned half of a surrogate pair"


class StreamEvents:
    """Writes the events of waiting calls."""

    def __init__(self, seal: TokenSeal) -> None:
        """Use the seal of event ids."""
        self._seal = seal

    def of_record(self, position: StreamPosition, record: CallRecord) -> tuple[StreamEvent, ...]:
        """Return the events that follow a position: an id to resume from, the messages, and the new position."""
        if record.phase not in DELIVERABLE:
            return self.poll_again(position, MIN_POLL_MS)
        if not responses.is_unicode(record.messages):  # Lambda's runtime cannot encode this
            observability.current().reason = INVALID_UNICODE
            return error_events(position.stream.request, InternalError())
        first = StreamEvent(None, self._event_id(position._replace(polls=0)), MIN_POLL_MS)
        *before, last = record.messages
        reached = StreamPosition(position.stream, record.step, last=record.phase == "over")
        return (first, *map(StreamEvent, before), StreamEvent(last, self._event_id(reached)))

    def poll_again(self, position: StreamPosition, milliseconds: int) -> tuple[StreamEvent, ...]:
        """Return the event after which the client polls again, after a pause."""
        polls = min(position.polls + 1, MAX_POLLS)
        return (StreamEvent(None, self._event_id(position._replace(polls=polls)), milliseconds),)

    def poll_slower(self, position: StreamPosition) -> tuple[StreamEvent, ...]:
        """Return the event after which the client polls again; each poll makes the pause longer."""
        pause = int(MIN_POLL_MS * POLL_GROWTH**position.polls)
        return self.poll_again(position, min(MAX_POLL_MS, pause))

    def _event_id(self, position: StreamPosition) -> str:
        return stream_ids.seal_event_id(position, self._seal)


class StreamResumer:
    """Resumes streams, and runs another round of a call that ran out of time."""

    def __init__(
        self, seal: TokenSeal, mailbox: Callable[[], Mailbox], recorder: RoundRecorder, now: Callable[[], float]
    ) -> None:
        """Use the seal of event ids, the mailbox, a recorder of rounds, and a clock (unix seconds)."""
        self._seal, self._events, self._mailbox = seal, StreamEvents(seal), mailbox
        self._recorder, self._now = recorder, now

    def resume(self, exchange: Exchange, last_event_id: str) -> Sequence[StreamEvent] | None:
        """Return the events after an event; None if no event can follow it."""
        position = stream_ids.open_event_id(last_event_id, self._seal, exchange)
        if position.last:
            return None
        notes = observability.current()
        notes.conclude("complete")
        try:
            stored = self._mailbox().find(position.stream)
        except TemporarilyUnavailable as error:
            notes.reason = error.reason
            return self._events.poll_again(position, MAX_POLL_MS)
        except McpError as error:
            notes.reason, notes.misconfigured = error.reason, True
            return error_events(position.stream.request, error)
        if stored is None:
            return _expired(position, "nothing_waits")
        return self._following(exchange, position, stored)

    def _following(self, exchange: Exchange, position: StreamPosition, stored: StoredRecord) -> Sequence[StreamEvent]:
        record = stored.record
        if record.step > position.step and record.phase in DELIVERABLE:
            return self._events.of_record(position, record)
        if record.phase == "running":
            return self._running(position, record.until)
        if record.phase == "asked" and self._now() < record.until:
            return self._events.poll_slower(position)
        if record.phase == "working" and record.call:
            return self._run(exchange, position, stored, record.call)
        return _expired(position, "not_answered")

    def _running(self, position: StreamPosition, until: int) -> Sequence[StreamEvent]:
        if self._now() < until:
            return self._events.poll_again(position, MIN_POLL_MS)
        observability.current().reason = "runner_died"
        return error_events(position.stream.request, OutcomeUnknown())

    def _run(
        self, exchange: Exchange, position: StreamPosition, stored: StoredRecord, call: Call
    ) -> Sequence[StreamEvent]:
        """Run another round of a call that ran out of time: this request has time for it."""
        stream = position.stream._replace(ends=self._recorder.next_deadline())
        mailbox = self._mailbox()
        try:
            claim = mailbox.claim(stored, exchange.ends, by=stream_ids.new_nonce())
        except McpError as error:
            observability.current().reason = error.reason
            claim = None
        if claim is None:
            return self._events.poll_again(position, MIN_POLL_MS)
        waiting = WaitingCall(exchange, stream, claim.record.step, call)
        record = self._recorder.run(waiting, mailbox, claim, None, stored.record.messages)
        if record is None:
            return self._events.poll_again(position, MIN_POLL_MS)
        return self._events.of_record(position, record)


def _expired(position: StreamPosition, reason: str) -> Sequence[StreamEvent]:
    observability.current().reason = reason
    return error_events(position.stream.request, QuestionExpired())


def error_events(request: RequestId, error: McpError) -> tuple[StreamEvent, ...]:
    """Return an error without an event id, because no event follows it."""
    return (StreamEvent(responses.error_message(request, error)),)
