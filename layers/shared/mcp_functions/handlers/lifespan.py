"""A lifespan that the calls of a process share: entered at the first call, and left when the process ends."""

from __future__ import annotations

import asyncio
import atexit
from contextvars import Context
from threading import Event
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

SECONDS_TO_LEAVE = 2.0


class Lifespan:
    """Enters a context manager at the first call, in a task that no call ends."""

    def __init__(self, enter: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        """Take a function that makes the context manager; it is not called yet."""
        self._enter = enter
        self._state: asyncio.Future[Any] | None = None
        self._holder: asyncio.Task[None] | None = None

    async def state(self) -> object:
        """Return what the lifespan yielded. If it raised, the next call enters it again."""
        loop = asyncio.get_running_loop()
        if self._state is None or self._state.get_loop() is not loop or _failed(self._state):
            self._state, leaving = loop.create_future(), asyncio.Event()
            # The context is empty: what a lifespan starts belongs to no call, and outlives this one.
            self._holder = loop.create_task(self._hold(self._state, leaving), context=Context())
            atexit.register(_end, loop, self._holder, leaving)  # of a local process; Lambda ends without a last moment
        state: object = await asyncio.shield(self._state)
        return state

    async def _hold(self, state: asyncio.Future[Any], leaving: asyncio.Event) -> None:
        try:
            async with self._enter() as value:
                state.set_result(value)
                await leaving.wait()
        except Exception as error:
            if state.done():
                raise
            state.set_exception(error)


def _end(loop: asyncio.AbstractEventLoop, holder: asyncio.Task[None], leaving: asyncio.Event) -> None:
    """Leave the lifespan, if its loop still runs."""
    ended = Event()
    holder.add_done_callback(lambda _task: ended.set())
    loop.call_soon_threadsafe(leaving.set)
    ended.wait(SECONDS_TO_LEAVE)


def _failed(state: asyncio.Future[Any]) -> bool:
    return state.done() and state.exception() is not None
