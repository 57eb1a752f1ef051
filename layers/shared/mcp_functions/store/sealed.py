"""A table whose items say nothing to whoever reads the table: the envelope around each payload (envelope.md §12).

An item's key, version and end take part in the derivation of its key. So nobody who can write to the table can move an
item to another key, bring back an old version under a new number, or let it live longer. What does not fit into an item
goes to a bucket, if there is one.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import time
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import DeveloperError, InvalidRequestState, StateTooLarge
from mcp_functions.protocol.json_writer import base64url, dumps
from mcp_functions.store.blobs import Blobs, Missing, referred
from mcp_functions.store.dynamodb import MAX_BYTES, Row
from mcp_functions.store.items import Conflict, Item, ItemTooLarge, Key, Unreadable
from mcp_functions.store.seals import BLOB_LABEL, Seal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.seal.envelope import Codec
    from mcp_functions.store.blobs import Bucket, Reference
    from mcp_functions.store.dynamodb import DynamoDb

log = logging.getLogger("mcp_functions")

TOO_LARGE = (
    f"an item of {{}} bytes: the table takes {MAX_BYTES}. Keep references in it instead of documents,"
    " or give the deployment a bucket (BlobBucket)"
)
LATE = (0.0, 0.2)  # seconds after which an object is looked for again: its item may have been replaced, or it is late
_NONCE_BYTES = 16


class SealedTable:
    """The items of one scope. It is a `Table`."""

    def __init__(  # noqa: PLR0913 - what is kept, how it is sealed, for whom, and for how long
        self,
        rows: DynamoDb,
        codec: Codec,
        service: str,
        *,
        max_age: int,
        blobs: tuple[Bucket, Codec] | None = None,
        now: Callable[[], float] = time.time,
        rand: Callable[[int], bytes] = os.urandom,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Remember the table; no call is made.

        Args:
            rows: of the table.
            codec: what `envelope` makes, or an author's own.
            service: `<stack>/<function>`, or a shared audience: the first part of every key, by which a role's policy
                (`dynamodb:LeadingKeys`) keeps functions apart.
            max_age: seconds that an item may live after it was last written.
            blobs: the bucket for what does not fit into an item, and what seals it (`envelope` with BLOB_LABEL, or an
                author's own); None: it is refused.
            now: unix seconds, wall clock.
            rand: `n` random bytes, for the nonce of a write.
            sleep: waits, for seconds, before an object is looked for again.

        """
        self._rows, self._seal, self._service = rows, Seal(codec), service
        self._max_age, self._now, self._rand, self._sleep = max_age, now, rand, sleep
        self._blobs = Blobs(blobs[0], Seal(blobs[1], BLOB_LABEL), service, rand) if blobs else None

    def get(self, key: Key) -> Item | None:
        """Read an item, as `Table` says."""
        name = self._name(key)
        for pause in (*LATE, None):
            row = self._rows.read(name)
            # "DynamoDB automatically deletes expired items within a few days of their expiration time"
            if row is None or row.expires <= self._now():
                return None
            try:
                return self._opened(key, row)
            except Missing:
                if pause is not None:
                    self._sleep(pause)
        log.error("an item's object is gone, or this role may not read it")
        raise Unreadable

    def create(self, key: Key, payload: Mapping[str, Any], *, expires: int) -> Item:
        """Write an item that is not there, as `Table` says."""
        return self._write(Item(key, 1, payload, expires), over=None)

    def replace(self, item: Item, payload: Mapping[str, Any], *, expires: int | None = None) -> Item:
        """Write an item anew, as `Table` says."""
        ends = item.expires if expires is None else expires
        after = self._write(Item(item.key, item.version + 1, payload, ends), over=item.version)
        self._remove(item.blob)
        return after

    def delete(self, item: Item) -> None:
        """Remove an item, as `Table` says."""
        self._rows.remove(self._name(item.key), item.version)
        self._remove(item.blob)

    def _name(self, key: Key) -> str:
        # The principal's digest has 43 characters and none of them is a slash; nor has a kind one.
        return f"{self._service}/{key.kind}/{key.principal or '-'}/{key.id}"

    def _write(self, item: Item, *, over: int | None) -> Item:
        now = int(self._now())
        if not now < item.expires <= now + self._max_age:
            rule = "an item of {kind!r} would live {seconds} s, of at most {most}"
            raise DeveloperError(rule, kind=item.key.kind, seconds=item.expires - now, most=self._max_age)
        nonce = base64url(self._rand(_NONCE_BYTES))
        row, blob = self._sealed(Row(self._name(item.key), item.version, item.expires, nonce, ""), item.payload)
        try:
            self._rows.write(row, over=over, now=now)
        except Conflict:  # and after anything else it may have been written
            self._remove(blob)
            raise
        return dataclasses.replace(item, blob=blob)

    def _sealed(self, row: Row, payload: Mapping[str, Any]) -> tuple[Row, str | None]:
        """Seal a payload into its row, or into an object that the row names."""
        written = _json(payload)
        sealed, size = self._fitting(row, written)
        if sealed:
            return sealed, None
        if self._blobs is None:
            raise ItemTooLarge(TOO_LARGE.format(size))
        reference: Reference = self._blobs.put(row, written)
        return row._replace(sealed=self._seal.seal(row, _json(reference))), reference.key

    def _fitting(self, row: Row, written: bytes) -> tuple[Row | None, int]:
        """Return the row with what it says, None if that does not fit; and how large it is."""
        try:
            sealed = row._replace(sealed=self._seal.seal(row, written))
        except StateTooLarge:
            return None, len(written)
        return (sealed if sealed.size <= MAX_BYTES else None), sealed.size

    def _opened(self, key: Key, row: Row) -> Item:
        try:
            said = _read(self._seal.unseal(row, row.sealed))
            reference = referred(said)
            if reference and self._blobs is None:
                log.error("an item has an object, and MCP_BLOBS is not set")
                raise Unreadable
            payload = _read(self._blobs.get(row, reference)) if reference and self._blobs else said
        except (InvalidRequestState, ValueError) as error:
            log.error("an item does not open: %s", getattr(error, "reason", "not JSON"))  # noqa: TRY400 - no traceback
            raise Unreadable from None
        return Item(key, row.version, payload, row.expires, reference.key if reference else None)

    def _remove(self, blob: str | None) -> None:
        if self._blobs:
            self._blobs.remove(blob)


def _json(payload: object) -> bytes:
    try:
        return dumps(payload).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError):
        message = "what is kept in the table is not JSON"
        raise DeveloperError(message) from None


def _read(written: bytes) -> Any:  # noqa: ANN401 - any JSON
    return json.loads(written.decode("utf-8", "surrogatepass"))
