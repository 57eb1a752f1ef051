"""The event loop of this process: every async handler runs in it, in a separate thread.

    thread of a call     run(coroutine) ---------------------> waits for the result
    thread of the loop       _run_call: the coroutine, then the end of what it started

An asyncio client, of HTTP or of a database, belongs to the loop in which it first waited. With one loop for all calls,
a client that a module makes serves every call of the process.

A call owns the tasks and threads that it started, and they end with it. The context variable `_current` holds the call,
because asyncio copies the context for each task.
"""

from __future__ import annotations

import asyncio
import atexit
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import Context, ContextVar
from functools import cache
from threading import Lock, Thread, current_thread
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from mcp_functions import observability
from mcp_functions.observability.lines import log
from mcp_functions.protocol.errors import DeveloperError, InputRequired
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Coroutine
    from contextlib import AbstractAsyncContextManager

    from mcp_functions.rounds.round import Round

P = ParamSpec("P")
R = TypeVar("R")

# A cancelled task may clean up for so long: less than a round keeps for its answer (rounds.round.MARGIN_SECONDS).
GRACE_SECONDS = 1.0
SECONDS_TO_LEAVE = 2.0  # the time in which a lifespan must end when a local process ends


def run(coroutine: Coroutine[Any, Any, R], round_: Round | None = None) -> R:
    """Run the coroutine of one call, and end the tasks that it left running.

    Args:
        coroutine: the coroutine that the async function returned. It sees the context variables of the calling thread.
        round_: the round, if the call may take several. A step is a piece of work whose result a round records. Steps
            that have begun are finished and recorded. A thread (`asyncio.to_thread`) cannot be cancelled, and may run
            until the round's deadline.

    Raises:
        DeveloperError: a function that runs in this loop calls it; it would wait for itself.
        BaseException: the exception that the coroutine raised.
    """
    if is_current():
        coroutine.close()
        raise DeveloperError(rule="an async handler cannot be called from another one: await its function instead")
    with _starting:
        loop = _thread().loop
    outcome = asyncio.run_coroutine_threadsafe(_run_call(coroutine, round_), loop)
    try:
        result = outcome.result()
    finally:
        outcome.cancel()  # Ctrl+C may have interrupted this thread; for a finished call it does nothing
    if isinstance(result, asyncio.CancelledError):
        raise result
    return result


def is_current() -> bool:
    """Tell whether the calling function runs in this loop."""
    return isinstance(current_thread(), _LoopThread)


