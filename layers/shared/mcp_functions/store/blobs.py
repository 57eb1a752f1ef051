"""What does not fit into an item goes to a bucket, sealed; the item keeps where it is and its digest (§12.3).

An object is written before the item that names it, and never over another: who loses the race for the item leaves an
object that nobody names. Removing those is tidiness; the bucket's lifecycle rule removes whatever was left.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mcp_functions.protocol.errors import McpError, StateTooLarge
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.store.items import ItemTooLarge, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.store.dynamodb import Row
    from mcp_functions.store.seals import Seal

log = logging.getLogger("mcp_functions")

MARK = "blob"
TOO_LARGE = "{} bytes to keep, more than an object is sealed with: keep references instead of documents"
_NAME_BYTES = 32


class Missing(Exception):
    """There is no such object, or nobody may tell: S3 says 403 to whoever may not list."""


class Bucket(Protocol):
    """Where objects are kept. Every method may also raise these, and then nothing is known to have happened.

    Raises:
        TemporarilyUnavailable: it cannot answer now.
        Misconfigured: it will not, until the operator acts.

    """

    def put(self, key: str, body: bytes) -> None:
        """Write an object."""

    def get(self, key: str) -> bytes:
        """Read an object.

        Raises:
            Missing: there is none.

        """

    def delete(self, key: str) -> None:
        """Remove an object; one that is gone already is fine."""


class Reference(NamedTuple):
    """What an item keeps of an object: its key, and the digest of what it holds."""

    mark: str
    key: str
    digest: str


class Blobs:
    """The objects of one scope."""

    def __init__(self, bucket: Bucket, seal: Seal, service: str, rand: Callable[[int], bytes]) -> None:
        """Remember where they are; no call is made.

        Args:
            bucket: that keeps them.
            seal: with the label of blobs.
            service: the beginning of every key, by which a role's policy keeps functions apart.
            rand: `n` random bytes, for keys that nobody guesses.

        """
        self._bucket, self._seal, self._service, self._rand = bucket, seal, service, rand
        self._last = ("", b"")  # the object that was written or read last: a worker reads what it wrote

    def put(self, row: Row, written: bytes) -> Reference:
        """Write an object for a row.

        Raises:
            ItemTooLarge: it cannot be sealed.
            TemporarilyUnavailable, Misconfigured: as `Bucket` says.

        """
        try:
            body = self._seal.seal(row, written).encode()
        except StateTooLarge:
            raise ItemTooLarge(TOO_LARGE.format(len(written))) from None
        key = f"{self._service}/{base64url(self._rand(_NAME_BYTES))}"
        self._bucket.put(key, body)
        self._last = (key, body)
        return Reference(MARK, key, _digest(body))

    def get(self, row: Row, reference: Reference) -> bytes:
        """Read what a row's object holds.

        Raises:
            Missing: it is gone.
            Unreadable: it is not what was written.
            InvalidRequestState: its seal does not open.
            TemporarilyUnavailable, Misconfigured: as `Bucket` says.

        """
        last, body = self._last
        if last != reference.key:
            body = self._bucket.get(reference.key)
        if not hmac.compare_digest(_digest(body), reference.digest):
            log.error("an item's object is not what was written")
            raise Unreadable
        self._last = (reference.key, body)
        return self._seal.unseal(row, body.decode())

    def remove(self, key: str | None) -> None:
        """Remove an object that no item names any more, if the bucket will have it."""
        if key:
            with suppress(McpError):
                self._bucket.delete(key)


def referred(payload: object) -> Reference | None:
    """Read a reference; None for a payload that is there itself, which is an object of JSON and no array."""
    match payload:
        case [str(mark), str(key), str(digest)] if mark == MARK:
            return Reference(mark, key, digest)
    return None


def _digest(body: bytes) -> str:
    return base64url(hashlib.sha256(body).digest())
