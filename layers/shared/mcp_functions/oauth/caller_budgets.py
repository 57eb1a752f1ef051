"""Limits of what one caller can make this authorization server do. A caller is the network of a client's IP address.

    FETCHES     fetches of URLs that clients chose           10 at once, then one in 6 seconds
    REFUSALS    requests that the provider then refuses      30 at once, then one in 2 seconds

A caller has a budget of each kind ("token bucket"). Work takes a unit from the budget, which refills with time.
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
# All requests to the provider come from one client, this server. After many refusals it would throttle all users.
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
