"""Limits how often a caller makes the provider refuse a code or a refresh token.

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

REFUSALS = Limits(burst=30, refill_seconds=2, ratio=1)  # the refusals of one caller, at once and later


class RefusalBudget:
    """The budgets of all callers. A request that the provider accepts costs nothing."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Start with full budgets.

        Args:
            now: the clock, unix seconds.
        """
        self._budgets = UnwrapBudgets(REFUSALS)
        self._now = now

    @contextmanager
    def charged(self, caller_id: str) -> Iterator[None]:
        """Charge a caller if the provider refuses what the block sends.

        Raises:
            Busy: the budget is empty, so the block does not run.
        """
        # The price is taken before the provider answers, as no result is known yet.
        if not self._budgets.charge(caller_id, self._now(), 1):
            raise Busy(reason="provider_budget")
        try:
            yield
        except OAuthError:
            raise
        except BaseException:
            self._refund(caller_id)
            raise
        self._refund(caller_id)

    def _refund(self, caller_id: str) -> None:
        self._budgets.refund(caller_id, self._now(), 1)
