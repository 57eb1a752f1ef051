"""Limits what one caller can make the front do: fetches of clients' URLs, and refusals of the provider."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mcp_functions.oauth.errors import OAuthError
from mcp_functions.protocol.errors import Busy
from mcp_functions.seal.budgets import Limits, UnwrapBudgets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# A caller may cause 10 fetches at once, and one more every 6 seconds.
FETCHES = Limits(burst=10, refill_seconds=6, ratio=1)
# The front sends these requests in its own name. Without a limit, one caller could make the provider throttle it.
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
        """Charge a caller if the provider refuses the request that the block sends. An accepted request costs nothing.

        Raises:
            Busy: the budget is empty, so the block does not run.
        """
        self.charge(caller_id)  # the result is not known yet, so the caller pays first
        is_refused = False
        try:
            yield
        except OAuthError:
            is_refused = True
            raise
        finally:
            if not is_refused:
                self._budgets.refund(caller_id, self._now(), 1)