class Lifespan:
    """A context manager that the calls of a process share: entered at the first call, left when the process ends."""

    def __init__(self, enter: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        """Take a function that makes the context manager; it is not called yet."""
        self._enter = enter
        self._state: asyncio.Future[Any] | None = None

    async def state(self) -> object:
        """Return what the lifespan yielded. If it raised, the next call enters it again."""
        has_failed = self._state is not None and self._state.done() and self._state.exception()
        if self._state is None or has_failed:
            loop = asyncio.get_running_loop()
            leaving = asyncio.Event()
            self._state = loop.create_future()
            # The context is empty: what a lifespan starts belongs to no call, and outlives this one.
            holder = loop.create_task(self._hold(self._state, leaving), context=Context())
            # It runs when a local process ends. Lambda ends a process without calling it.
            atexit.register(_leave, holder, leaving)
        # The shield: a call that is cancelled while it waits must not cancel what other calls wait for.
        state: object = await asyncio.shield(self._state)
        return state

    async def _hold(self, state: asyncio.Future[Any], leaving: asyncio.Event) -> None:
        """Enter the context manager, and leave it in the same task, as asyncio's libraries require."""
        try:
            async with self._enter() as value:
                state.set_result(value)
                await leaving.wait()
        except Exception as error:
            if state.done():  # the exception came on leaving, when no call waits for the state
                raise
            state.set_exception(error)


def _leave(holder: asyncio.Task[None], leaving: asyncio.Event) -> None:
    """Tell the task that holds a lifespan to leave it, and wait until it has."""

    async def leave() -> None:
        leaving.set()
        await asyncio.wait([holder])

    wait([asyncio.run_coroutine_threadsafe(leave(), holder.get_loop())], timeout=SECONDS_TO_LEAVE)


class _Call(NamedTuple):
    """The tasks and jobs of one call that are not done."""

    tasks: set[asyncio.Task[Any]]
    jobs: set[Future[Any]]  # functions that run in a thread, or wait for one


_current: ContextVar[_Call | None] = ContextVar("call", default=None)


async def _run_call(coroutine: Coroutine[Any, Any, R], round_: Round | None) -> R | asyncio.CancelledError:
    """Run the coroutine of a call, and then end what the call has started.

    Returns:
        The coroutine's result. A cancellation is returned too, because asyncio would replace a raised one by its own,
        which has no traceback.
    """
    call = _Call(tasks=set(), jobs=set())
    _current.set(call)
    try:
        return await coroutine
    except asyncio.CancelledError as error:
        return error
    finally:
        if round_:
            await round_.wait_for_steps()
        await asyncio.sleep(0)  # one turn of the loop: asyncio begins to close the generators that the call dropped
        await _end_tasks(call)
        if call.jobs and round_ and round_.seconds_left > 0:
            jobs = [asyncio.wrap_future(job) for job in tuple(call.jobs)]
            await asyncio.wait(jobs, timeout=round_.seconds_left)
            await _end_tasks(call)  # threads may have started some


async def _end_tasks(call: _Call) -> None:
    """Cancel the remaining tasks, and then the tasks that they started while they cleaned up.

    A task that still runs after `GRACE_SECONDS` is left alone, and the log names it.
    """
    end = time.monotonic() + GRACE_SECONDS
    while call.tasks and time.monotonic() < end:
        for task in call.tasks:
            is_closing_generator = type(task.get_coro()).__name__ == "async_generator_athrow"
            if not is_closing_generator:
                task.cancel()
        await asyncio.wait(call.tasks, timeout=end - time.monotonic())
    if call.tasks:
        names = sorted({getattr(task.get_coro(), "__qualname__", "") for task in call.tasks})
        log.warning("tasks go on, though they were cancelled when their call ended: %s", ", ".join(names))


def _make_task(loop: AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:  # noqa: ANN401 - asyncio's
    """Make a task, as asyncio asks a task factory to, and note it with the call in whose context it is created."""
    task = asyncio.Task(coroutine, loop=loop, **options)
    context: Context | None = options.get("context")
    call = _current.get() if context is None else context.get(_current)
    if call:
        call.tasks.add(task)
        task.add_done_callback(call.tasks.discard)
    return task


class _Threads(ThreadPoolExecutor):
    """The threads of `asyncio.to_thread`; each job belongs to a call."""

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run a function in a thread, for the call that asks for it."""
        job = super().submit(function, *args, **kwargs)
        call = _current.get()
        if call:
            call.jobs.add(job)
            job.add_done_callback(call.jobs.discard)
        return job


class _LoopThread(Thread):
    """The thread of the loop. It is a daemon: it does not keep a process alive."""

    def __init__(self) -> None:
        super().__init__(name="mcp-functions-async", daemon=True)
        self.loop = asyncio.new_event_loop()
        self.loop.set_task_factory(_make_task)
        self.loop.set_exception_handler(_report)
        self.loop.set_default_executor(_Threads(thread_name_prefix="mcp-functions-worker"))

    def run(self) -> None:
        """Run the loop for the life of the process: neither a raised SystemExit nor `loop.stop()` ends it."""
        while True:
            with suppress(KeyboardInterrupt, SystemExit):  # asyncio raises it here, and in the call that waits
                self.loop.run_forever()


@cache
def _thread() -> _LoopThread:
    """Return the thread, which the first call of the process starts."""
    thread = _LoopThread()
    thread.start()
    return thread


_starting = Lock()  # two first calls at once must start one thread, and `cache` alone may run `_thread` twice


def _report(_loop: AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that no code handled, without asyncio's own text: that quotes exceptions and arguments."""
    error = context.get("exception")
    # InputRequired is no fault: it is the signal that a round has ended with a question.
    if error and not isinstance(error, InputRequired):
        log.error("not handled in the event loop: %s at %s", type(error).__name__, observability.frames(error))
