"""Resumes the stream of a waiting call: its client fetches the messages that the call has left since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions import observability
from mcp_functions.legacy import stream_ids
from mcp_functions.legacy.errors import QuestionExpired
from mcp_functions.legacy.round_records import WaitingCall
from mcp_functions.legacy.stream_events import DELIVERABLE, MAX_POLL_MS, MIN_POLL_MS, StreamEvents, error_events
from mcp_functions.protocol.errors import McpError, OutcomeUnknown, TemporarilyUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_functions.legacy.exchange import Exchange
    from mcp_functions.legacy.mailbox import Mailbox, StoredRecord
    from mcp_functions.legacy.responses import StreamEvent
    from mcp_functions.legacy.round_records import RoundRecorder
    from mcp_functions.legacy.runner import Call
    from mcp_functions.legacy.stream_ids import StreamPosition
    from mcp_functions.legacy.token_seals import TokenSeal


class StreamResumer:
    """Resumes streams, and runs another round of a call that ran out of time."""

    def __init__(
        self, seal: TokenSeal, mailbox: Callable[[], Mailbox], recorder: RoundRecorder, now: Callable[[], float]
    ) -> None:
        """Use the seal of event ids, the mailbox, a recorder of rounds, and a clock (unix seconds)."""
        self._seal, self._events, self._mailbox = seal, StreamEvents(seal), mailbox
        self._recorder, self._now = recorder, now

    def resume(self, exchange: Exchange, last_event_id: str) -> Sequence[StreamEvent] | None:
        """Return the events after an event; None if no event can follow it.

        Raises:
            SessionNotFound: this client did not receive the event.

        """
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
