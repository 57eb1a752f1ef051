"""A value that the calls of a process share: a parameter `Annotated[Database, Shared(open_database)]`.

`open_database` returns a context manager. The first call that needs the value enters it. A local process leaves it at
its end; Lambda ends a process without notice.
"""

from __future__ import annotations

import atexit
from functools import cache, cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import DeveloperError

if TYPE_CHECKING:
    from collections.abc import Callable


class SharedValue:
    """A context manager that is entered once, and the value that it yields."""

    def __init__(self, make_manager: Callable[[], Any]) -> None:
        """Take the function that returns the context manager; it is not called yet."""
        self._make_manager = make_manager
        self._lock = Lock()  # the local harness makes several calls at once

    def get(self) -> object:
        """Return the value. If the context manager raises on entering, the next call tries again with a new one.

        Raises:
            DeveloperError: the function returned no context manager.
        """
        with self._lock:
            return self._value

    @cached_property
    def _value(self) -> object:
        return _enter(self._make_manager())


# Handlers that name the same function share one value.
shared_value = cache(SharedValue)


def _enter(manager: Any) -> object:  # noqa: ANN401 - the author's function may return anything
    """Enter a context manager, and see to it that a local process leaves it."""
    if hasattr(type(manager), "__aenter__"):
        from mcp_functions.handlers import event_loop  # noqa: PLC0415 - it imports asyncio

        return event_loop.enter(manager)
    if not hasattr(type(manager), "__enter__"):
        rule = "Shared(…) takes a function that returns a context manager; write it with contextlib.contextmanager"
        raise DeveloperError(rule)
    value: object = manager.__enter__()
    atexit.register(manager.__exit__, None, None, None)
    return value
