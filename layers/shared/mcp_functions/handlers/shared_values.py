"""Opens a value that all calls of a process share: a parameter `Annotated[Database, Shared(open_database)]`.

`open_database` returns a context manager. The first call that needs the value enters the context manager. When a local
process ends, it leaves the context manager; Lambda ends a process without notice.
"""

from __future__ import annotations

import atexit
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any

from mcp_functions.handlers.lazy_values import lazy_value
from mcp_functions.protocol.errors import DeveloperError

if TYPE_CHECKING:
    from collections.abc import Callable


@cache  # all handlers with the same `open_database` share one value
def shared_value(make_manager: Callable[[], Any]) -> Callable[[], object]:
    """Return a function that opens the value at its first call, and returns the same value at every call.

    Args:
        make_manager: the author's function that returns the context manager. Anything else is a DeveloperError.
    """

    @lazy_value
    def enter() -> object:
        manager = make_manager()
        if isinstance(manager, AbstractAsyncContextManager):
            from mcp_functions.handlers import event_loop

            return event_loop.enter(manager)
        if not isinstance(manager, AbstractContextManager):
            raise DeveloperError(
                "Shared(…) takes a function that returns a context manager; write it with contextlib.contextmanager"
            )
        value: object = manager.__enter__()
        atexit.register(manager.__exit__, None, None, None)
        return value

    return enter
