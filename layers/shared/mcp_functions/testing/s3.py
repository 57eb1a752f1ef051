"""A bucket in memory, for tests: it tells nobody what it has not got, and fails when told.

It knows the three operations that the toolkit uses. A reader of what is not there hears nothing more than that he may
not: as on S3, where a role without `s3:ListBucket` does not learn whether a key exists.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Literal, TypeAlias

from mcp_functions.protocol.errors import Misconfigured, TemporarilyUnavailable
from mcp_functions.store import ObjectNotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    BlobFault: TypeAlias = Literal["throttled", "lost", "late", "denied"] | None

MAX_KEY_BYTES = (
    1024  # "The object key name is a sequence of Unicode characters with UTF-8 encoding of up to 1,024 bytes"
)


class MemoryBucket:
    """One bucket. It is a `Bucket`.

    Attributes:
        objects: by key.
        calls: every operation and its key, in the order in which they came.
        weather: asked before each call what goes wrong with it: "throttled", which does not happen; "lost", which
            happens and is not said; "late", of a read: it is not there yet; "denied"; or None.

    """

    def __init__(self, weather: Callable[[str], BlobFault] = lambda _operation: None) -> None:
        """Begin empty."""
        self.objects: dict[str, bytes] = {}
        self.calls: list[tuple[str, str]] = []
        self.weather = weather
        self._lock = RLock()

    def put(self, key: str, body: bytes) -> None:
        """Write an object."""
        if not 0 < len(key.encode()) <= MAX_KEY_BYTES:
            message = "blobs:KeyTooLongError"
            raise Misconfigured(message)
        self._do("put", key, lambda: self.objects.__setitem__(key, bytes(body)))

    def get(self, key: str) -> bytes:
        """Read an object.

        Raises:
            ObjectNotFound: there is none.

        """
        self._do("get", key, lambda: None)
        if key not in self.objects:
            raise ObjectNotFound
        return self.objects[key]

    def delete(self, key: str) -> None:
        """Remove an object."""
        self._do("delete", key, lambda: self.objects.pop(key, None))

    def _do(self, operation: str, key: str, does: Callable[[], object]) -> None:
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
                    does()
                    reason = "blobs:InternalError"
                    raise TemporarilyUnavailable(reason)
            does()
