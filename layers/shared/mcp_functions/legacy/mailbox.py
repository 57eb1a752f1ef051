"""The mailbox stores one sealed item for each call that asks, for minutes: the messages that its client fetches next.

The item also says how far the call has come, so an answer that arrives twice counts once.
The call itself is in the item only if it continues without a question, because an event id is too short for it.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

from mcp_functions import observability
from mcp_functions.legacy.runner import Call
from mcp_functions.legacy.sealed_ids import item_name, new_nonce
from mcp_functions.protocol.errors import TemporarilyUnavailable
from mcp_functions.store import Conflict, Key, UnreadableItem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.legacy.sealed_ids import CallStream
    from mcp_functions.protocol.wire_types import RequestId
    from mcp_functions.store import Item, SealedTable

T = TypeVar("T")

KIND = "mailbox"
LEASE_MARGIN = 2  # seconds after the end of a function at which its lease ends
ATTEMPTS, PAUSE_SECONDS = 5, 0.2  # while the table is unavailable; each pause is twice the one before

# asked: the client must answer. running: a function runs the round. working: the next poll runs another round.
# over: the call has ended.
Phase: TypeAlias = Literal["asked", "running", "working", "over"]


class CallRecord(NamedTuple):
    """The stored progress of one call. The item's format depends on these names."""

    nonce: str  # of the call's stream
    step: int  # how many times the call has stopped for the client
    phase: Phase
    messages: Sequence[Mapping[str, Any]] = ()  # those that the client has not seen before this step
    call: Call | None = None  # continues at the next poll, in the phase `working`
    until: int = 0  # unix seconds until which an answer counts, or until which a running function holds its lease
    by: str = ""  # a random name of the function that runs the call, by which it recognizes an unconfirmed write


class StoredRecord(NamedTuple):
    """A record and the item that holds it."""

    record: CallRecord
    item: Item


class Mailbox:
    """Stores call records. Every method may raise TemporarilyUnavailable and Misconfigured."""

    def __init__(
        self, table: SealedTable, *, seconds: int, now: Callable[[], float], sleep: Callable[[float], object]
    ) -> None:
        """Use a table that keeps each record for `seconds` after its last write; `now` is in unix seconds."""
        self._table, self._seconds, self._now, self._sleep = table, seconds, now, sleep

    def create(self, stream: CallStream, record: CallRecord) -> None:
        """Store the first record of a call; it replaces a record of an earlier call with the same id.

        Raises:
            ItemTooLarge: the record does not fit into an item.
        """
        key, reason = _key(stream), "mailbox_contended"
        with suppress(Conflict):
            self._table.create(key, record._asdict(), expires=self._expires())
            return
        try:
            item = self._table.get(key)
            if item:
                self._write(item, record)
                return
        except Conflict:
            pass
        except UnreadableItem:
            reason = "mailbox_unreadable"
        raise TemporarilyUnavailable(reason)

    def find(self, stream: CallStream) -> StoredRecord | None:
        """Return the record of a stream; None if it is gone or belongs to another call with the same id."""
        try:
            item = self._table.get(_key(stream))
        except UnreadableItem:
            return None
        if item is None or item.payload["nonce"] != stream.nonce:
            return None
        call = item.payload["call"]
        return StoredRecord(CallRecord(**{**item.payload, "call": Call(*call) if call else None}), item)

    def claim(self, stored: StoredRecord, ends: float, deadline: float) -> StoredRecord | None:
        """Reserve a call for a function that ends at `ends`; None if another was faster. See `retry`.

        Raises:
            TemporarilyUnavailable, Misconfigured: the table is unavailable, and the caller must not run the call.
        """
        until = math.ceil(ends) + LEASE_MARGIN
        record = stored.record._replace(phase="running", messages=(), until=until, by=new_nonce())
        return self.retry(lambda: self._replace(stored, record) or self._own_claim(stored, record), deadline)

    def _own_claim(self, stored: StoredRecord, record: CallRecord) -> StoredRecord | None:
        """Return the claim if an unconfirmed write of it succeeded."""
        try:
            item = self._table.get(stored.item.key)
        except UnreadableItem:
            return None
        return StoredRecord(record, item) if item and item.payload["by"] == record.by else None

    def replace(self, stored: StoredRecord, record: CallRecord, deadline: float) -> bool:
        """Replace a record by another; False if another writer was faster. See `retry`."""
        return self.retry(lambda: self._replace(stored, record), deadline) is not None

    def _replace(self, stored: StoredRecord, record: CallRecord) -> StoredRecord | None:
        try:
            return StoredRecord(record, self._write(stored.item, record))
        except Conflict:
            return None

    def retry(self, attempt: Callable[[], T], deadline: float) -> T:
        """Return what `attempt` returns; repeat it while the table or KMS is unavailable, until the deadline.

        Raises:
            TemporarilyUnavailable: every attempt failed.
        """
        for number in range(ATTEMPTS - 1):
            pause = PAUSE_SECONDS * 2**number
            try:
                return attempt()
            except TemporarilyUnavailable:
                if self._now() + pause > deadline:
                    raise
                self._sleep(pause)
        return attempt()

    def delete(self, session: str, request: RequestId, principal: str | None) -> None:
        """Delete the record of a cancelled call. A function that still runs the call then cannot store its result."""
        try:
            item = self._table.get(Key(KIND, item_name(session, request), principal))
            if item:
                self._table.delete(item)
                observability.current().reason = "cancelled"
        except (Conflict, UnreadableItem):
            observability.current().reason = "not_cancelled"

    def _write(self, item: Item, record: CallRecord) -> Item:
        return self._table.replace(item, record._asdict(), expires=self._expires())

    def _expires(self) -> int:
        return int(self._now()) + self._seconds


def _key(stream: CallStream) -> Key:
    return Key(KIND, item_name(stream.session, stream.request), stream.principal)
