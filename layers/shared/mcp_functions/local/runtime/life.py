"""A process, and the Runtime API that it alone asks: they begin and end together."""

from __future__ import annotations

import time
from queue import Empty
from typing import TYPE_CHECKING

from mcp_functions.local.runtime import api

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.local.runtime.process import Process

    Start = Callable[[str, Callable[[int], None]], Process]  # (address of the API, called with the exit status)

GONE_SECONDS = 5.0  # in which a killed process is gone, and its last words are read


class Life:
    """One process from its start to its end, and what it says meanwhile."""

    def __init__(self, start: Start) -> None:
        """Start it."""
        self.api = api.RuntimeApi()
        try:
            self.process = start(self.api.address, self._ended)
        except BaseException:
            self.api.stop()
            raise

    def hear(self, until: float) -> api.Told | None:
        """Wait for the next that it says, until a moment of the monotonic clock; None: nothing."""
        try:
            return self.api.told.get(timeout=max(0.0, until - time.monotonic()))
        except Empty:
            return None

    def end(self) -> None:
        """Kill it, and wait until it is gone."""
        self.process.kill()
        self.join()

    def join(self) -> None:
        """Wait until it is gone."""
        self.process.join(GONE_SECONDS)

    def _ended(self, status: int) -> None:
        self.api.told.put(api.Exited(status))
        self.api.stop()
