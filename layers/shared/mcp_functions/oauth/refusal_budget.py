"""Limits how often a payer makes the provider refuse a code or a refresh token.

The front makes these calls in its own name, so the provider would throttle the whole deployment.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mcp_functions.oauth.errors import OAuthError
from mcp_functions.protocol.errors import Busy
from mcp_functions.seal.budgets import Limits, UnwrapBudgets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REFUSALS = Limits(burst=30, refill_seconds=2, ratio=1)  # of one payer, at once and later


class RefusalBudget:
    """The budgets of all payers. A request that the provider accepts costs nothing."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Start with full budgets.

        Args:
            now: the clock, unix seconds.
        """
        self._budgets = UnwrapBudgets(REFUSALS)
        self._now = now

    @contextmanager
    def charged(self, payer: str) -> Iterator[None]:
        """Charge a payer if the provider refuses what the block sends.

        Raises:
            Busy: the budget is empty, so the block does not run.
        """
        # The price is taken before the provider answers, as no result is known yet.
        if not self._budgets.charge(payer, self._now(), 1):
            raise Busy(reason="provider_budget")
        try:
            yield
        except OAuthError:
            raise
        except BaseException:
            self._refund(payer)
            raise
        self._refund(payer)

    def _refund(self, payer: str) -> None:
        self._budgets.refund(payer, self._now(), 1)
