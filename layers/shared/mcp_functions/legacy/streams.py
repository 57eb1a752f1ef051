"""The event streams of waiting calls: a client returns with the id of the last event, and gets what came after it.

The id is sealed and holds a position in the stream. The mailbox has the call's record: its messages, and its phase. A
client that returns too early gets an event without a message, after which it waits and returns again (a poll).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions import observability
from mcp_functions.legacy import responses
from mcp_functions.legacy.errors import QuestionExpired
from mcp_functions.legacy.responses import StreamEvent
from mcp_functions.legacy.round_records import WaitingCall
from mcp_functions.legacy.sealed_ids import StreamPosition, open_event_id
from mcp_functions.protocol.errors import InternalError, McpError, OutcomeUnknown, TemporarilyUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.legacy.exchange import Exchange
    from mcp_functions.legacy.mailbox import CallRecord, Mailbox, StoredRecord
    from mcp_functions.legacy.round_records import RoundRecorder
    from mcp_functions.legacy.sealed_ids import IdSeal

    Events = tuple[StreamEvent, ...]

MIN_POLL_MS = 500  # the first pause before a client returns
MAX_POLL_MS = 5000  # the longest pause
POLL_GROWTH = 1.4  # each pause is so many times the one before
# The count of polls stops here: 500 ms * 1.4**7 is more than MAX_POLL_MS, so a higher count would change no pause. The
# client could poll for hours, and without a limit the power would become too large for a float.
MAX_POLLS = 7
DELIVERABLE = ("asked", "over")  # phases that have messages for the client


class Streams:
    """Resumes streams, and runs another round of a call that ran out of time."""

    def __init__(
        self, seal: IdSeal, mailbox: Callable[[], Mailbox], recorder: RoundRecorder, now: Callable[[], float]
    ) -> None:
        """Use the seal of event ids, the mailbox, a recorder of rounds, and a clock (unix seconds)."""
        self._event_seal = seal
        self._mailbox = mailbox
        self._recorder = recorder
        self._now = now

    def events_after(self, position: StreamPosition, record: CallRecord) -> Events:
        """Return the events that follow a position: an id to resume from, the messages, and the new position."""
        if record.phase not in DELIVERABLE:
            return self._poll(position, MIN_POLL_MS)
        if not responses.is_unicode(record.messages):  # Lambda's runtime cannot encode this
            return _error(position, "the function returned half of a surrogate pair", InternalError())
        # The first event repeats the old position: a client that loses the rest of the stream resumes from there.
        first = StreamEvent(None, self._event_id(position._replace(polls=0)), MIN_POLL_MS)
        *before, last = record.messages
        reached = StreamPosition(position.stream, record.step, last=record.phase == "over")
        return (first, *map(StreamEvent, before), StreamEvent(last, self._event_id(reached)))

    def resume(self, exchange: Exchange, last_event_id: str) -> Events | None:
        """Return the events after an event; None if no event can follow it."""
        position = open_event_id(last_event_id, self._event_seal, exchange)
        if position.last:
            return None
        notes = observability.current()
        notes.conclude("complete")
        try:
            stored = self._mailbox().find(position.stream)
        except TemporarilyUnavailable as error:
            notes.reason = error.reason
            return self._poll(position, MAX_POLL_MS)
        except McpError as error:
            notes.misconfigured = True
            return _error(position, error.reason, error)
        if stored is None:
            return _error(position, "nothing_waits", QuestionExpired())
        return self._following(exchange, position, stored)

    def _following(self, exchange: Exchange, position: StreamPosition, stored: StoredRecord) -> Events:
        record = stored.record
        if record.step > position.step and record.phase in DELIVERABLE:
            return self.events_after(position, record)
        is_in_time = self._now() < record.until
        if record.phase == "running":
            if is_in_time:
                return self._poll(position, MIN_POLL_MS)
            return _error(position, "runner_died", OutcomeUnknown())
        if record.phase == "asked" and is_in_time:
            pause = int(MIN_POLL_MS * POLL_GROWTH**position.polls)
            return self._poll(position, min(pause, MAX_POLL_MS))
        if record.phase == "working" and record.call:
            waiting = WaitingCall(exchange, position.stream, record.step, record.call)
            return self._run(position, waiting, stored)
        return _error(position, "not_answered", QuestionExpired())

    def _run(self, position: StreamPosition, waiting: WaitingCall, stored: StoredRecord) -> Events:
        """Run another round of a call that ran out of time: this request has time for it."""
        mailbox = self._mailbox()
        exchange = waiting.exchange
        try:
            claim = mailbox.claim(stored, exchange.ends, exchange.deadline)
        except McpError as error:
            observability.current().reason = error.reason
            return self._poll(position, MIN_POLL_MS)
        if claim is None:  # another poll runs the round
            return self._poll(position, MIN_POLL_MS)
        # No answers: the round ran out of time, and asked nothing.
        record = self._recorder.run(waiting, mailbox, claim, answers=None, notifications=stored.record.messages)
        if record is None:
            return self._poll(position, MIN_POLL_MS)
        return self.events_after(position, record)

    def _poll(self, position: StreamPosition, milliseconds: int) -> Events:
        """Return the event after which the client polls again, after a pause."""
        polls = min(position.polls + 1, MAX_POLLS)
        return (StreamEvent(None, self._event_id(position._replace(polls=polls)), milliseconds),)

    def _event_id(self, position: StreamPosition) -> str:
        return self._event_seal.seal(position._asdict())


def _error(position: StreamPosition, reason: str | None, error: McpError) -> Events:
    """Note a reason, and return an error without an event id, because no event follows it."""
    observability.current().reason = reason
    return (StreamEvent(responses.error_message(position.stream.request, error)),)
