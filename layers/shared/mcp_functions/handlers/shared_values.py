"""A value that the calls of a process share: a parameter `Annotated[Database, Shared(open_database)]`, after `*`.

The function of `Shared` returns a context manager, as one with `@contextmanager` or `@asynccontextmanager` does. The
first call of a process that needs the value enters it; all handlers that name the function get the same value.
"""

from __future__ import annotations

import atexit
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import DeveloperError

if TYPE_CHECKING:
    from collections.abc import Callable


class SharedValue:
    """The value of one function, made once in a process."""

    def __init__(self, enter: Callable[[], Any]) -> None:
        """Take the function that opens the value; it is not called yet."""
        self._enter = enter
        self._lock = Lock()  # the local harness runs several calls at once
        self._read: Callable[[], object] | None = None

    def get(self) -> object:
        """Return the value. If its function raises, the next call tries again.

        Raises:
            DeveloperError: the function returned no context manager.
        """
        with self._lock:
            self._read = self._read or self._open()
        return self._read()

    def _open(self) -> Callable[[], object]:
        """Enter the context manager, and return a function that returns its value; an async one is entered later."""
        manager = self._enter()
        if hasattr(type(manager), "__aenter__"):
            from mcp_functions.handlers import event_loop  # noqa: PLC0415 - it imports asyncio

            opened = [manager]  # the lifespan enters this one; if that fails, it asks for another
            lifespan = event_loop.Lifespan(lambda: opened.pop() if opened else self._enter())
            return lambda: event_loop.run(lifespan.state())
        if not hasattr(type(manager), "__enter__"):
            rule = "Shared(…) takes a function that returns a context manager; write it with contextlib.contextmanager"
            raise DeveloperError(rule)
        value = manager.__enter__()
        atexit.register(manager.__exit__, None, None, None)  # of a local process; Lambda ends without a last moment
        return lambda: value


@cache
def shared_value(enter: Callable[[], Any]) -> SharedValue:
    """Return the value of a function: the same for every handler that names it."""
    return SharedValue(enter)
