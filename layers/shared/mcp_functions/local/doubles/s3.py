"""S3: moto with one bucket. The harness serves it only if MCP_BLOBS names a bucket.

It answers 403 for a missing object, as S3 does for a role without permission to list.
"""

from __future__ import annotations

import uuid
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from mcp_functions.local.environment import ACCOUNT, REGION
from mcp_functions.local.loopback import HttpResponse
from mcp_functions.local.problems import not_installed
from mcp_functions.protocol.errors import Misconfigured, TemporarilyUnavailable
from mcp_functions.store import ObjectNotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.local.loopback import HttpRequest
    from mcp_functions.store import Bucket

MAX_OBJECT = 8 * 1024 * 1024  # bytes; a token has 4 MiB at most


class S3Api:
    """Answers S3 requests for one bucket, whose name is in the path: /bucket/key."""

    def __init__(self, bucket: str, make: Callable[[], Bucket]) -> None:
        """Make the bucket with the first request."""
        self._bucket, self._make, self._lock = bucket, cache(make), Lock()

    def warm(self) -> None:
        """Make the bucket before a client waits for it."""
        with self._lock:
            self._make()

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer one signed request. The signature itself is not checked; a web page cannot send the header."""
        bucket, _, key = unquote(urlsplit(request.target).path).removeprefix("/").partition("/")
        if not request.is_signed or not key:  # a request without a key asks for a list
            return _error(403, "AccessDenied")
        if bucket != self._bucket:
            return _error(404, "NoSuchBucket")
        try:
            with self._lock:
                return self._run(request, key)
        except (ObjectNotFound, Misconfigured):
            # "If you don't have the s3:ListBucket permission, Amazon S3 returns an HTTP status code 403" for both
            return _error(403, "AccessDenied")
        except TemporarilyUnavailable:
            return _error(503, "SlowDown")

    def _run(self, request: HttpRequest, key: str) -> HttpResponse:
        objects = self._make()
        if request.method == "PUT":
            objects.put(key, request.body or b"")
            return _response(200)
        if request.method == "GET":
            return _response(200, objects.get(key))
        if request.method == "DELETE":
            objects.delete(key)
            return _response(204)
        return _error(405, "MethodNotAllowed")


class Moto:
    """One bucket of moto. It is a `Bucket`."""

    def __init__(self, name: str) -> None:
        """Make the bucket in a separate backend, so that two harnesses share nothing.

        Raises:
            Problem: moto is not installed.
        """
        try:
            from moto.s3.models import S3Backend, s3_backends  # noqa: PLC0415 - takes a second to import
        except ModuleNotFoundError as error:
            raise not_installed(error, "local") from error
        self._name, self._backend = name, S3Backend(REGION, ACCOUNT)
        s3_backends.bucket_accounts.pop(name, None)  # moto allows a name once in a process: an earlier harness used it
        self._backend.create_bucket(name, REGION)

    def put(self, key: str, body: bytes) -> None:
        """Write an object."""
        self._backend.put_object(self._name, key, body)

    def get(self, key: str) -> bytes:
        """Read an object.

        Raises:
            ObjectNotFound: there is no such object.
        """
        found = self._backend.get_object(self._name, key)
        if found is None:
            raise ObjectNotFound
        return bytes(found.value)

    def delete(self, key: str) -> None:
        """Delete an object."""
        self._backend.delete_object(self._name, key)


def _response(status: int, body: bytes = b"") -> HttpResponse:
    return HttpResponse(status, (("x-amz-request-id", uuid.uuid4().hex[:16].upper()),), body)


def _error(status: int, code: str) -> HttpResponse:
    body = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'
    return HttpResponse(status, (("content-type", "application/xml"),), body.encode())
