"""The event loop of this process, in which every async handler runs. The loop has its own thread.

    1. `run` gives the coroutine of a call to the loop's thread. The calling thread waits.
    2. `_run_call` runs in the loop's thread. It awaits the coroutine, and notes its value or its exception.
    3. Then it ends what the coroutine left behind: it waits for steps, and cancels the other asyncio tasks of the call.
    4. `run` returns the value, or raises the exception, in the calling thread.

An asyncio client, of HTTP or of a database, works only in the loop in which it was first used. With one loop for all
calls, a client that a module creates serves every call of the process. Because the loop has its own thread, the local
harness can make several calls at once.
"""

from __future__ import annotations

import asyncio
import atexit
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import Context, ContextVar
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from mcp_functions import observability
from mcp_functions.handlers.lazy_values import lazy_value
from mcp_functions.observability.lines import log
from mcp_functions.protocol.errors import DeveloperError, InputRequired

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Coroutine
    from contextlib import AbstractAsyncContextManager

    from mcp_functions.rounds.round import Round

R = TypeVar("R")

NO_NESTED_CALL = "an async handler cannot be called from another one: await its function instead"
# The time that a cancelled task has to clean up. It must be shorter than the time that a round keeps for its response
# (`MARGIN_SECONDS` in rounds/round.py).
GRACE_SECONDS = 1.0
LEAVE_SECONDS = 2.0  # the time that a context manager has to clean up at the end of a local process

# The unfinished asyncio tasks of the current call; None outside a call. asyncio copies the context variables into each
# new task, so all tasks of a call find the same set.
_tasks_of_call: ContextVar[set[asyncio.Task[Any]] | None] = ContextVar("tasks_of_call", default=None)


def run(coroutine: Coroutine[Any, Any, R], round_: Round | None = None) -> R:
    """Run the coroutine of one call, and end the asyncio tasks that it left running.

    Args:
        coroutine: what the async function returned. It sees the context variables of the calling thread.
        round_: the current round, which is one request of a call, if the call may take several; None otherwise. The
            steps of the round that have begun are finished, and their results recorded.

    Raises:
        DeveloperError: the calling function runs in this loop, so that it would wait for itself.
        BaseException: the exception that the coroutine raised.
    """
    if is_current():
        coroutine.close()  # Python warns of a coroutine that nobody awaits
        raise DeveloperError(NO_NESTED_CALL)
    call = asyncio.run_coroutine_threadsafe(_run_call(coroutine, round_), _loop())
    value: R
    try:
        value, error = call.result()
    except BaseException:  # a signal has interrupted the calling thread: Ctrl+C, for example
        call.cancel()
        raise
    if error is not None:
        raise error
    return value


async def _run_call(coroutine: Coroutine[Any, Any, R], round_: Round | None) -> tuple[Any, BaseException | None]:
    """Run the coroutine of a call, and end what it left behind. Return its value and its exception; one is None.

    The exception is returned, because it cannot be raised here: a SystemExit would stop the loop, and asyncio would
    replace a CancelledError by a new one, without the traceback.
    """
    tasks: set[asyncio.Task[Any]] = set()
    _tasks_of_call.set(tasks)
    value: R | None = None
    error: BaseException | None = None
    try:
        value = await coroutine
    except BaseException as raised:  # noqa: BLE001 - `run` raises it
        error = raised
    if round_:
        await round_.wait_for_steps()
    await _end_tasks(tasks)
    return value, error


async def _end_tasks(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel the tasks that a call left running, and wait until they have cleaned up.

    A task that still runs after `GRACE_SECONDS` is left alone, and the log names it.
    """
    await asyncio.sleep(0)  # one turn of the loop: asyncio starts to close the async generators that the call dropped
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE_SECONDS):
            while tasks:  # a cancelled task may create others while it cleans up
                for task in tasks:
                    if not _closes_generator(task):
                        task.cancel()
                await asyncio.wait(tasks)
    if tasks:
        names = sorted({getattr(task.get_coro(), "__qualname__", "") for task in tasks})
        log.warning("tasks go on, though they were cancelled when their call ended: %s", ", ".join(names))


def _closes_generator(task: asyncio.Task[Any]) -> bool:
    """Tell whether a task is one of asyncio's own, which closes an async generator."""
    return type(task.get_coro()).__name__ == "async_generator_athrow"


def enter(manager: AbstractAsyncContextManager[R]) -> R:
    """Enter a context manager in the loop, and return its value.

    A local process leaves the context manager at its end; Lambda ends a process without notice.

    Raises:
        DeveloperError: the calling function runs in this loop, so that it would wait for itself.
        BaseException: the exception that the context manager raised on entering.
    """
    if is_current():
        raise DeveloperError(NO_NESTED_CALL)
    value: Future[R] = Future()
    process_ends = asyncio.Event()
    # In an empty context: the tasks of the context manager belong to no call, and go on after this one.
    holder = Context().run(asyncio.run_coroutine_threadsafe, _hold(manager, value, process_ends), _loop())
    entered = value.result()
    atexit.register(_leave, holder, process_ends)
    return entered


async def _hold(manager: AbstractAsyncContextManager[R], value: Future[R], process_ends: asyncio.Event) -> None:
    """Enter a context manager and leave it in the same task, as asyncio's libraries require."""
    try:
        value.set_result(await manager.__aenter__())
    except BaseException as error:  # noqa: BLE001 - `enter` raises it
        value.set_exception(error)
        return
    await process_ends.wait()
    await manager.__aexit__(None, None, None)


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
    """Return the loop, which the first call of the process starts."""
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
    # The author may pass a context; otherwise asyncio copies the current one.
    context: Context | None = options.get("context")
    tasks = _tasks_of_call.get() if context is None else context.get(_tasks_of_call)
    if tasks is not None:
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    return task


def _report(_loop: AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that no code handled. The text is not asyncio's, which quotes exceptions and arguments."""
    error = context.get("exception")
    # InputRequired is no fault: it is the signal that a round has ended with a question.
    if error and not isinstance(error, InputRequired):
        log.error("not handled in the event loop: %s at %s", type(error).__name__, observability.frames(error))
