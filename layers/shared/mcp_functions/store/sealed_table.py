"""Stores items in DynamoDB. The payload of each item is sealed: encrypted and authenticated with a key from KMS.

To write an item (`table.py` shows an item and its row):

    1. seal the payload for this key, version and expiry time: with another one, the sealed text does not open
    2. if the row is large and there is a bucket, write the sealed text into it as an object (a blob), and seal a
       reference to the object into the row
    3. write the row, if DynamoDB still has the version that the caller has read; otherwise raise `Conflict`

To read an item, the table takes these steps backwards. A program that may write to DynamoDB, but has no data key,
cannot move a payload to another key, nor change its version or expiry time (envelope.md, section 12.2).

DynamoDB bills a row by its size: a unit for each KB written, and for each 4 KB read. So three limits keep one request
cheap: of what a client may have stored (`check_client_size`), of rows beside a bucket, and of reads of large rows.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import time
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.protocol.errors import Busy, DeveloperError, InvalidRequestState, StateTooLarge
from mcp_functions.protocol.json_writer import base64url, dumps
from mcp_functions.seal.budgets import TokenBuckets
from mcp_functions.seal.resets import PerProcess
from mcp_functions.store.blobs import BlobReference, ObjectNotFound
from mcp_functions.store.dynamodb import MAX_BYTES
from mcp_functions.store.table import Conflict, Item, ItemTooLarge, Key, Row, UnreadableItem, open_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.wire_types import JSONValue
    from mcp_functions.seal.envelope import Seal
    from mcp_functions.store.blobs import BlobStore
    from mcp_functions.store.dynamodb import DynamoDbTable

log = logging.getLogger("mcp_functions")

# What a client may have stored by one request, as JSON: a model writes about 8,000 tokens for it. With a question of a
# client of 2025, which is sealed twice, the row has 57 KB.
MAX_CLIENT_BYTES = 32_000
LARGE_ROW = 64_000  # bytes; beside a bucket no row is larger
# In each container, a caller may read so many larger rows at once, and then so many in a second.
LARGE_READS = 20
LARGE_READS_PER_SECOND = 2


class SealedTable:
    """A table of sealed items, for one Lambda function. Every method may also raise these errors.

    Raises:
        TemporarilyUnavailable: the table or KMS cannot answer now. A write may have happened; read the item again.
        Misconfigured: the operator must act.
    """

    def __init__(  # noqa: PLR0913 - storage, seal, key, lifetime and clock
        self,
        rows: DynamoDbTable,
        seal: Seal,
        key_prefix: str,
        *,
        max_age: int,
        blobs: BlobStore | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Keep the parts of the table; no request is sent. Every key begins with the prefix, `<stack>/<folder>`.

        An item lives for at most `max_age` seconds after a write. `blobs` is None if the deployment has no bucket.
        """
        self._rows = rows
        self._seal = seal
        self._key_prefix = key_prefix
        self._max_age = max_age
        self._now = now
        self._blobs = blobs
        self._large_reads = PerProcess(lambda: TokenBuckets(LARGE_READS, LARGE_READS_PER_SECOND))

    def check_client_size(self, data: JSONValue) -> None:
        """Refuse too much data of a client (ItemTooLarge). A bucket takes any size for the price of one write."""
        if self._blobs is None:
            size = len(_encode(data))
            if size > MAX_CLIENT_BYTES:
                remedy = "A deployment with a bucket (BlobBucket) keeps more"
                raise ItemTooLarge(reason=f"{size} bytes of a client, more than {MAX_CLIENT_BYTES}. {remedy}")

    def get(self, key: Key) -> Item | None:
        """Return an item as the last write left it (strongly consistent); None if it is absent or has expired.

        Raises:
            UnreadableItem: the item exists, but its seal does not open, or its object is gone.
            Busy: the caller has read too many large rows.
        """
        # `_read` gets the row, and then the object that the row names. If a writer replaced both in between, this
        # object is gone, and the second attempt finds the new one. The third attempt is for items that change often.
        for pause_before in (0.0, 0.0, 0.2):  # in seconds
            time.sleep(pause_before)
            try:
                return self._read(key)
            except ObjectNotFound:
                continue
        log.error("an item's object is gone, or this role may not read it")
        raise UnreadableItem

    def create(self, key: Key, payload: Mapping[str, Any], *, expires: int) -> Item:
        """Write a new item. `expires` is in unix seconds, and at most `max_age` seconds from now.

        Raises:
            Conflict: the item exists and has not expired.
            ItemTooLarge: the payload does not fit.
        """
        return self._write(Item(key, version=1, payload=payload, expires=expires), replaced_version=None)

    def replace(self, item: Item, payload: Mapping[str, Any], *, expires: int | None = None) -> Item:
        """Replace an item that was read or written before. Without `expires`, the item keeps its expiry time.

        Raises:
            Conflict: the item has another version now, or is gone.
            ItemTooLarge: the payload does not fit.
        """
        if expires is None:
            expires = item.expires
        new_item = Item(item.key, version=item.version + 1, payload=payload, expires=expires)
        written_item = self._write(new_item, replaced_version=item.version)
        self._delete_blob(item.blob)
        return written_item

    def delete(self, item: Item) -> None:
        """Delete an item, which may be gone already; Conflict if it has changed since it was read."""
        self._rows.delete(self._row_key(item.key), item.version)
        self._delete_blob(item.blob)

    def _read(self, key: Key) -> Item | None:
        row = self._read_row(self._row_key(key))
        # AWS, "Using time to live (TTL) in DynamoDB": "DynamoDB automatically deletes expired items within a few days
        # of their expiration time"
        if row is None or row.expires <= self._now():
            return None
        try:
            return self._open(key, row)
        except InvalidRequestState as error:
            reason = error.reason
        except ValueError:
            reason = "not JSON"
        # Only the reason is logged. The error is raised outside `except`, so that it has no cause: a traceback of the
        # cause could quote the item.
        log.error("an item does not open: %s", reason)
        raise UnreadableItem

    def _read_row(self, row_key: str) -> Row | None:
        """Read a row. A large one is charged to the budget of the caller; a worker of a task has no caller."""
        caller = observability.current().caller_id
        # The size is known only after the read, so the charge comes first.
        if caller and not self._large_reads().take(caller, 1, self._now()):
            raise Busy(reason="table_reads")
        row = None
        try:
            row = self._rows.read(row_key)
        finally:
            if caller and (row is None or row.size <= LARGE_ROW):
                self._large_reads().put_back(caller, 1, self._now())
        return row

    def _open(self, key: Key, row: Row) -> Item:
        """Return the item of a row; ObjectNotFound if its payload is in an object that is gone."""
        content = _decode(open_payload(self._seal, row, row.sealed))
        if not isinstance(content, list):  # a list refers to an object (`BlobReference`)
            return Item(key, version=row.version, payload=content, expires=row.expires)
        if self._blobs is None:
            log.error("an item has an object, and MCP_BLOBS is not set")
            raise UnreadableItem
        reference = BlobReference(*content)
        payload = _decode(self._blobs.get(row, reference))
        return Item(key, version=row.version, payload=payload, expires=row.expires, blob=reference.key)

    def _write(self, item: Item, *, replaced_version: int | None) -> Item:
        now = int(self._now())
        lifetime = item.expires - now
        if not 0 < lifetime <= self._max_age:
            raise DeveloperError(
                "an item of kind {kind!r} may live {most} s at most, and not {seconds} s",
                kind=item.key.kind,
                seconds=lifetime,
                most=self._max_age,
            )
        nonce = base64url(os.urandom(16))
        row_key = self._row_key(item.key)
        empty_row = Row(key=row_key, version=item.version, expires=item.expires, nonce=nonce, sealed="")
        row, blob = self._seal_row(empty_row, item.payload)
        try:
            self._rows.write(row, replaced_version=replaced_version, now=now)
        except Conflict:
            # The row was not written. After any other error, the row may have been written, and may need its object.
            self._delete_blob(blob)
            raise
        return dataclasses.replace(item, blob=blob)

    def _seal_row(self, row: Row, payload: Mapping[str, Any]) -> tuple[Row, str | None]:
        """Return the row with its payload sealed, and the key of the payload's object if it needs one."""
        plaintext = _encode(payload)
        sealed_row = self._seal_inside(row, plaintext)
        if sealed_row:
            return sealed_row, None
        if self._blobs is None:
            remedy = "Keep references in it instead of documents, or give the deployment a bucket (BlobBucket)"
            problem = f"sealed, it does not fit into an item of {MAX_BYTES} bytes"
            raise ItemTooLarge(reason=f"a payload of {len(plaintext)} bytes: {problem}. {remedy}")
        reference = self._blobs.put(row, plaintext)
        return row._replace(sealed=self._seal.seal(_encode(reference), about=row.about)), reference.key

    def _seal_inside(self, row: Row, plaintext: bytes) -> Row | None:
        """Return the row with its payload inside; None if it would be too large."""
        try:
            sealed_row = row._replace(sealed=self._seal.seal(plaintext, about=row.about))
        except StateTooLarge:  # the payload does not even fit into a token
            return None
        return sealed_row if sealed_row.size <= (LARGE_ROW if self._blobs else MAX_BYTES) else None

    def _row_key(self, key: Key) -> str:
        # Neither a kind nor the digest of a principal has a slash. So two keys never give the same text.
        return f"{self._key_prefix}/{key.kind}/{key.principal or '-'}/{key.id}"

    def _delete_blob(self, blob: str | None) -> None:
        if self._blobs and blob:
            self._blobs.delete(blob)


def _encode(payload: object) -> bytes:
    try:
        return dumps(payload).encode("utf-8", "surrogatepass")  # for half of a surrogate pair
    except (TypeError, ValueError, RecursionError):  # `from None`: the cause quotes it
        raise DeveloperError(rule="an item of the table must be JSON") from None


def _decode(plaintext: bytes) -> JSONValue:
    return json.loads(plaintext.decode("utf-8", "surrogatepass"))
