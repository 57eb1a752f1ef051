"""A value that the calls of a process share: a parameter `Annotated[Database, Shared(open_database)]`, after `*`.

The function of `Shared` returns a context manager, as one with `@contextmanager` or `@asynccontextmanager` does. The
first call of a process that needs the value enters it; all handlers that name the function get the same value.
"""

from __future__ import annotations

import atexit
from threading import Lock
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import DeveloperError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.handlers.lifespan import Lifespan

MISSING = object()


class SharedValue:
    """The value of one function, made once in a process."""

    def __init__(self, enter: Callable[[], Any]) -> None:
        """Take the function that opens the value; it is not called yet."""
        self._enter = enter
        self._lock = Lock()  # the local harness runs several calls at once
        self._value: object = MISSING
        self._lifespan: Lifespan | None = None

    def get(self) -> object:
        """Return the value. If its function raises, the next call tries again.

        Raises:
            DeveloperError: the function returned no context manager.
        """
        with self._lock:
            if self._lifespan is None and self._value is MISSING:
                self._open()
        if self._lifespan is None:
            return self._value
        from mcp_functions.handlers import event_loop  # noqa: PLC0415 - imported where the value is async

        return event_loop.run(self._lifespan.state())

    def _open(self) -> None:
        manager = self._enter()
        if hasattr(type(manager), "__aenter__"):
            from mcp_functions.handlers.lifespan import Lifespan  # noqa: PLC0415 - it imports asyncio

            opened = [manager]  # the lifespan enters this one; if that fails, it asks for another
            self._lifespan = Lifespan(lambda: opened.pop() if opened else self._enter())
        elif hasattr(type(manager), "__enter__"):
            self._value = manager.__enter__()
            atexit.register(manager.__exit__, None, None, None)  # of a local process; Lambda ends without a last moment
        else:
            rule = "Shared(…) takes a function that returns a context manager; write it with contextlib.contextmanager"
            raise DeveloperError(rule)


_values: dict[Callable[[], Any], SharedValue] = {}


def shared_value(enter: Callable[[], Any]) -> SharedValue:
    """Return the value of a function: the same for every handler that names it."""
    return _values.setdefault(enter, SharedValue(enter))
