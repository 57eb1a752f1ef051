"""The event loop of this process: every async handler runs in it.

    calling thread    run(coroutine)   ----------------------->   waits            returns the result, or raises
    loop's thread                        the coroutine runs; its remaining tasks end

An asyncio client, of HTTP or of a database, belongs to the loop in which it first waited. With one loop for all calls,
a client that a module makes serves every call of the process. The loop runs in a separate thread, because the
local harness makes several calls at once.

A task belongs to the call that created it, and ends with it.
"""

from __future__ import annotations

import asyncio
import atexit
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import Context, ContextVar
from functools import cache
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from mcp_functions import observability
from mcp_functions.observability.lines import log
from mcp_functions.protocol.errors import DeveloperError, InputRequired

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Coroutine
    from contextlib import AbstractAsyncContextManager

    from mcp_functions.rounds.round import Round

R = TypeVar("R")

NO_NESTED_CALL = "an async handler cannot be called from another one: await its function instead"
# How long a cancelled task may clean up. It must be less than the time that a round reserves to send its response
# (`MARGIN_SECONDS` in rounds/round.py).
GRACE_SECONDS = 1.0
LEAVE_SECONDS = 2.0  # how long the end of a local process waits for a context manager to be left

# The tasks of a call that are not done. asyncio copies the context for each task, so a task finds those of its call.
_tasks_of_call: ContextVar[set[asyncio.Task[Any]] | None] = ContextVar("tasks_of_call", default=None)


def run(coroutine: Coroutine[Any, Any, R], round_: Round | None = None) -> R:
    """Run the coroutine of one call, and end the tasks that it left running.

    Args:
        coroutine: the coroutine that the async function returned. It sees the context variables of the calling thread.
        round_: the round, if the call may take several. A step is a piece of work whose result a round records. Steps
            that have begun are finished and recorded.

    Raises:
        DeveloperError: a function that runs in this loop calls it; it would wait for itself.
        BaseException: the exception that the coroutine raised.
    """
    if is_current():
        coroutine.close()  # Python warns of a coroutine that nobody awaits
        raise DeveloperError(NO_NESTED_CALL)
    call = asyncio.run_coroutine_threadsafe(_run_call(coroutine, round_), _loop())
    try:
        outcome = call.result()
    except BaseException:  # a signal, such as Ctrl+C, has interrupted this thread while it waited
        call.cancel()
        raise
    return outcome.result()


def enter(manager: AbstractAsyncContextManager[R]) -> R:
    """Enter a context manager in the loop, and return its value.

    It is left when a local process ends; Lambda ends a process without notice.

    Raises:
        DeveloperError: a function that runs in this loop calls it; it would wait for itself.
        BaseException: the exception that the context manager raised on entering.
    """
    if is_current():
        raise DeveloperError(NO_NESTED_CALL)
    loop = _loop()
    value: Future[R] = Future()
    end = asyncio.Event()  # set when the process ends

    async def hold() -> None:
        """Enter and leave in the same task, as asyncio's libraries require."""
        try:
            value.set_result(await manager.__aenter__())
        except BaseException as error:  # noqa: BLE001 - `enter` raises it
            value.set_exception(error)
            return
        await end.wait()
        await manager.__aexit__(None, None, None)

    # In an empty context: what the context manager starts belongs to no call, and goes on after this one.
    held = Context().run(asyncio.run_coroutine_threadsafe, hold(), loop)

    def leave() -> None:
        loop.call_soon_threadsafe(end.set)
        wait([held], timeout=LEAVE_SECONDS)

    entered = value.result()
    atexit.register(leave)
    return entered


def is_current() -> bool:
    """Tell whether the calling function runs in this loop."""
    try:
        return asyncio.get_running_loop() is _loop()
    except RuntimeError:  # no loop runs in this thread
        return False


async def _run_call(coroutine: Coroutine[Any, Any, R], round_: Round | None) -> Future[R]:
    """Run the coroutine of a call, end what the call has started, and return the coroutine's result or exception.

    `run` raises the exception, in the calling thread. Raised in the loop, a SystemExit would stop the loop, and asyncio
    would replace a CancelledError by another one, which has no traceback.
    """
    tasks: set[asyncio.Task[Any]] = set()
    _tasks_of_call.set(tasks)
    outcome: Future[R] = Future()  # nobody waits for it: it carries the result or the exception to `run`
    try:
        outcome.set_result(await coroutine)
    except BaseException as error:  # noqa: BLE001 - `run` raises it
        outcome.set_exception(error)
    if round_:
        await round_.wait_for_steps()
    await _end_tasks(tasks)
    return outcome


async def _end_tasks(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel the tasks that a call left running, and wait until they have cleaned up.

    A task that still runs after `GRACE_SECONDS` is left alone, and the log names it.
    """
    await asyncio.sleep(0)  # one turn of the loop: asyncio starts to close the async generators that the call dropped
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE_SECONDS):
            while tasks:  # again for the tasks that a cancelled task starts while it cleans up
                for task in tasks:
                    if not _closes_generator(task):
                        task.cancel()
                await asyncio.wait(tasks)
    if tasks:
        names = sorted({getattr(task.get_coro(), "__qualname__", "") for task in tasks})
        log.warning("tasks go on, though they were cancelled when their call ended: %s", ", ".join(names))


def _closes_generator(task: asyncio.Task[Any]) -> bool:
    """Tell whether asyncio has started a task to close an async generator, which is a cleanup itself."""
    return type(task.get_coro()).__name__ == "async_generator_athrow"


def _loop() -> AbstractEventLoop:
    """Return the loop, which the first call of the process starts."""
    with _starting:
        return _start_loop()


_starting = Lock()  # `cache` alone could start two loops, if two first calls come at once


@cache
def _start_loop() -> AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_task_factory(_make_task)
    loop.set_exception_handler(_report)
    # A daemon thread does not keep the process alive.
    Thread(target=_run_for_ever, args=(loop,), name="mcp-functions-async", daemon=True).start()
    return loop


def _run_for_ever(loop: AbstractEventLoop) -> None:
    """Run the loop for the life of the process: neither a task's `sys.exit()` nor `loop.stop()` ends it."""
    while True:
        with suppress(KeyboardInterrupt, SystemExit):
            loop.run_forever()


def _make_task(loop: AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:  # noqa: ANN401 - asyncio's
    """Make a task, as asyncio asks a task factory to, and add it to the tasks of the call that creates it."""
    task = asyncio.Task(coroutine, loop=loop, **options)
    context: Context | None = options.get("context")  # the author's own, or None for a copy of the creator's
    tasks = _tasks_of_call.get() if context is None else context.get(_tasks_of_call)
    if tasks is not None:
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    return task


def _report(_loop: AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that no code handled, without asyncio's own text: that quotes exceptions and arguments."""
    error = context.get("exception")
    # InputRequired is no fault: it is the signal that a round has ended with a question.
    if error and not isinstance(error, InputRequired):
        log.error("not handled in the event loop: %s at %s", type(error).__name__, observability.frames(error))
