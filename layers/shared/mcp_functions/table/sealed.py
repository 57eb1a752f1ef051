"""A table whose items say nothing to whoever reads the table: the envelope around each payload (envelope.md §12).

An item's key, version and end take part in the derivation of its key. So nobody who can write to the table can move an
item to another key, bring back an old version under a new number, or let it live longer.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import os
import struct
import time
from typing import TYPE_CHECKING, Any, cast

from mcp_functions.errors import (
    DeveloperError,
    InvalidRequestState,
    Misconfigured,
    StateTooLarge,
    TemporarilyUnavailable,
)
from mcp_functions.jsonrpc import dumps
from mcp_functions.table.dynamodb import MAX_BYTES, Row
from mcp_functions.table.items import Item, ItemTooLarge, Key, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.envelope import Codec, Envelope
    from mcp_functions.keys import Keys
    from mcp_functions.table.dynamodb import DynamoDb

log = logging.getLogger("mcp_functions")

LABEL = b"ks1/item"
TOO_LARGE = f"an item of {{}} bytes: the table takes {MAX_BYTES}. Keep references in it instead of documents"
_NONCE_BYTES = 16
_DIGEST_BYTES = 32


class SealedTable:
    """The items of one scope. It is a `Table`."""

    def __init__(  # noqa: PLR0913 - what is kept, how it is sealed, for whom, and for how long
        self,
        rows: DynamoDb,
        codec: Codec,
        service: str,
        *,
        max_age: int,
        now: Callable[[], float] = time.time,
        rand: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """Remember the table; no call is made.

        Args:
            rows: of the table.
            codec: what `envelope` makes, or an author's own.
            service: `<stack>/<function>`, or a shared audience: the first part of every key, by which a role's policy
                (`dynamodb:LeadingKeys`) keeps functions apart.
            max_age: seconds that an item may live after it was last written.
            now: unix seconds, wall clock.
            rand: `n` random bytes, for the nonce of a write.

        """
        self._rows, self._codec, self._service = rows, codec, service
        self._max_age, self._now, self._rand = max_age, now, rand
        self._envelope = cast("Envelope", codec) if getattr(codec, "knows_callers", False) else None

    def get(self, key: Key) -> Item | None:
        """Read an item, as `Table` says."""
        name = self._name(key)
        row = self._rows.read(name)
        # "DynamoDB automatically deletes expired items within a few days of their expiration time"
        if row is None or row.expires <= self._now():
            return None
        return Item(key, row.version, self._open(row), row.expires)

    def create(self, key: Key, payload: Mapping[str, Any], *, expires: int) -> Item:
        """Write an item that is not there, as `Table` says."""
        return self._write(Item(key, 1, payload, expires), over=None)

    def replace(self, item: Item, payload: Mapping[str, Any], *, expires: int | None = None) -> Item:
        """Write an item anew, as `Table` says."""
        ends = item.expires if expires is None else expires
        return self._write(Item(item.key, item.version + 1, payload, ends), over=item.version)

    def delete(self, item: Item) -> None:
        """Remove an item, as `Table` says."""
        self._rows.remove(self._name(item.key), item.version)

    def _name(self, key: Key) -> str:
        # The principal's digest has 43 characters and none of them is a slash; nor has a kind one.
        return f"{self._service}/{key.kind}/{key.principal or '-'}/{key.id}"

    def _write(self, item: Item, *, over: int | None) -> Item:
        now = int(self._now())
        if not now < item.expires <= now + self._max_age:
            message = f"an item of {item.key.kind!r} would live {item.expires - now} s, of at most {self._max_age}"
            raise DeveloperError(message)
        nonce = base64.urlsafe_b64encode(self._rand(_NONCE_BYTES)).rstrip(b"=").decode()
        row = Row(self._name(item.key), item.version, item.expires, nonce, "")
        row = row._replace(sealed=self._seal(row, item.payload))
        if row.size > MAX_BYTES:
            raise ItemTooLarge(TOO_LARGE.format(row.size))
        self._rows.write(row, over=over, now=now)
        return item

    def _seal(self, row: Row, payload: Mapping[str, Any]) -> str:
        try:
            written = dumps(payload).encode("utf-8", "surrogatepass")
        except (TypeError, ValueError, RecursionError):
            message = "what is kept in the table is not JSON"
            raise DeveloperError(message) from None
        try:
            if self._envelope:
                return self._envelope.seal(written, about=_about(row))
            return self._codec.seal(_digest(row) + written)
        except StateTooLarge:
            raise ItemTooLarge(TOO_LARGE.format(len(written))) from None

    def _open(self, row: Row) -> dict[str, Any]:
        try:
            payload: dict[str, Any] = json.loads(self._unseal(row).decode("utf-8", "surrogatepass"))
        except (InvalidRequestState, ValueError) as error:
            log.error("an item does not open: %s", getattr(error, "reason", "not JSON"))  # noqa: TRY400 - no traceback
            raise Unreadable from None
        return payload

    def _unseal(self, row: Row) -> bytes:
        if self._envelope:
            # Each item has a budget of its own for unwraps in vain: one that is damaged costs the others nothing.
            return self._envelope.unseal(row.sealed, caller=f"item:{row.key}", about=_about(row))
        opened = _unsealed(self._codec, row.sealed)
        if not hmac.compare_digest(opened[:_DIGEST_BYTES], _digest(row)):
            raise Unreadable
        return opened[_DIGEST_BYTES:]


def envelope(keys: Keys, *, max_age: int) -> Envelope:
    """Make what seals items; a token is as long as an item can be, and as old as one may get."""
    from mcp_functions.envelope import CEILING, Envelope  # noqa: PLC0415 - a seal of one's own needs no cryptography

    return Envelope(keys, label=LABEL, max_chars=CEILING, max_age=max_age)


def _unsealed(codec: Codec, sealed: str) -> bytes:
    """Ask an own codec: whatever it raises, an item that did not open is unreadable."""
    try:
        return bytes(codec.unseal(sealed))
    except (InvalidRequestState, TemporarilyUnavailable, Misconfigured):
        raise
    except Exception:  # noqa: BLE001 - nobody knows what an own codec raises; its text may hold anything
        raise Unreadable from None


def _about(row: Row) -> bytes:
    """Say what an item is bound to: its key, its version and its end (§12)."""
    name = row.key.encode()
    return struct.pack(">H", len(name)) + name + struct.pack(">QQ", row.version, row.expires)


def _digest(row: Row) -> bytes:
    """Say the same for a codec that knows no `about`: in front of the payload, inside the seal."""
    return hashlib.sha256(LABEL + b"\0" + _about(row)).digest()
