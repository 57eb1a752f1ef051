"""A bucket of S3, for payloads that are too large for the table.

boto3 makes the calls. It is slow to import, and few functions need an object, so the first call makes the client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions import aws
from mcp_functions.aws.errors import read_failure
from mcp_functions.protocol.errors import service_error
from mcp_functions.seal.resets import PerProcess
from mcp_functions.store.blobs import ObjectNotFound

if TYPE_CHECKING:
    from collections.abc import Callable

LIMITS = aws.CallLimits(connect_seconds=0.5, read_seconds=3.0, attempts=3)
# S3's codes for an object that cannot be read. AWS, "GetObject", about objects that do not exist: "If you don't have
# the s3:ListBucket permission, Amazon S3 returns an HTTP status code 403".
MISSING = {"NoSuchKey", "404", "AccessDenied", "403", "Forbidden", "InvalidObjectState"}


def s3_client() -> Any:  # noqa: ANN401 - boto3 builds its clients at run time
    """Make boto3's client with time limits, and without checksums: the table keeps a digest of each object."""
    return aws.boto3_client(
        "s3",
        LIMITS,
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )


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
        except Exception as error:  # noqa: BLE001 - botocore's and urllib3's classes are not imported
            # `from None` below: the text of the error may quote a key.
            failure = read_failure(error)
            if operation == "get_object" and failure.code in MISSING:
                raise ObjectNotFound from None
            raise service_error(service="blobs", failure=failure) from None
