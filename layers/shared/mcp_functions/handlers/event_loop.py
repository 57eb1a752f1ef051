"""The event loop of this process: every async handler runs in it, in a separate thread.

A client of asyncio belongs to the loop in which it first waited. With one loop for all calls, a client that a module
makes serves every call of the process.

A call owns its tasks, threads and generators, and they end with it. A task belongs to the call in which it was created,
by the call or by another task of it; an async generator belongs to the call that first iterates it. A context variable
holds the call: asyncio copies it for each task.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import ContextVar, copy_context
from threading import Lock, Thread, current_thread
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar
from weakref import WeakSet, ref

from mcp_functions import observability
from mcp_functions.observability.lines import log
from mcp_functions.protocol.errors import DeveloperError, InputRequired

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
    from contextvars import Context

P = ParamSpec("P")
R = TypeVar("R")

# How long a cancelled task may clean up: less than a round keeps for its answer (rounds.round.MARGIN_SECONDS).
GRACE_SECONDS = 1.0


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
        raise DeveloperError(rule="an async handler cannot be called from another one: await its function instead")
    call, loop = _Call(coroutine, thread_seconds), _process.loop()
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


class _Call(Generic[R]):
    """One call: its main task, and everything that the main task started."""

    def __init__(self, coroutine: Coroutine[Any, Any, R], thread_seconds: float) -> None:
        self.outcome: Future[R] = Future()  # of the coroutine; set when its tasks have ended
        self.tasks: set[asyncio.Task[Any]] = set()  # that are not done, including the main task
        self.jobs: set[Future[Any]] = set()  # that run in a thread, or wait for one
        self.generators: WeakSet[Any] = WeakSet()  # that this call has begun to iterate
        self._exit: BaseException | None = None
        self._coroutine, self._threads_until = coroutine, time.monotonic() + thread_seconds
        self._context = copy_context()
        self._context.run(_current.set, ref(self))  # a client's connection keeps the context that it was made in

    def begin(self, loop: AbstractEventLoop, calls: set[_Call[Any]]) -> None:
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


class _Threads(ThreadPoolExecutor):
    """The threads of `asyncio.to_thread`; each job belongs to a call."""

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run a function in a thread, for the call that asks for it."""
        job = super().submit(function, *args, **kwargs)
        if call := _owner():
            call.jobs.add(job)
            job.add_done_callback(call.jobs.discard)
        return job


def _watch_generators() -> None:
    """Register each async generator with the call that iterates it, in the loop of this thread."""
    hooks = sys.get_asyncgen_hooks()

    def begin(generator: AsyncGenerator[Any, Any]) -> None:
        if hooks.firstiter:
            hooks.firstiter(generator)
        if call := _owner():
            call.generators.add(generator)

    sys.set_asyncgen_hooks(firstiter=begin, finalizer=hooks.finalizer)


_current: ContextVar[ref[_Call[Any]] | None] = ContextVar("call", default=None)


def _owner(context: Context | None = None) -> _Call[Any] | None:
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


class _Process:
    """The loop of this process and its thread; both start with the first call."""

    def __init__(self) -> None:
        self._inherited: list[object] = []
        self._begin()

    def _begin(self) -> None:
        self.thread: Thread | None = None
        self.calls: set[_Call[Any]] = set()  # that are open; only the loop's thread changes the set
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
                loop.set_default_executor(_Threads(thread_name_prefix="mcp-functions-worker"))
                self.thread = Thread(target=self._serve, args=(loop,), name="mcp-functions-async", daemon=True)
                self.thread.start()
                self._loop = loop
            return self._loop

    def _serve(self, loop: AbstractEventLoop) -> None:
        """Run the loop for the life of the process: neither a raised SystemExit nor `loop.stop()` ends it."""
        while True:
            loop.call_soon(_watch_generators)  # a starting loop installs other hooks
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
