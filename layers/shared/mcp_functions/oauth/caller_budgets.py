"""Limits what one caller can make the front (this authorization server) do.

A caller, the network of an address, has a budget of fetches of clients' URLs, and one of requests that the provider
refuses. Work takes a unit from the budget, which refills with time.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from mcp_functions.oauth.errors import OAuthError
from mcp_functions.protocol.errors import Busy
from mcp_functions.seal.budgets import TokenBuckets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Limit(NamedTuple):
    """How much work of one kind a caller may cause."""

    at_once: int  # the units of a full budget
    seconds_per_unit: float  # how long it takes until one unit is refilled
    reason: str  # why a caller with an empty budget is refused, for the log


FETCHES = Limit(10, 6, "fetch_budget")
# The front calls the provider in its own name. After many refusals the provider would throttle the whole deployment.
REFUSALS = Limit(30, 2, "provider_budget")


class CallerBudgets:
    """The budgets of all callers for one kind of work."""

    def __init__(self, limit: Limit, now: Callable[[], float]) -> None:
        """Start with full budgets; `now` is the clock, unix seconds."""
        self._buckets = TokenBuckets(limit.at_once, 1 / limit.seconds_per_unit)
        self._reason = limit.reason
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
        self.charge(caller_id)  # first, so that many requests at once cannot pass; returned if nothing was refused
        is_refused = False
        try:
            yield
        except OAuthError:
            is_refused = True
            raise
        finally:
            if not is_refused:
                self._buckets.put_back(caller_id, 1, self._now())
