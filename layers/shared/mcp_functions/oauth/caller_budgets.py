"""Limits of what one caller can make this authorization server do. A caller is the network of a client's IP address.

A caller has one budget ("token bucket") for fetches of URLs that clients chose, and one for requests that the provider
refuses. Work takes units from the budget, which refills with time. All callers together have one more for the seconds
of fetches, because a container that waits for a site answers nobody.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mcp_functions.oauth.errors import OAuthError
from mcp_functions.protocol.errors import Busy, Misconfigured
from mcp_functions.seal.budgets import TokenBuckets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The seconds of a container that fetches may take: 12 at once, and then every fifth.
CONTAINER_SECONDS = 12.0
CONTAINER_SHARE = 0.2
EVERYBODY = ""  # the one bucket of a container


class CallerBudgets:
    """The budgets of all callers for one kind of work."""

    def __init__(self, *, at_once: int, seconds_per_unit: float, reason: str, now: Callable[[], float]) -> None:
        """Start with full budgets, of `at_once` units. The log has the `reason` why a caller is refused."""
        self._buckets = TokenBuckets(at_once, 1 / seconds_per_unit)
        self._reason = reason
        self._now = now

    @contextmanager
    def charged_if_refused(self, caller_id: str) -> Iterator[None]:
        """Take a unit if the provider refuses what the block sends, whoever can mend that; Busy if there is none."""
        # Before the block runs, because many requests may run at the same time.
        if not self._buckets.take(caller_id, 1, self._now()):
            raise Busy(reason=self._reason)
        is_refused = False
        try:
            yield
        except (OAuthError, Misconfigured):
            is_refused = True
            raise
        finally:
            if not is_refused:  # also after any other exception
                self._buckets.put_back(caller_id, 1, self._now())


class FetchBudgets:
    """The budgets for fetches: one costs its caller a unit, and a unit for each second that it takes."""

    def __init__(self, now: Callable[[], float], most_seconds: float) -> None:
        """Start with full budgets, for ten quick fetches of a caller; no fetch takes longer than `most_seconds`."""
        self._callers = TokenBuckets(10 + most_seconds, 1 / 6)
        self._container = TokenBuckets(CONTAINER_SECONDS, CONTAINER_SHARE)
        self._most = most_seconds
        self._now = now

    @contextmanager
    def charged(self, caller_id: str) -> Iterator[None]:
        """Charge a block to a caller and to this container; Busy if a budget is too small for the longest fetch."""
        begun = self._now()
        if not self._callers.take(caller_id, 1 + self._most, begun):
            raise Busy(reason="fetch_budget")
        if not self._container.take(EVERYBODY, self._most, begun):
            self._callers.put_back(caller_id, 1 + self._most, begun)
            raise Busy(reason="fetch_budget_of_container")
        try:
            yield
        finally:
            # The clock may be set meanwhile.
            unused = self._most - min(self._most, max(0.0, self._now() - begun))
            for buckets, payer in ((self._callers, caller_id), (self._container, EVERYBODY)):
                buckets.put_back(payer, unused, self._now())
