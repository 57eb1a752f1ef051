"""What waits for a client to come for it: one item for each call that asks, sealed, for minutes.

It holds outgoing messages, and how far the call has come; so an answer that is delivered twice counts once, whoever
brings it. Only a call that has to go on without a question is in there itself: a header could not carry it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from mcp_functions import observability
from mcp_functions.legacy.running import Call
from mcp_functions.protocol.errors import TemporarilyUnavailable
from mcp_functions.store import Conflict, Key, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.legacy.tickets import Stream
    from mcp_functions.store import Item, Table

KIND = "mailbox"
LEASE_MARGIN = 2  # seconds after the end of a function at which nobody waits for it any more
ATTEMPTS, PAUSE_SECONDS = 5, 0.2  # at a table that has trouble; each pause is twice the one before

# asked: the client's turn. running: a function's. working: whoever comes next runs it. over: nothing follows.
Phase: TypeAlias = Literal["asked", "running", "working", "over"]


class Letter(NamedTuple):
    """What the mailbox holds of one call.

    Attributes:
        nonce: of its stream.
        step: how many times it has stopped for the client.
        phase: whose turn it is.
        messages: what the client has not seen before this step.
        call: that goes on when the client comes, if it is `working`.
        until: unix seconds until which an answer counts, or after which whoever runs it is no more.
        by: who runs it: a write that nobody confirmed can be told from somebody else's.

    """

    nonce: str
    step: int
    phase: Phase
    messages: Sequence[Mapping[str, Any]] = ()
    call: Call | None = None
    until: int = 0
    by: str = ""


class Found(NamedTuple):
    """A letter, and the item that it was in."""

    letter: Letter
    item: Item


class Mailbox:
    """Keeps letters, each for as long as its client may come for it."""

    def __init__(
        self, table: Table, *, seconds: int, now: Callable[[], float], sleep: Callable[[float], object]
    ) -> None:
        """Take the table, and how many seconds a letter is kept after it was last written."""
        self._table, self._seconds, self._now, self._sleep = table, seconds, now, sleep

    def open(self, stream: Stream, letter: Letter) -> None:
        """Begin with a letter; what an earlier call of the same id left is forgotten.

        Raises:
            ItemTooLarge: it does not fit.
            TemporarilyUnavailable, Misconfigured: the table cannot take it.

        """
        key, reason = self._key(stream), "mailbox_contended"
        try:
            self._table.create(key, letter._asdict(), expires=self._ends())
        except Conflict:
            try:
                if found := self._table.get(key):
                    self._replace(found, letter)
                    return
            except Conflict:
                pass
            except Unreadable:
                reason = "mailbox_unreadable"
            raise TemporarilyUnavailable(reason) from None

    def find(self, stream: Stream) -> Found | None:
        """Read the letter of a stream; None if it is gone, or another call's of the same id.

        Raises:
            TemporarilyUnavailable, Misconfigured: the table cannot tell.

        """
        try:
            item = self._table.get(self._key(stream))
        except Unreadable:
            return None
        if item is None or item.payload["nonce"] != stream.nonce:
            return None
        call = item.payload["call"]
        return Found(Letter(**{**item.payload, "call": Call(*call) if call else None}), item)

    def claim(self, found: Found, ends: float, *, by: str) -> Found | None:
        """Take a call on, until a function ends; None if somebody else was faster.

        Args:
            found: as it was read.
            ends: unix seconds at which the function ends.
            by: who claims, however often: a name that nobody else has.

        Raises:
            TemporarilyUnavailable, Misconfigured: the table cannot take it, and nothing may run.

        """
        until = math.ceil(ends) + LEASE_MARGIN
        letter = found.letter._replace(phase="running", messages=(), until=until, by=by)
        return self.replace(found, letter) or self._ours(found, letter)

    def _ours(self, found: Found, letter: Letter) -> Found | None:
        """Find out whether it was this claim that came first: it may have been taken, and nobody said so."""
        try:
            item = self._table.get(found.item.key)
        except Unreadable:
            return None
        return Found(letter, item) if item and item.payload["by"] == letter.by else None

    def replace(self, found: Found, letter: Letter) -> Found | None:
        """Write a letter in the place of the one that was read; None if somebody else was faster."""
        try:
            return Found(letter, self._replace(found.item, letter))
        except Conflict:
            return None

    def patiently(self, attempt: Callable[[], Any], deadline: float) -> Any:  # noqa: ANN401 - whatever it returns
        """Try again while the table or KMS has trouble, as long as somebody waits.

        Raises:
            TemporarilyUnavailable: it had no end.

        """
        for number in range(ATTEMPTS):
            pause = PAUSE_SECONDS * 2**number
            try:
                return attempt()
            except TemporarilyUnavailable:
                if number == ATTEMPTS - 1 or self._now() + pause > deadline:
                    raise
                self._sleep(pause)
        return None

    def forget(self, name: str, principal: str | None) -> None:
        """Remove what is kept under a name: its client cancelled. Who runs it now keeps its result to itself."""
        key = Key(KIND, name, principal)
        try:
            if found := self._table.get(key):
                self._table.delete(found)
                observability.current().reason = "cancelled"
        except (Conflict, Unreadable):
            observability.current().reason = "not_cancelled"

    def _replace(self, item: Item, letter: Letter) -> Item:
        return self._table.replace(item, letter._asdict(), expires=self._ends())

    def _key(self, stream: Stream) -> Key:
        return Key(KIND, stream.item, stream.principal)

    def _ends(self) -> int:
        return int(self._now()) + self._seconds
