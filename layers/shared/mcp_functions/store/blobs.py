"""Payloads that are too large for an item of DynamoDB, as objects (blobs) in a bucket (envelope.md, section 12.3).

    the item in DynamoDB        the sealed reference ["blob", key of the object, SHA-256 of the object]
    the object in the bucket    the sealed payload

An object is written before the item that refers to it, and never overwritten. If another writer is faster, the object
stays without an item, and the bucket's lifecycle rule removes it.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mcp_functions import aws
from mcp_functions.aws.errors import read_failure
from mcp_functions.protocol.errors import McpError, StateTooLarge, service_error
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.seal.resets import PerProcess
from mcp_functions.store.table import ItemTooLarge, UnreadableItem, open_payload

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.seal.envelope import Seal
    from mcp_functions.store.table import Row

log = logging.getLogger("mcp_functions")


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
        """Return an object; ObjectNotFound if it does not exist."""

    def delete(self, key: str) -> None:
        """Delete an object, if it exists."""


LIMITS = aws.CallLimits(connect_seconds=0.5, read_seconds=3.0, attempts=3)
# S3's codes for an object that cannot be read. AWS, "GetObject", about objects that do not exist: "If you don't have
# the s3:ListBucket permission, Amazon S3 returns an HTTP status code 403".
MISSING = {"NoSuchKey", "404", "AccessDenied", "403", "Forbidden", "InvalidObjectState"}


def s3_client() -> Any:  # noqa: ANN401 - boto3 builds its clients at run time
    """Make boto3's client with time limits, and without checksums: the table keeps a digest of each object."""
    needed = "when_required"
    return aws.boto3_client("s3", LIMITS, request_checksum_calculation=needed, response_checksum_validation=needed)


class S3:
    """The objects of one bucket. It implements `Bucket`."""

    def __init__(self, name: str, make_client: Callable[[], object] = s3_client) -> None:
        """Use a bucket; no request is sent, and no client is built."""
        self._name = name
        self._client = PerProcess(make_client)

    def put(self, key: str, body: bytes) -> None:
        """Write an object; see `Bucket`."""
        self._call("put_object", Key=key, Body=body, ContentType="application/octet-stream")

    def get(self, key: str) -> bytes:
        """Return an object; see `Bucket`."""
        return bytes(self._call("get_object", Key=key))

    def delete(self, key: str) -> None:
        """Delete an object; see `Bucket`."""
        self._call("delete_object", Key=key)

    def _call(self, operation: str, **request: object) -> bytes:
        """Call a method of the client, and return the body of its response; only `get_object` has one."""
        try:
            method = getattr(self._client(), operation)
            answer = method(Bucket=self._name, **request)
            return answer["Body"].read() if "Body" in answer else b""
        except Exception as error:  # noqa: BLE001 - botocore's classes are not imported
            # `from None` below: the text of the error may quote a key.
            failure = read_failure(error)
            if operation == "get_object" and failure.code in MISSING:
                raise ObjectNotFound from None
            raise service_error(service="blobs", failure=failure) from None


class BlobReference(NamedTuple):
    """The payload of an item that refers to an object. In JSON it is a list; any other payload is a JSON object."""

    mark: str  # always "blob"
    key: str  # the object's key in the bucket
    digest: str  # SHA-256 of the object's body, as base64url


class BlobStore:
    """The objects of one function. Each object belongs to a row: an item as DynamoDB stores it."""

    def __init__(self, bucket: Bucket, seal: Seal, key_prefix: str) -> None:
        """Use a bucket, and a seal with the label BLOB_LABEL.

        The role of a function may only use keys with its prefix, `<stack>/<folder>`.
        """
        self._bucket = bucket
        self._seal = seal
        self._key_prefix = key_prefix
        self._last: dict[str, bytes] = {}  # the last object: a worker often reads what it wrote

    def put(self, row: Row, payload: bytes) -> BlobReference:
        """Write the payload of a row into a new object; ItemTooLarge if a sealed text cannot hold it."""
        try:
            body = self._seal.seal(payload, about=row.about).encode()
        except StateTooLarge:
            rule = "more than an object can hold: keep references instead of documents"
            raise ItemTooLarge(reason=f"the payload has {len(payload)} bytes, {rule}") from None
        name = base64url(os.urandom(32))  # random, so that no key is used twice
        key = f"{self._key_prefix}/{name}"
        self._bucket.put(key, body)
        self._last = {key: body}
        return BlobReference("blob", key, _digest(body))

    def get(self, row: Row, reference: BlobReference) -> bytes:
        """Return the payload in a row's object.

        Raises:
            ObjectNotFound: the object is gone.
            UnreadableItem: the object has changed.
            InvalidRequestState: the object's seal does not open.
        """
        body = self._last.get(reference.key) or self._bucket.get(reference.key)
        if not hmac.compare_digest(_digest(body), reference.digest):
            log.error("an item's object has changed since it was written")
            raise UnreadableItem
        self._last = {reference.key: body}
        return open_payload(self._seal, row, body.decode())

    def delete(self, key: str) -> None:
        """Delete an object that no item names any more; after an error the bucket's lifecycle rule deletes it."""
        with suppress(McpError):
            self._bucket.delete(key)


def _digest(body: bytes) -> str:
    return base64url(hashlib.sha256(body).digest())
