"""The mailbox stores one sealed item for each call that asks, for minutes: the messages that its client fetches next.

    asked    the client must answer a question
    running  a function runs the next round of the call
    working  the round ended for lack of time, and the client's next poll runs another one
    over     the call has ended, and its response waits for the client

The item says in which of these phases the call is, so an answer that arrives twice counts once. A function claims the
call before it runs it: it writes `running`, for the time of a lease. The table accepts only one of two such writes.
The call itself is in the item only in the phase `working`. In the phase `asked` the question's id holds it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

from mcp_functions import observability
from mcp_functions.legacy.runner import Call
from mcp_functions.legacy.sealed_ids import FETCH_SECONDS, item_name
from mcp_functions.protocol.errors import TemporarilyUnavailable
from mcp_functions.store import Conflict, Key, UnreadableItem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.dispatch.seal_factory import SealFactory
    from mcp_functions.legacy.sealed_ids import CallStream, IdSeals
    from mcp_functions.protocol.wire_types import RequestId
    from mcp_functions.settings import Settings
    from mcp_functions.store import Item

T = TypeVar("T")

KIND = "mailbox"  # the kind of these items in the table
LEASE_MARGIN = 2  # seconds between the end of a function and the end of its lease
PAUSES = (0.2, 0.4, 0.8, 1.6)  # seconds before each further attempt, while the table or KMS is unavailable
CONTENDED = "mailbox_contended"  # reasons in the log
UNREADABLE = "mailbox_unreadable"

Phase: TypeAlias = Literal["asked", "running", "working", "over"]


class CallRecord(NamedTuple):
    """The stored progress of one call. The item's format depends on these names."""

    nonce: str  # the random name of the call's stream
    step: int  # how many times the call has stopped for the client
    phase: Phase
    messages: Sequence[Mapping[str, Any]] = ()  # the messages that the client has not seen before this step
    call: Call | None = None  # the call that the next poll continues, in the phase `working`
    until: int = 0  # unix seconds: in the phase `asked`, the last for an answer; in `running`, the end of the lease


class StoredRecord(NamedTuple):
    """A record and the item that holds it."""

    record: CallRecord
    item: Item


class Mailbox:
    """Stores call records. Every method may raise TemporarilyUnavailable and Misconfigured."""

    def __init__(
        self,
        settings: Settings,
        seal_factory: SealFactory,
        seals: IdSeals,
        *,
        now: Callable[[], float],
        sleep: Callable[[float], object],
    ) -> None:
        """Use a table that keeps each record while a client may answer its question or fetch its outcome.

        Args:
            settings: the settings of the deployment.
            seal_factory: makes the sealed table; no request is sent yet.
            seals: the seals of the ids with which clients come back to a record.
            now: the clock, in unix seconds.
            sleep: waits some seconds between attempts to reach the table.
        """
        self.seals = seals
        self._seconds = settings.question_seconds + FETCH_SECONDS
        self._table = seal_factory.table(self._seconds)
        self._now = now
        self._sleep = sleep

    def create(self, stream: CallStream, record: CallRecord) -> None:
        """Store the first record of a call; it replaces a record of an earlier call with the same id.

        Raises:
            ItemTooLarge: the record does not fit into an item.
        """
        key = _key(stream.session, stream.request, stream.principal)
        try:
            self._table.create(key, record._asdict(), expires=self._expires())
        except Conflict:
            self._replace_earlier_call(key, record)

    def _replace_earlier_call(self, key: Key, record: CallRecord) -> None:
        # `from None`: the original exceptions would add nothing to the log.
        try:
            item = self._table.get(key)
            if item is None:
                raise TemporarilyUnavailable(CONTENDED)  # the earlier call's item was deleted just now
            self._write(item, record)
        except Conflict:
            raise TemporarilyUnavailable(CONTENDED) from None
        except UnreadableItem:
            raise TemporarilyUnavailable(UNREADABLE) from None

    def find(self, stream: CallStream) -> StoredRecord | None:
        """Return the record of a stream; None if it is gone or belongs to another call with the same id."""
        try:
            item = self._table.get(_key(stream.session, stream.request, stream.principal))
        except UnreadableItem:
            return None
        if item is None or item.payload["nonce"] != stream.nonce:
            return None
        record = CallRecord(**item.payload)
        if record.call:
            record = record._replace(call=Call(*record.call))  # a tuple is a list in JSON
        return StoredRecord(record, item)

    def claim(self, stored: StoredRecord, ends: float, deadline: float) -> StoredRecord | None:
        """Reserve a call for a function that ends at `ends`; None if another was faster. See `retry`."""
        lease_end = math.ceil(ends) + LEASE_MARGIN
        running = stored.record._replace(phase="running", messages=(), until=lease_end)
        return self.replace(stored, running, deadline)

    def replace(self, stored: StoredRecord, record: CallRecord, deadline: float) -> StoredRecord | None:
        """Replace a record by another; None if another writer was faster. See `retry`.

        Raises:
            ItemTooLarge: the record does not fit into an item.
        """
        try:
            return StoredRecord(record, self.retry(lambda: self._write(stored.item, record), deadline))
        except Conflict:
            return None

    def retry(self, attempt: Callable[[], T], deadline: float) -> T:
        """Return what `attempt` returns; repeat it while the table or KMS is unavailable, until the deadline.

        Raises:
            TemporarilyUnavailable: every attempt failed.
        """
        for pause in PAUSES:
            try:
                return attempt()
            except TemporarilyUnavailable:
                if self._now() + pause > deadline:
                    raise
                self._sleep(pause)
        return attempt()

    def delete(self, session: str, request: RequestId, principal: str | None) -> None:
        """Delete the record of a cancelled call. A function that still runs the call then cannot store its result."""
        notes = observability.current()
        try:
            item = self._table.get(_key(session, request, principal))
            if item:
                self._table.delete(item)
                notes.reason = "cancelled"
        except (Conflict, UnreadableItem):
            notes.reason = "not_cancelled"

    def _write(self, item: Item, record: CallRecord) -> Item:
        return self._table.replace(item, record._asdict(), expires=self._expires())

    def _expires(self) -> int:
        return int(self._now()) + self._seconds


def _key(session: str, request: RequestId, principal: str | None) -> Key:
    return Key(KIND, item_name(session, request), principal)
