"""A table with a record for each call that asks its user. It keeps the messages that the client has not fetched yet.

The handler of such a call runs in rounds, and the client answers between two rounds. Before a round, the record becomes
RUNNING. If an answer arrives twice, two functions try that, and the table accepts only one of the two writes (the other
gets a Conflict).
"""

from __future__ import annotations

import hashlib
import math
from enum import StrEnum
from time import sleep
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from mcp_functions import observability
from mcp_functions.legacy.call_ids import CallIds, LegacyCall
from mcp_functions.protocol.errors import TemporarilyUnavailable
from mcp_functions.protocol.json_writer import base64url, dumps
from mcp_functions.store import Conflict, Key, UnreadableItem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_functions.dispatch.seal_factory import SealFactory
    from mcp_functions.legacy.call_ids import CallStream
    from mcp_functions.protocol.wire_types import InputResponses, JSONRPCMessage, RequestId
    from mcp_functions.settings import Settings
    from mcp_functions.store import Item

T = TypeVar("T")


class Phase(StrEnum):
    """What a call waits for. The values are stored."""

    ASKED = "asked"  # the client's answer to a question
    RUNNING = "running"  # the function that runs the next round
    OUT_OF_TIME = "working"  # the client's next request, which has time for another round
    OVER = "over"  # nothing: the call has ended


class CallRecord(NamedTuple):
    """The stored progress of one call. The names of the fields are the keys in the item."""

    nonce: str  # distinguishes this call from an earlier one with the same request id
    step: int  # the number of the last event stream that was made for the client (`call_ids`)
    phase: Phase
    messages: Sequence[JSONRPCMessage] = ()  # of this stream; in OUT_OF_TIME of the next one
    call: LegacyCall | None = None  # in OUT_OF_TIME; in ASKED, the question's id holds it
    until: int = 0  # when ASKED or RUNNING ends without an answer or an outcome, in unix seconds


class StoredRecord(NamedTuple):
    """A record and the item that holds it."""

    record: CallRecord
    item: Item


RUNNING_MARGIN = 2  # seconds after the end of a function, until others stop waiting for its round
RETRY_PAUSES = (0.2, 0.4, 0.8, 1.6)  # seconds before each further attempt of `retry`


class CallStore:
    """Keeps the records of calls, and has the ids with which clients return to their calls.

    Every method may raise TemporarilyUnavailable and Misconfigured; `create` and `replace` raise ItemTooLarge for a
    record that does not fit into an item.
    """

    def __init__(self, settings: Settings, seal_factory: SealFactory, now: Callable[[], float]) -> None:
        """Use the deployment's table; no request is sent. `now` returns unix seconds."""
        self.ids = CallIds(seal_factory, settings)
        self._table = seal_factory.table(self.ids.max_age)
        self._now = now

    def create(self, stream: CallStream, record: CallRecord) -> None:
        """Store the first record of a call; it replaces a record of an earlier call with the same id."""
        key = _key(stream.session, stream.request, stream.principal)
        try:
            self._table.create(key, record._asdict(), expires=self._expires())
        except Conflict:
            self._replace_earlier_call(key, record)

    def _replace_earlier_call(self, key: Key, record: CallRecord) -> None:
        try:
            item = self._table.get(key)
            if item:
                self.replace(item, record)
            else:  # it was deleted just now
                self._table.create(key, record._asdict(), expires=self._expires())
        except (Conflict, UnreadableItem):
            raise TemporarilyUnavailable(reason="mailbox_contended") from None

    def check_size(self, call: LegacyCall, answers: InputResponses) -> None:
        """Check the size of what a client lets this server keep for one request; ItemTooLarge if it is too much."""
        self._table.check_client_size([call, answers])

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
            record = record._replace(call=LegacyCall(*record.call))  # a tuple is a list in JSON
        return StoredRecord(record, item)

    def begin_round(self, stored: StoredRecord, lambda_deadline: float) -> Item:
        """Let this function alone run the next round, until Lambda ends it; Conflict if another was faster."""
        until = math.ceil(lambda_deadline) + RUNNING_MARGIN
        running = CallRecord(stored.record.nonce, stored.record.step, Phase.RUNNING, until=until)
        return self.replace(stored.item, running)

    def replace(self, item: Item, record: CallRecord) -> Item:
        """Replace the record in an item by another; Conflict if another writer was faster."""
        return self._table.replace(item, record._asdict(), expires=self._expires())

    def retry(self, attempt: Callable[[], T], deadline: float) -> T:
        """Return what `attempt` returns; repeat it until the deadline while the table or KMS is unavailable."""
        for pause in RETRY_PAUSES:
            try:
                return attempt()
            except TemporarilyUnavailable:
                if self._now() + pause > deadline:
                    raise
                sleep(pause)
        return attempt()

    def delete(self, session: str, request_id: RequestId, principal: str | None) -> None:
        """Delete the record of a cancelled call. A function that still runs the call then cannot store its result."""
        notes = observability.current()
        try:
            item = self._table.get(_key(session, request_id, principal))
            if item:
                self._table.delete(item)
                notes.reason = "cancelled"
        except (Conflict, UnreadableItem):
            notes.reason = "not_cancelled"

    def _expires(self) -> int:
        return int(self._now()) + self.ids.max_age  # until no id names the record any more


ID_BYTES = 24  # bytes of the digest that is the id of an item


def _key(session: str, request_id: RequestId, principal: str | None) -> Key:
    """Return the key of the item for one request of one session.

    A cancellation names only the request, so both ids must be enough to find the item. Another session cannot guess it.
    """
    text = f"ks1/mailbox\0{session}\0{dumps(request_id)}"
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return Key("mailbox", base64url(digest[:ID_BYTES]), principal)
