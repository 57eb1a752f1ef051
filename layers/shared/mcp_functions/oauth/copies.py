"""Copies of the JSON documents that clients and the provider publish. While a site is silent, the last copy serves.

A client that is told `invalid_client` deletes its registration and tokens, and its user is signed out. So a site that
is silent for a moment must not look like a client that is gone.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from mcp_functions.oauth.errors import OAuthError
from mcp_functions.protocol.errors import Busy, TemporarilyUnavailable
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

D = TypeVar("D")  # a document
KEPT_SECONDS = 24 * 3600  # how long a copy serves while its site is silent
PAUSE_SECONDS = 60  # a site is not asked again for so long if a copy serves, or it is gone
SHORT_PAUSE_SECONDS = 5  # if nothing serves: a site that is back must not be missed for long
MAX_COPIES = 256


class Copy(NamedTuple):
    """What is known of a document."""

    document: Any = None  # None if none was read
    read_at: float = 0.0  # unix seconds
    next_read: float = 0.0  # when the site is asked again, in unix seconds
    failure: OAuthError | TemporarilyUnavailable | None = None  # why the last read has failed


class Copies:
    """Documents in memory, by URL."""

    def __init__(self, now: Callable[[], float], fresh_seconds: float) -> None:
        """Start empty; a copy is used for `fresh_seconds` without another read."""
        self._now = now
        self._fresh_seconds = fresh_seconds
        self._copies: dict[str, Copy] = {}  # by URL, the oldest first
        self._lock = Lock()  # held while they change: the local server has several threads

    def get(self, url: str, read: Callable[[str], D], *, again: bool = False) -> D:
        """Return the document at a URL; raise as `read` did if no copy serves.

        An OAuthError `invalid_client` of `read` means that there is none any more. With `again` it is read now, because
        the copy lacks something that is needed.
        """
        copy = self._copies.get(url, Copy())
        if self._now() >= copy.next_read or (again and copy.failure is None):
            copy = self._read(url, read, copy)
        serves = copy.document and self._now() < copy.read_at + KEPT_SECONDS
        if copy.failure and (again or not serves):
            raise copy.failure.with_traceback(None)  # a traceback would keep the requests
        document: D = copy.document
        return document

    def _read(self, url: str, read: Callable[[str], object], last: Copy) -> Copy:
        try:
            copy = Copy(read(url), self._now(), self._now() + self._fresh_seconds)
        except Busy as busy:  # this caller may not cause a read, but others may
            return last._replace(failure=busy)
        except (OAuthError, TemporarilyUnavailable) as error:
            pause = PAUSE_SECONDS if last.document or isinstance(error, OAuthError) else SHORT_PAUSE_SECONDS
            is_gone = isinstance(error, OAuthError) and error.code == "invalid_client"
            copy = (Copy() if is_gone else last)._replace(next_read=self._now() + pause, failure=error)
        with self._lock:
            self._copies.pop(url, None)  # so that this copy becomes the newest
            self._copies[url] = copy
            if len(self._copies) > MAX_COPIES:
                del self._copies[next(iter(self._copies))]
        return copy
