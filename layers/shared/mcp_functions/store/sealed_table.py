"""A table whose payloads are sealed: encrypted and authenticated with a key from KMS (envelope.md, section 12).

    Item (table.py)      what callers read and write: a key, a version, a payload of JSON, an expiry time
    Row (dynamodb.py)    what DynamoDB stores: the same, with a token in place of the payload
    token                the sealed payload, a text that `ItemSeal` makes for one row, and opens for the same row only
    blob (blobs.py)      an object in a bucket, with a token that does not fit into a row; the row names the object

    Item    Key("conversation", "f1")       version 3    {"round": 2, …}    expires 1790000000
    Row     "shop/pay/conversation/-/f1"    version 3    "ks1.…"            expires 1790000000

A token is bound to the row's key, version and expiry time. So a writer without the data key cannot move an item to
another key, present an old version as the current one, or change when the item expires.
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
from mcp_functions.store.blobs import ObjectNotFound, blob_reference
from mcp_functions.store.dynamodb import MAX_BYTES, Row
from mcp_functions.store.item_seal import ItemSeal
from mcp_functions.store.table import Conflict, Item, ItemTooLarge, Key, UnreadableItem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.wire_types import JSONValue
    from mcp_functions.seal.envelope import Seal
    from mcp_functions.store.blobs import BlobStore
    from mcp_functions.store.dynamodb import DynamoDbTable

log = logging.getLogger("mcp_functions")

# A reader gets the row first, and then its object. If a writer replaced both in between, the object is gone, and the
# second attempt finds the new one. The third, after a pause, is for an item that is written very often.
READ_ATTEMPTS = 3
PAUSE_BEFORE_LAST_READ = 0.2  # seconds
_NONCE_BYTES = 16  # random bytes that identify one write


class SealedTable:
    """The items of one function. Every method may also raise these errors.

    Raises:
        TemporarilyUnavailable: the table or KMS cannot answer now. A write may have happened; read the item again.
        Misconfigured: the operator must act.
    """

    def __init__(  # noqa: PLR0913 - storage, seal, scope, lifetime and the sources that tests replace
        self,
        rows: DynamoDbTable,
        seal: Seal,
        service: str,
        *,
        max_age: int,
        blobs: BlobStore | None = None,
        now: Callable[[], float] = time.time,
        rand: Callable[[int], bytes] = os.urandom,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Keep the parts of the table; no request is sent.

        Args:
            rows: the rows of the DynamoDB table.
            seal: the seal of payloads in items.
            service: the first part of every key: the stack, a slash, and the function's folder.
            max_age: the longest time that an item lives after a write, in seconds.
            blobs: the objects of large payloads; None if the deployment has no bucket.
            now: the clock, in unix seconds.
            rand: the function that returns a number of random bytes.
            sleep: the function that waits some seconds.
        """
        self._rows = rows
        self._seal = ItemSeal(seal)
        self._service = service
        self._max_age = max_age
        self._now = now
        self._rand = rand
        self._sleep = sleep
        self._blobs = blobs

    def get(self, key: Key) -> Item | None:
        """Return an item as the last write left it (strongly consistent); None if it is absent or has expired.

        Raises:
            UnreadableItem: the item exists, and its seal does not open.
        """
        for attempt in range(1, READ_ATTEMPTS + 1):
            if attempt == READ_ATTEMPTS:
                self._sleep(PAUSE_BEFORE_LAST_READ)
            try:
                return self._read(key)
            except ObjectNotFound:
                continue
        log.error("an item's object is gone, or this role may not read it")
        raise UnreadableItem

    def create(self, key: Key, payload: Mapping[str, Any], *, expires: int) -> Item:
        """Write a new item, which expires at unix seconds that are at most `max_age` from now.

        Raises:
            Conflict: the item exists and has not expired.
            ItemTooLarge: the payload does not fit.
        """
        return self._write(Item(key, 1, payload, expires), replaced_version=None)

    def replace(self, item: Item, payload: Mapping[str, Any], *, expires: int | None = None) -> Item:
        """Replace an item that was read or written before; without `expires` it keeps its expiry time.

        Raises:
            Conflict: the item has another version now, or is gone.
            ItemTooLarge: the payload does not fit.
        """
        if expires is None:
            expires = item.expires
        after = self._write(Item(item.key, item.version + 1, payload, expires), replaced_version=item.version)
        self._delete_blob(item.blob)
        return after

    def delete(self, item: Item) -> None:
        """Delete an item, if it has not changed since it was read. An item that is gone already is no conflict.

        Raises:
            Conflict: the item has another version now.
        """
        self._rows.delete(self._row_key(item.key), item.version)
        self._delete_blob(item.blob)

    def _read(self, key: Key) -> Item | None:
        row = self._rows.read(self._row_key(key))
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
        # The reason alone is logged, and the error has no cause: a traceback could quote the item.
        log.error("an item does not open: %s", reason)
        raise UnreadableItem

    def _open(self, key: Key, row: Row) -> Item:
        """Return the item of a row, whose payload may be in an object; ObjectNotFound if that is gone."""
        payload = _decode(self._seal.unseal(row, row.sealed))
        reference = blob_reference(payload)
        if reference is None:
            return Item(key, row.version, payload, row.expires)
        if self._blobs is None:
            log.error("an item has an object, and MCP_BLOBS is not set")
            raise UnreadableItem
        payload = _decode(self._blobs.get(row, reference))
        return Item(key, row.version, payload, row.expires, reference.key)

    def _write(self, item: Item, *, replaced_version: int | None) -> Item:
        now = int(self._now())
        if not now < item.expires <= now + self._max_age:
            rule = "an item of kind {kind!r} may live {most} s at most, and not {seconds} s"
            raise DeveloperError(rule, kind=item.key.kind, seconds=item.expires - now, most=self._max_age)
        nonce = base64url(self._rand(_NONCE_BYTES))
        unsealed = Row(self._row_key(item.key), item.version, item.expires, nonce, sealed="")
        row, blob = self._seal_row(unsealed, item.payload)
        try:
            self._rows.write(row, replaced_version=replaced_version, now=now)
        except Conflict:
            # The row was not written. After any other error it may have been written, and then it needs the object.
            self._delete_blob(blob)
            raise
        return dataclasses.replace(item, blob=blob)

    def _seal_row(self, row: Row, payload: Mapping[str, Any]) -> tuple[Row, str | None]:
        """Return the row with its token; if the payload needs an object, write it, and return its key, too."""
        plaintext = _encode(payload)
        try:
            sealed_row = row._replace(sealed=self._seal.seal(row, plaintext))
        except StateTooLarge:  # a seal takes fewer bytes than this payload has
            size = len(plaintext)
        else:
            size = sealed_row.size
            if size <= MAX_BYTES:
                return sealed_row, None
        if self._blobs is None:
            message = (
                f"an item of {size} bytes: the table takes {MAX_BYTES}. Keep references in it instead of documents,"
                " or give the deployment a bucket (BlobBucket)"
            )
            raise ItemTooLarge(message)
        reference = self._blobs.put(row, plaintext)
        return row._replace(sealed=self._seal.seal(row, _encode(reference))), reference.key

    def _row_key(self, key: Key) -> str:
        # The principal's digest has 43 characters without a slash, and a kind has no slash: keys of rows are unique.
        return f"{self._service}/{key.kind}/{key.principal or '-'}/{key.id}"

    def _delete_blob(self, blob: str | None) -> None:
        if self._blobs:
            self._blobs.delete(blob)


def _encode(payload: object) -> bytes:
    try:
        return dumps(payload).encode("utf-8", "surrogatepass")  # a text may hold half of a surrogate pair
    except (TypeError, ValueError, RecursionError):
        raise DeveloperError(rule="an item of the table must be JSON") from None  # the cause could quote the payload


def _decode(plaintext: bytes) -> JSONValue:
    return json.loads(plaintext.decode("utf-8", "surrogatepass"))
