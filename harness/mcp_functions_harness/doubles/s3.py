"""S3 with one bucket, in memory. The harness serves it only if MCP_BLOBS names a bucket.

    PUT, GET, DELETE /<bucket>/<key>

Functions have no permission to list the bucket (`s3:ListBucket`). So S3 does not tell them that an object is missing,
and answers 403.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Literal, TypeAlias
from urllib.parse import unquote, urlsplit

from mcp_functions.protocol.errors import McpError, Misconfigured, TemporarilyUnavailable
from mcp_functions.store import Bucket, ObjectNotFound
from mcp_functions_harness.loopback import HttpRequest, HttpResponse

BlobFault: TypeAlias = Literal["throttled", "lost", "late", "denied"] | None

MAX_OBJECT = 8 * 1024 * 1024  # bytes; the largest objects are tokens of 4 MiB
FAULTS: dict[str, tuple[type[McpError], str]] = {  # the S3 client's error, and its reason
    "throttled": (TemporarilyUnavailable, "blobs:SlowDown"),
    "lost": (TemporarilyUnavailable, "blobs:InternalError"),
    "denied": (Misconfigured, "blobs:AccessDenied"),
}
MAX_KEY_BYTES = 1024  # Amazon S3 user guide, "Naming Amazon S3 objects"


class S3Api:
    """Answers S3 requests for one bucket, whose name is in the path: /bucket/key."""

    def __init__(self, name: str, bucket: Bucket) -> None:
        """Serve a bucket under a name."""
        self._name = name
        self._bucket = bucket

    def has(self, request: HttpRequest) -> bool:
        """Whether a request is for this bucket."""
        return bool(self._name) and _path(request).partition("/")[0] == self._name

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer one signed request."""
        name, _, key = _path(request).partition("/")
        if not request.is_signed or not key:  # without a key, it would list the bucket
            return _error(403, "AccessDenied")
        if name != self._name:
            return _error(404, "NoSuchBucket")
        try:
            return self._run(request, key)
        except (ObjectNotFound, Misconfigured):
            # AWS: "If you don't have the s3:ListBucket permission, Amazon S3 returns an HTTP status code 403" for both
            return _error(403, "AccessDenied")
        except TemporarilyUnavailable:
            return _error(503, "SlowDown")

    def _run(self, request: HttpRequest, key: str) -> HttpResponse:
        if request.method == "PUT":
            self._bucket.put(key, request.body or b"")
            return _response(200)
        if request.method == "GET":
            return _response(200, self._bucket.get(key))
        if request.method == "DELETE":
            self._bucket.delete(key)
            return _response(204)
        return _error(405, "MethodNotAllowed")


class MemoryBucket:
    """One bucket, with the methods of `Bucket`.

    Attributes:
        objects: the bytes of the objects, by key.
        calls: every operation and its key, in order.
        weather: called before each operation, for tests; returns the fault of this call, or None:
            "throttled", "denied": the operation does not happen.
            "lost": the operation happens, but its response is lost.
            "late": the object is not there yet.
    """

    def __init__(self, weather: Callable[[str], BlobFault] = lambda _operation: None) -> None:
        """Start empty."""
        self.objects: dict[str, bytes] = {}
        self.calls: list[tuple[str, str]] = []
        self.weather = weather
        self._lock = RLock()

    def put(self, key: str, body: bytes) -> None:
        """Write an object."""
        if not 0 < len(key.encode()) <= MAX_KEY_BYTES:
            raise Misconfigured("blobs:KeyTooLongError")
        with self._operation("put", key):
            self.objects[key] = bytes(body)

    def get(self, key: str) -> bytes:
        """Read an object; a missing one raises ObjectNotFound."""
        with self._operation("get", key):
            if key not in self.objects:
                raise ObjectNotFound
            return self.objects[key]

    def delete(self, key: str) -> None:
        """Remove an object."""
        with self._operation("delete", key):
            self.objects.pop(key, None)

    @contextmanager
    def _operation(self, name: str, key: str) -> Iterator[None]:
        """Record an operation, and raise its fault before the block, or after it if only the response is lost."""
        with self._lock:
            self.calls.append((name, key))
            fault = self.weather(name)
            if fault == "late":
                raise ObjectNotFound
            if fault and fault != "lost":
                raise _error_of(fault)
            yield
            if fault:
                raise _error_of(fault)


def _path(request: HttpRequest) -> str:
    """Return the bucket and the key of a request, "bucket/key"."""
    return unquote(urlsplit(request.target).path).removeprefix("/")


def _error_of(fault: str) -> McpError:
    error, reason = FAULTS[fault]
    return error(reason)


def _response(status: int, body: bytes = b"") -> HttpResponse:
    return HttpResponse(status, (("x-amz-request-id", uuid.uuid4().hex[:16].upper()),), body)


def _error(status: int, code: str) -> HttpResponse:
    body = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'
    return HttpResponse(status, (("content-type", "application/xml"),), body.encode())
