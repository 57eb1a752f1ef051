"""The event loop in which all async functions of authors run. A process has one loop, in a thread of its own.

    calling thread                    thread of the loop
    run(coroutine)                ->  _run_call: await the coroutine
    (waits)                                      await `before_end`
                                                 cancel the asyncio tasks that the call left running
    return the value, or raise    <-             return the value or the exception

Why one loop: an HTTP or database client of asyncio works only in the loop in which it was first used. An author can
create it once in a module, and use it in every call. Why a thread: a local server makes several calls at once.
"""

from __future__ import annotations

import asyncio
import atexit
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from threading import Thread
from types import CoroutineType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from mcp_functions import observability
from mcp_functions.handlers.lazy_values import lazy_value
from mcp_functions.observability.lines import log
from mcp_functions.protocol.errors import DeveloperError, InputRequired

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task
    from collections.abc import Awaitable, Callable, Coroutine
    from contextlib import AbstractAsyncContextManager

    AsyncFunction: TypeAlias = Callable[[], Awaitable[None]]

R = TypeVar("R")

NO_NESTED_CALL = "an async handler cannot be called from another one: await its function instead"
GRACE_SECONDS = 1.0  # for cancelled tasks to clean up; a round keeps more (`MARGIN_SECONDS`)
LEAVE_SECONDS = 2.0  # for a context manager to clean up at the end of a local process

# The unfinished asyncio tasks of a call. A new task gets a copy of its creator's context variables, so all tasks of a
# call find the same set. A task that finds none belongs to the process, and no call ends it.
_tasks_of_call: ContextVar[set[Task[Any]]] = ContextVar("tasks_of_call")


def run(coroutine: Coroutine[Any, Any, R], before_end: AsyncFunction | None = None) -> R:
    """Run the coroutine of one call, and end the asyncio tasks that it left running.

    Args:
        coroutine: the coroutine of an async function. It sees the context variables of the calling thread.
        before_end: waits for those tasks that must finish. It runs when the coroutine has ended.

    Raises:
        DeveloperError: the caller runs in this loop itself, which would wait for itself for ever.
        BaseException: the exception that the coroutine raised.
    """
    if is_current():
        coroutine.close()  # without it, Python warns that the coroutine was never awaited
        raise DeveloperError(NO_NESTED_CALL)
    call = asyncio.run_coroutine_threadsafe(_run_call(coroutine, before_end), _loop())
    try:
        value, error = call.result()
    except BaseException:  # a signal has interrupted the calling thread: Ctrl+C, for example
        call.cancel()
        raise
    if error is not None:
        raise error
    return value


async def _run_call(coroutine: Awaitable[R], before_end: AsyncFunction | None) -> tuple[R, BaseException | None]:
    """Run the coroutine of a call, and end its tasks; return its value, and the exception that it raised.

    It does not raise the exception, because this function is a task of the loop: a SystemExit would stop the loop, and
    asyncio would replace a CancelledError by a new one, without the traceback.
    """
    tasks: set[Task[Any]] = set()
    _tasks_of_call.set(tasks)
    value: Any = None
    error = None
    try:
        value = await coroutine
    except BaseException as raised:  # noqa: BLE001 - `run` raises it
        error = raised
    if before_end:
        await before_end()
    await _end_tasks(tasks)
    return value, error


async def _end_tasks(tasks: set[Task[Any]]) -> None:
    """Cancel the tasks that a call left running, and wait until they have cleaned up.

    After `GRACE_SECONDS`, the tasks that still run are left alone, and the log names them.
    """
    await asyncio.sleep(0)  # a task that begins now closes an unfinished async generator
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE_SECONDS):
            while tasks:  # a cancelled task may create others while it cleans up
                for task in tasks:
                    if isinstance(task.get_coro(), CoroutineType):  # others close generators
                        task.cancel()
                await asyncio.wait(tasks)  # each task that ends leaves the set (`_make_task`)
    if tasks:
        names = sorted({getattr(task.get_coro(), "__qualname__", "") for task in tasks})
        log.warning("tasks go on, though they were cancelled when their call ended: %s", ", ".join(names))


def enter(manager: AbstractAsyncContextManager[R]) -> R:
    """Enter an async context manager in the loop until the process ends, and return its value; raise as `run` does."""
    if is_current():
        raise DeveloperError(NO_NESTED_CALL)
    entered: Future[R] = Future()
    process_ends = asyncio.Event()
    # The tasks of the context manager outlive the current call, so they do not get its `_tasks_of_call`.
    holder = Context().run(asyncio.run_coroutine_threadsafe, _hold(manager, entered, process_ends), _loop())
    value = entered.result()
    atexit.register(_leave, holder, process_ends)
    return value


async def _hold(manager: AbstractAsyncContextManager[R], entered: Future[R], process_ends: asyncio.Event) -> None:
    """Enter a context manager, and leave it when the process ends.

    One task does both, because a context manager may refuse to be left in another task, as those of anyio do.
    """
    try:
        async with manager as value:
            entered.set_result(value)
            await process_ends.wait()
    except BaseException as error:
        if entered.done():
            raise
        entered.set_exception(error)  # `enter` raises it


def _leave(holder: Future[None], process_ends: asyncio.Event) -> None:
    """Let `_hold` leave its context manager, and wait for it."""
    _loop().call_soon_threadsafe(process_ends.set)
    wait([holder], timeout=LEAVE_SECONDS)


def is_current() -> bool:
    """Tell whether the calling function runs in this loop."""
    try:
        return asyncio.get_running_loop() is _loop()
    except RuntimeError:  # no loop runs in this thread
        return False


@lazy_value
def _loop() -> AbstractEventLoop:
    """Return the loop. The first call starts it."""
    loop = asyncio.new_event_loop()
    loop.set_task_factory(_make_task)
    loop.set_exception_handler(_report)
    # The thread is a daemon, so that the process can end while the loop runs.
    Thread(target=_run_for_ever, args=(loop,), name="mcp-functions-async", daemon=True).start()
    return loop


def _run_for_ever(loop: AbstractEventLoop) -> None:
    """Run the loop for the life of the process: neither a task's `sys.exit()` nor `loop.stop()` ends it."""
    while True:
        with suppress(KeyboardInterrupt, SystemExit):
            loop.run_forever()


def _make_task(
    loop: AbstractEventLoop,
    coro: Any,  # noqa: ANN401
    context: Context | None = None,
    **options: Any,  # noqa: ANN401
) -> Task[Any]:
    """Make a task, and add it to the tasks of its call. asyncio calls this for every new task (`set_task_factory`)."""
    if context is None:
        context = copy_context()
    task = asyncio.Task(coro, loop=loop, context=context, **options)
    tasks = context.get(_tasks_of_call)
    if tasks is not None:
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    return task


def _report(_loop: AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that no code handled. asyncio's own text would quote the exception and its arguments."""
    error = context.get("exception")
    if error and not isinstance(error, InputRequired):  # which ends a round with a question
        log.error("not handled in the event loop: %s at %s", type(error).__name__, observability.frames(error))
