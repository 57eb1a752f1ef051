"""A payload that does not fit into an item of the table is sealed into an object of a bucket (envelope.md, 12.3).

The item keeps the object's key and digest. An object is written before the item that names it, and never overwritten.
A writer that loses the race for the item leaves an unused object, which the bucket's lifecycle rule removes.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mcp_functions.protocol.errors import McpError, StateTooLarge
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.store.item_seal import ItemSeal
from mcp_functions.store.table import ItemTooLarge, UnreadableItem

if TYPE_CHECKING:
    from mcp_functions.seal.envelope import Seal
    from mcp_functions.store.dynamodb import Row

log = logging.getLogger("mcp_functions")

MARK = "blob"  # the first member of every reference
_NAME_BYTES = 32  # random bytes in the key of an object, so no key is used twice


class ObjectNotFound(Exception):
    """The object does not exist, or S3 hides whether it exists: it returns 403 to a role that may not list."""


class Bucket(Protocol):
    """Stores objects. Every method may also raise these errors.

    Raises:
        TemporarilyUnavailable: the bucket cannot answer now. A write may have happened.
        Misconfigured: the operator must act.
    """

    def put(self, key: str, body: bytes) -> None:
        """Write an object."""

    def get(self, key: str) -> bytes:
        """Return an object.

        Raises:
            ObjectNotFound: the object does not exist.
        """

    def delete(self, key: str) -> None:
        """Delete an object, if it exists."""


class BlobReference(NamedTuple):
    """The payload of an item whose data is in an object. As JSON it is a list, and every other payload is not."""

    mark: str  # always MARK
    key: str  # the object's key in the bucket
    digest: str  # SHA-256 of the object's body, as base64url


class BlobStore:
    """The objects of one function."""

    def __init__(self, bucket: Bucket, seal: Seal, key_prefix: str) -> None:
        """Use a bucket.

        Args:
            bucket: the bucket that stores the objects.
            seal: the seal of their bodies, with the label BLOB_LABEL.
            key_prefix: `<stack>/<folder of the function>`, by which the policies of roles separate functions.
        """
        self._bucket = bucket
        self._seal = ItemSeal(seal)
        self._key_prefix = key_prefix
        self._last = ("", b"")  # key and body of the last object: a worker often reads again what it wrote

    def put(self, row: Row, plaintext: bytes) -> BlobReference:
        """Write the payload of a row into a new object.

        Raises:
            ItemTooLarge: the payload is larger than a sealed text may be.
        """
        try:
            body = self._seal.seal(row, plaintext).encode()
        except StateTooLarge:
            # StateTooLarge advises about the state of a client, which this is not, so it is replaced.
            message = (
                f"the payload has {len(plaintext)} bytes, more than an object can hold:"
                " keep references instead of documents"
            )
            raise ItemTooLarge(message) from None
        key = f"{self._key_prefix}/{base64url(os.urandom(_NAME_BYTES))}"
        self._bucket.put(key, body)
        self._last = (key, body)
        return BlobReference(MARK, key, _digest(body))

    def get(self, row: Row, reference: BlobReference) -> bytes:
        """Return the payload in a row's object.

        Raises:
            ObjectNotFound: the object is gone.
            UnreadableItem: the object has changed.
            InvalidRequestState: the object's seal does not open.
        """
        key, body = self._last
        if key != reference.key:
            body = self._bucket.get(reference.key)
        if not hmac.compare_digest(_digest(body), reference.digest):
            log.error("an item's object has changed since it was written")
            raise UnreadableItem
        self._last = (reference.key, body)
        return self._seal.unseal(row, body.decode())

    def delete(self, key: str) -> None:
        """Delete an object that no item names any more; after an error the bucket's lifecycle rule deletes it."""
        with suppress(McpError):
            self._bucket.delete(key)


def _digest(body: bytes) -> str:
    return base64url(hashlib.sha256(body).digest())
