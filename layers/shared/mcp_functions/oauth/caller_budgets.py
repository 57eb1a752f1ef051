"""Limits what one caller can make the front (this authorization server) do.

A caller, the network of an address, has a budget of fetches of clients' URLs, and one of requests that the provider
refuses. Work takes a unit from the budget, which refills with time.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mcp_functions.oauth.errors import OAuthError
from mcp_functions.protocol.errors import Busy
from mcp_functions.seal.budgets import Limits, UnwrapBudgets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FETCHES = Limits(burst=10, refill_seconds=6, ratio=1)  # ten fetches at once, then one every six seconds
# The front calls the provider in its own name. After many refusals the provider would throttle the whole deployment.
REFUSALS = Limits(burst=30, refill_seconds=2, ratio=1)


class CallerBudgets:
    """The budgets of all callers for one kind of work."""

    def __init__(self, limits: Limits, reason: str, now: Callable[[], float]) -> None:
        """Start with full budgets.

        Args:
            limits: how much work one caller may cause.
            reason: why a caller without budget is refused, for the log.
            now: the clock, unix seconds.
        """
        self._budgets = UnwrapBudgets(limits)
        self._reason = reason
        self._now = now

    def charge(self, caller_id: str) -> None:
        """Take a unit from a caller's budget.

        Raises:
            Busy: the budget is empty.
        """
        if not self._budgets.charge(caller_id, self._now(), 1):
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
                self._budgets.refund(caller_id, self._now(), 1)
