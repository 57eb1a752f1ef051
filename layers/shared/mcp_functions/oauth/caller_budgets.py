"""Limits what one caller can make the front do: fetches of clients' URLs, and refusals of the provider."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mcp_functions.oauth.errors import OAuthError
from mcp_functions.protocol.errors import Busy
from mcp_functions.seal.budgets import Limits, UnwrapBudgets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FETCHES = Limits(burst=10, refill_seconds=6, ratio=1)  # fetches that one caller causes, at once and later
# The front makes these calls in its own name, so the provider would throttle the whole deployment.
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
        """Charge a caller.

        Raises:
            Busy: the budget is empty.
        """
        if not self._budgets.charge(caller_id, self._now(), 1):
            raise Busy(reason=self._reason)

    @contextmanager
    def charged_if_refused(self, caller_id: str) -> Iterator[None]:
        """Charge a caller if the provider refuses what the block sends; what it accepts costs nothing.

        Raises:
            Busy: the budget is empty, so the block does not run.
        """
        self.charge(caller_id)  # before the provider answers, as no result is known yet
        is_refused = False
        try:
            yield
        except OAuthError:
            is_refused = True
            raise
        finally:
            if not is_refused:
                self._budgets.refund(caller_id, self._now(), 1)
