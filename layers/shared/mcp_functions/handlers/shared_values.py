"""A value that the calls of a process share: a parameter `Annotated[Database, Shared(open_database)]`.

`open_database` returns a context manager. The first call that needs the value enters it. A local process leaves it at
its end; Lambda ends a process without notice.
"""

from __future__ import annotations

import atexit
from functools import cache
from typing import TYPE_CHECKING, Any

from mcp_functions.handlers.lazy_values import lazy_value
from mcp_functions.protocol.errors import DeveloperError

if TYPE_CHECKING:
    from collections.abc import Callable


@cache  # handlers that name the same function share one value
def shared_value(make_manager: Callable[[], Any]) -> Callable[[], object]:
    """Return a function that enters a context manager at its first call, and returns the value at every call.

    Args:
        make_manager: returns the context manager, as the author's `open_database` does.
    """
    return lazy_value(lambda: _enter(make_manager()))


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
