"""Limits of what one caller can make this authorization server do. A caller is the network of a client's IP address.

A caller has one budget ("token bucket") for fetches of URLs that clients chose, and one for requests that the provider
refuses. Work takes a unit from the budget, which refills with time.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mcp_functions.oauth.errors import OAuthError
from mcp_functions.protocol.errors import Busy
from mcp_functions.seal.budgets import TokenBuckets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class CallerBudgets:
    """The budgets of all callers for one kind of work."""

    def __init__(self, *, at_once: int, seconds_per_unit: float, reason: str, now: Callable[[], float]) -> None:
        """Start with full budgets.

        Args:
            at_once: the units of a full budget.
            seconds_per_unit: how long it takes until one unit is refilled.
            reason: why a caller with an empty budget is refused, for the log.
            now: the clock, unix seconds.
        """
        self._buckets = TokenBuckets(at_once, 1 / seconds_per_unit)
        self._reason = reason
        self._now = now

    def charge(self, caller_id: str) -> None:
        """Take a unit from a caller's budget.

        Raises:
            Busy: the budget is empty.
        """
        if not self._buckets.take(caller_id, 1, self._now()):
            raise Busy(reason=self._reason)

    @contextmanager
    def charged_if_refused(self, caller_id: str) -> Iterator[None]:
        """Take a unit from a caller's budget if the provider refuses what the block sends.

        Raises:
            Busy: the budget is empty, so the block does not run.
        """
        self.charge(caller_id)  # before the block runs, because many requests may run at the same time
        is_refused = False
        try:
            yield
        except OAuthError:
            is_refused = True
            raise
        finally:
            if not is_refused:  # also after any other exception
                self._buckets.put_back(caller_id, 1, self._now())
