"""S3: one bucket of moto's, behind HTTP; its model is asked directly, without moto's web server.

As for a role that may not list: of an object that is not there it says 403. Nothing of moto is imported before somebody
asks: it is there only where MCP_BLOBS names a bucket.
"""

from __future__ import annotations

import uuid
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from mcp_functions.local.context import ACCOUNT, REGION
from mcp_functions.local.exchange import HttpResponse
from mcp_functions.local.problems import Problem
from mcp_functions.protocol.errors import Misconfigured, TemporarilyUnavailable
from mcp_functions.store import ObjectNotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.local.exchange import HttpRequest
    from mcp_functions.store import Bucket

MAX_OBJECT = 8 * 1024 * 1024  # bytes: a token has 4 MiB
OK, NO_CONTENT, DENIED, NOT_FOUND, NOT_ALLOWED, SLOW_DOWN = 200, 204, 403, 404, 405, 503


class S3Api:
    """Answers S3's requests for one bucket, as boto3 writes them to an address without a name: /bucket/key."""

    def __init__(self, bucket: str, make: Callable[[], Bucket]) -> None:
        """Remember who keeps the objects; `make` makes it when the first request comes."""
        self._bucket, self._make, self._lock = bucket, cache(make), Lock()

    def warm(self) -> None:
        """Make what keeps the objects before anybody waits for it."""
        with self._lock:
            self._make()

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer one signed request. The signature is not checked; but a page in a browser cannot write one."""
        bucket, _, key = unquote(urlsplit(request.target).path).removeprefix("/").partition("/")
        if not request.header("authorization").startswith("AWS4-") or not key:
            return _error(DENIED, "AccessDenied")  # whoever asks for no key wants a list
        if bucket != self._bucket:
            return _error(NOT_FOUND, "NoSuchBucket")
        try:
            with self._lock:
                return self._done(request, key)
        except (ObjectNotFound, Misconfigured):
            # "If you don't have the s3:ListBucket permission, Amazon S3 returns an HTTP status code 403" for both
            return _error(DENIED, "AccessDenied")
        except TemporarilyUnavailable:
            return _error(SLOW_DOWN, "SlowDown")

    def _done(self, request: HttpRequest, key: str) -> HttpResponse:
        objects = self._make()
        match request.method:
            case "PUT":
                objects.put(key, request.body or b"")
                return _answer(OK)
            case "GET":
                return _answer(OK, objects.get(key))
            case "DELETE":
                objects.delete(key)
                return _answer(NO_CONTENT)
        return _error(NOT_ALLOWED, "MethodNotAllowed")


class Moto:
    """One bucket of moto's. It is a `Bucket`."""

    def __init__(self, name: str) -> None:
        """Make the bucket; a backend of its own, so that two harnesses share nothing.

        Raises:
            Problem: moto is not installed.

        """
        try:
            from moto.s3.models import S3Backend, s3_backends  # noqa: PLC0415 - a second, of projects with a bucket only
        except ModuleNotFoundError as error:
            missing = f"{error.name} is not installed: pip install 'mcp-functions[local]'"
            raise Problem(missing) from error
        self._name, self._backend = name, S3Backend(REGION, ACCOUNT)
        s3_backends.bucket_accounts.pop(name, None)  # moto knows a name once in a process; an earlier harness had it
        self._backend.create_bucket(name, REGION)

    def put(self, key: str, body: bytes) -> None:
        """Write an object."""
        self._backend.put_object(self._name, key, body)

    def get(self, key: str) -> bytes:
        """Read an object.

        Raises:
            ObjectNotFound: there is none.

        """
        found = self._backend.get_object(self._name, key)
        if found is None:
            raise ObjectNotFound
        return bytes(found.value)

    def delete(self, key: str) -> None:
        """Remove an object."""
        self._backend.delete_object(self._name, key)


def _answer(status: int, body: bytes = b"") -> HttpResponse:
    return HttpResponse(status, (("x-amz-request-id", uuid.uuid4().hex[:16].upper()),), body)


def _error(status: int, code: str) -> HttpResponse:
    body = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'
    return HttpResponse(status, (("content-type", "application/xml"),), body.encode())
