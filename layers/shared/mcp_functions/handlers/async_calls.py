"""One call of an async handler: it owns tasks, threads and generators, and they end with it.

A task belongs to the call in which it was created, by the call or by another task of it. An async generator belongs to
the call that first iterates it. A context variable holds the call: asyncio copies it for each task.
"""

from __future__ import annotations

import asyncio
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar
from weakref import WeakSet, ref

from mcp_functions.observability.lines import log

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
    from contextvars import Context

P = ParamSpec("P")
R = TypeVar("R")

# How long a cancelled task may clean up: less than a round keeps for its answer (rounds.round.MARGIN_SECONDS).
GRACE_SECONDS = 1.0


class Call(Generic[R]):
    """One call: its main task, and everything that the main task started.

    Attributes:
        outcome: the result of the coroutine, or its exception; set when its tasks have ended.
        tasks: the tasks of this call that are not done, including the main task.
        jobs: the jobs of this call that run in a thread, or wait for one.
        generators: the async generators that this call has begun to iterate.

    """

    def __init__(self, coroutine: Coroutine[Any, Any, R], thread_seconds: float) -> None:
        """Copy the context variables of the calling thread; `event_loop.run` explains `thread_seconds`."""
        self.outcome: Future[R] = Future()
        self.tasks: set[asyncio.Task[Any]] = set()
        self.jobs: set[Future[Any]] = set()
        self.generators: WeakSet[Any] = WeakSet()
        self._exit: BaseException | None = None
        self._coroutine, self._threads_until = coroutine, time.monotonic() + thread_seconds
        self._context = copy_context()
        self._context.run(_current.set, ref(self))  # a client's connection keeps the context that it was made in

    def begin(self, loop: AbstractEventLoop, calls: set[Call[Any]]) -> None:
        """Start the main task, and add the call to the open calls until it has ended."""
        self._calls = calls
        calls.add(self)
        loop.set_task_factory(_make_task)  # a handler may have set another, for itself
        self._main = _make_task(loop, self._coroutine, context=self._context)
        self._main.add_done_callback(self._end)

    def cancel(self) -> None:
        """Cancel the main task; the call then ends as usual."""
        self._main.cancel()

    def exit(self, error: BaseException) -> None:
        """End the call if one of its tasks raised `error`, a SystemExit or KeyboardInterrupt that no code awaits."""
        others = [task for task in self.tasks if task is not self._main and task.done() and not task.cancelled()]
        if any(task.exception() is error for task in others):
            self._exit = error
            self._main.cancel()

    def _end(self, main: asyncio.Task[R]) -> None:
        """End the other tasks, in a task that no call owns; the caller is answered even if that task is cancelled."""
        apart = self._context.copy()
        apart.run(_current.set, None)
        ending = _make_task(main.get_loop(), self._end_all(), context=apart)
        ending.add_done_callback(self._answer)

    async def _end_all(self) -> None:
        await self._end_tasks()
        left = self._threads_until - time.monotonic()
        if self.jobs and left > 0:
            await asyncio.wait([asyncio.wrap_future(job) for job in tuple(self.jobs)], timeout=left)
            await self._end_tasks()  # threads may have started some
        if closing := [asyncio.ensure_future(each.aclose()) for each in self.generators if not each.ag_running]:
            await asyncio.wait(closing, timeout=GRACE_SECONDS)

    async def _end_tasks(self) -> None:
        """Cancel the remaining tasks, and then the tasks that they started while they cleaned up."""
        loop = asyncio.get_running_loop()
        end = loop.time() + GRACE_SECONDS
        while self.tasks and loop.time() < end:
            for task in self.tasks:
                if not _closes_generator(task):
                    task.cancel()
            await asyncio.wait(self.tasks, timeout=end - loop.time())

    def _answer(self, _ending: asyncio.Task[None]) -> None:
        self._calls.discard(self)
        if self.tasks:
            names = sorted({getattr(task.get_coro(), "__qualname__", "") for task in self.tasks})
            log.warning("tasks go on, though they were cancelled when their call ended: %s", ", ".join(names))
        try:
            error = self._exit or self._main.exception()
        except asyncio.CancelledError as cancelled:
            error = cancelled
        if error is None:
            self.outcome.set_result(self._main.result())
        else:
            self.outcome.set_exception(error)


class Threads(ThreadPoolExecutor):
    """The threads of `asyncio.to_thread`; each job belongs to a call."""

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run a function in a thread, for the call that asks for it."""
        job = super().submit(function, *args, **kwargs)
        if call := _owner():
            call.jobs.add(job)
            job.add_done_callback(call.jobs.discard)
        return job


def watch_generators() -> None:
    """Register each async generator with the call that iterates it, in the loop of this thread."""
    hooks = sys.get_asyncgen_hooks()

    def begin(generator: AsyncGenerator[Any, Any]) -> None:
        if hooks.firstiter:
            hooks.firstiter(generator)
        if call := _owner():
            call.generators.add(generator)

    sys.set_asyncgen_hooks(firstiter=begin, finalizer=hooks.finalizer)


_current: ContextVar[ref[Call[Any]] | None] = ContextVar("call", default=None)


def _owner(context: Context | None = None) -> Call[Any] | None:
    """Find the call of a context; None if it has ended, or if nothing calls."""
    reference = _current.get() if context is None else context.get(_current)
    return reference() if reference else None


def _make_task(
    loop: AbstractEventLoop,
    coroutine: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
    *,
    context: Context | None = None,
    **options: Any,  # noqa: ANN401 - asyncio's own
) -> asyncio.Task[Any]:
    """Make a task for the call in whose context it is created."""
    task = asyncio.Task(coroutine, loop=loop, context=context, **options)
    if call := _owner(context):
        call.tasks.add(task)
        task.add_done_callback(call.tasks.discard)
    return task


def _closes_generator(task: asyncio.Task[Any]) -> bool:
    """Tell whether asyncio made the task to close a dropped generator: cancelling it would cut its `finally` short."""
    return type(task.get_coro()).__name__ == "async_generator_athrow"
