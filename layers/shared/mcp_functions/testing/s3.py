"""An S3 bucket in memory, for tests, with the three operations that the toolkit calls.

A missing object is reported as on S3 for a role without `s3:ListBucket`: reading it is not allowed.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Literal, TypeAlias

from mcp_functions.protocol.errors import Misconfigured, TemporarilyUnavailable
from mcp_functions.store import ObjectNotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    BlobFault: TypeAlias = Literal["throttled", "lost", "late", "denied"] | None

MAX_KEY_BYTES = 1024  # Amazon S3 user guide, "Naming Amazon S3 objects"


class MemoryBucket:
    """One bucket, with the methods of `Bucket`.

    Attributes:
        objects: by key.
        calls: every operation and its key, in order.
        weather: called before each operation; returns the fault of this call, or None: "throttled", the operation does
            not happen; "lost", it happens and its response is lost; "late", the object is not there yet; "denied".

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
            message = "blobs:KeyTooLongError"
            raise Misconfigured(message)
        self._run("put", key, lambda: self.objects.__setitem__(key, bytes(body)))

    def get(self, key: str) -> bytes:
        """Read an object; a missing one raises ObjectNotFound."""
        self._run("get", key, lambda: None)
        if key not in self.objects:
            raise ObjectNotFound
        return self.objects[key]

    def delete(self, key: str) -> None:
        """Remove an object."""
        self._run("delete", key, lambda: self.objects.pop(key, None))

    def _run(self, operation: str, key: str, effect: Callable[[], object]) -> None:
        with self._lock:
            self.calls.append((operation, key))
            match self.weather(operation):
                case "throttled":
                    reason = "blobs:SlowDown"
                    raise TemporarilyUnavailable(reason)
                case "denied":
                    reason = "blobs:AccessDenied"
                    raise Misconfigured(reason)
                case "late":
                    raise ObjectNotFound
                case "lost":
                    effect()
                    reason = "blobs:InternalError"
                    raise TemporarilyUnavailable(reason)
            effect()
