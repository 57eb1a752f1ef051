"""The event loop of this process: every async handler runs in it, in a separate thread.

A client of asyncio belongs to the loop in which it first waited. With one loop for all calls, a client that a module
makes serves every call of the process. Tasks that a call leaves running are cancelled when it ends (`async_calls`).
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import wait
from threading import Lock, Thread, current_thread
from typing import TYPE_CHECKING, Any, TypeVar

from mcp_functions import observability
from mcp_functions.handlers.async_calls import GRACE_SECONDS, Call, Threads, watch_generators
from mcp_functions.observability.lines import log
from mcp_functions.protocol.errors import DeveloperError, InputRequired

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Coroutine

R = TypeVar("R")


def run(coroutine: Coroutine[Any, Any, R], *, thread_seconds: float = 0.0) -> R:
    """Run the coroutine of one call, and end the tasks that it left running.

    Args:
        coroutine: the coroutine that the async function returned. It sees the context variables of the calling thread.
        thread_seconds: seconds for which the call may wait for the threads that it started (`asyncio.to_thread`).
            A thread cannot be cancelled.

    Raises:
        DeveloperError: a function that runs in this loop calls it; it would wait for itself.
        BaseException: the exception that the coroutine raised.

    """
    if is_current():
        coroutine.close()
        message = "an async handler cannot be called from another one: await its function instead"
        raise DeveloperError(message)
    call, loop = Call(coroutine, thread_seconds), _process.loop()
    try:
        loop.call_soon_threadsafe(call.begin, loop, _process.calls)
        return call.outcome.result()
    finally:
        if not call.outcome.done():  # a signal interrupts the calling thread: Ctrl+C
            loop.call_soon_threadsafe(call.cancel)
            wait([call.outcome], timeout=GRACE_SECONDS * 2)
        del call  # an exception refers to this frame, and the call to the exception


def is_current() -> bool:
    """Tell whether the calling function runs in this loop."""
    return current_thread() is _process.thread


class _Process:
    """The loop of this process and its thread; both start with the first call.

    Attributes:
        thread: the thread of the loop.
        calls: the open calls; only that thread changes them.

    """

    def __init__(self) -> None:
        """Start without a thread: the first call starts it."""
        self._inherited: list[object] = []
        self._begin()

    def _begin(self) -> None:
        self.thread: Thread | None = None
        self.calls: set[Call[Any]] = set()
        self._loop: AbstractEventLoop | None = None
        self._starting = Lock()

    def forget(self) -> None:
        """Start again in a forked child, which has none of its parent's threads.

        The parent's loop is kept, unused: to close it here would take the parent's sockets out of their common epoll.
        """
        self._inherited += [self._loop, self.calls]
        self._begin()

    def loop(self) -> AbstractEventLoop:
        """Return the running loop; the first call starts it."""
        with self._starting:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                loop.set_exception_handler(_report)
                loop.set_default_executor(Threads(thread_name_prefix="mcp-functions-worker"))
                self.thread = Thread(target=self._serve, args=(loop,), name="mcp-functions-async", daemon=True)
                self.thread.start()
                self._loop = loop
            return self._loop

    def _serve(self, loop: AbstractEventLoop) -> None:
        """Run the loop for the life of the process: neither a raised SystemExit nor `loop.stop()` ends it."""
        while True:
            loop.call_soon(watch_generators)  # a starting loop installs other hooks
            self._run_until_stopped(loop)

    def _run_until_stopped(self, loop: AbstractEventLoop) -> None:
        try:
            loop.run_forever()
        except (KeyboardInterrupt, SystemExit) as error:  # a task raised it, and asyncio raises it here too
            for call in tuple(self.calls):
                call.exit(error)


_process = _Process()
os.register_at_fork(after_in_child=_process.forget)


def _report(_loop: AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that no code handled, without asyncio's own text: that quotes exceptions and arguments."""
    error = context.get("exception")
    if error and not isinstance(error, InputRequired):  # the round has recorded it
        log.error("not handled in the event loop: %s at %s", type(error).__name__, observability.frames(error))
