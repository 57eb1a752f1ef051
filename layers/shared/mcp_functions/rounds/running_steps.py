"""The steps of one round that run now: in the thread of the handler, in other threads, or in asyncio tasks.

Two calls of one step must not run at the same time. And a round that the client continues waits for these steps: the
next round would run a step again if its result was not recorded.
"""

from __future__ import annotations

from threading import TIMEOUT_MAX
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Callable, Coroutine
    from threading import Condition


class RunningSteps:
    """The keys of the steps that run, and the asyncio tasks of those for which an async handler waits."""

    def __init__(self, lock: Condition) -> None:
        """Take the lock of the round, which guards the keys. It is notified when a step ends."""
        self.keys: set[str] = set()
        self._lock = lock
        self._tasks: set[Task[None]] = set()

    def remove(self, key: str) -> None:
        """Remove a step that has ended, for which `wait_until_ended` may wait."""
        with self._lock:
            self.keys.discard(key)
            self._lock.notify_all()

    def wait_until_ended(self, seconds: float) -> None:
        """Wait for the steps in other threads, for some seconds at most. The caller has the lock."""
        self._lock.wait_for(lambda: not self.keys, min(seconds, TIMEOUT_MAX))

    async def await_in_task(self, work: Coroutine[None, None, None], must_finish: Callable[[], bool]) -> None:
        """Await the work of a step, which runs and records it, in a task that can go on if the caller is cancelled.

        If a question has ended the round then, the work `must_finish`, because the next round needs the result. If not,
        the author's code has cancelled the step.
        """
        import asyncio  # async handlers have imported it, and others do not need it

        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            await asyncio.shield(task)  # if this wait is cancelled, the task still goes on
        except asyncio.CancelledError:
            if not must_finish():
                task.cancel()
            await task  # raises the exception of the work, if it has one
            raise

    async def wait_for_tasks(self) -> None:
        """Wait for the work that still goes on in tasks."""
        import asyncio

        while self._tasks:
            await asyncio.wait(self._tasks)
