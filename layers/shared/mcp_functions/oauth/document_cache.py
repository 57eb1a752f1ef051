"""The JSON objects that clients publish under their URLs: metadata documents and key sets, cached for some minutes.

A fetch is charged to the caller that causes it (`caller_budgets`), so nobody can make this server fetch without end.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

from mcp_functions.oauth.https import NoAnswer
from mcp_functions.oauth.safe_fetch import Network, fetch
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.oauth.caller_budgets import CallerBudgets

FRESH_SECONDS = 300  # how long a document is cached
FAILED_SECONDS = 60  # how long a failure is cached
MAX_ENTRIES = 256  # documents and failures in the cache


class Entry(NamedTuple):
    """The outcome of the last fetch of a URL."""

    document: dict[str, Any] | None  # None if the fetch has failed
    fresh_until: float  # when the URL has to be fetched again, in unix seconds


class DocumentCache:
    """Fetches documents from URLs that strangers chose, and keeps them in memory."""

    def __init__(self, now: Callable[[], float], budgets: CallerBudgets, network: Network | None = None) -> None:
        """Start empty. The budgets limit how many fetches each caller causes; tests replace the network."""
        self._now = now
        self._budgets = budgets
        self._network = network or Network()
        self._entries: dict[str, Entry] = {}  # by URL, the oldest first
        self._lock = Lock()  # held while the entries change: the local server answers requests in several threads

    def get(self, url: str, caller_id: str) -> dict[str, Any] | None:
        """Return the JSON object at a URL; None if the URL may not be fetched, or has no usable document.

        If the object is not in the cache, the fetch is charged to the caller's budget.

        Raises:
            Busy: the caller's budget is empty.
        """
        entry = self._entries.get(url)
        if entry is None or self._now() >= entry.fresh_until:
            self._budgets.charge(caller_id)
            entry = self._fetch(url)
            self._add(url, entry)
        return entry.document

    def _fetch(self, url: str) -> Entry:
        try:
            document = fetch(url, self._network)
        except NoAnswer:
            return Entry(None, self._now() + FAILED_SECONDS)
        return Entry(document, self._now() + FRESH_SECONDS)

    def _add(self, url: str, entry: Entry) -> None:
        """Cache a document or a failure; the oldest entry makes room."""
        with self._lock:
            self._entries.pop(url, None)  # so that this entry becomes the newest
            self._entries[url] = entry
            if len(self._entries) > MAX_ENTRIES:
                oldest = next(iter(self._entries))
                del self._entries[oldest]
