"""Writes the events of a waiting call: the stored messages, and the ids with which its client resumes the stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions import observability
from mcp_functions.legacy import responses, stream_ids
from mcp_functions.legacy.responses import StreamEvent
from mcp_functions.legacy.stream_ids import StreamPosition
from mcp_functions.protocol.errors import InternalError

if TYPE_CHECKING:
    from mcp_functions.legacy.mailbox import CallRecord
    from mcp_functions.legacy.token_seals import TokenSeal
    from mcp_functions.protocol.errors import McpError
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


def error_events(request: RequestId, error: McpError) -> tuple[StreamEvent, ...]:
    """Return an error without an event id, because no event follows it."""
    return (StreamEvent(responses.error_message(request, error)),)
