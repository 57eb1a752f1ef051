"""All async tools of a process run in one event loop, in another thread than the callers.

An HTTP connection of asyncio works only in the loop that opened it. With one loop, every call of a tool can use it.
When a call ends, the asyncio tasks that it started end too. `talk_to(tool).call(…)` sends a request to the tool.
"""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import httpx2
import pytest

from mcp_functions import Elicit, Step, prompt, tool
from mcp_functions.handlers import event_loop
from tests.support.conversations import talk_to
from tests.support.http_servers import listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator

ROOT = Path(__file__).parents[2]
ARGUMENT = "hunter2"  # must not be logged
caller_name: contextvars.ContextVar[str] = contextvars.ContextVar("caller_name")


@pytest.fixture
def counts() -> Counter[str]:
    """Count what the tasks of a test do."""
    return Counter()


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a call wait 0.01 seconds for cancelled tasks, instead of 1 second."""
    monkeypatch.setattr(event_loop, "GRACE_SECONDS", 0.01)


def run_in_threads(*calls: Callable[[], Any]) -> list[Any]:
    """Make some calls at the same time, each in a thread; return their results."""
    with ThreadPoolExecutor(len(calls)) as threads:
        futures = [threads.submit(call) for call in calls]
        return [future.result() for future in futures]


async def wait_until_cancelled(counts: Counter[str], name: str) -> None:
    """Wait for ever; count the beginning, and the end of the clean-up after the cancelling."""
    counts[f"{name} began"] += 1
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)  # a clean-up that needs the loop
        counts[f"{name} ended"] += 1


# An HTTP connection that several calls use


class KeepAliveServer(BaseHTTPRequestHandler):
    """A server that keeps its connections open, and notes each new one."""

    protocol_version = "HTTP/1.1"
    connections: ClassVar[list[str]] = []

    def setup(self) -> None:
        super().setup()
        self.connections.append("opened")

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    """Start a server that keeps its connections open."""
    KeepAliveServer.connections.clear()
    with listening(KeepAliveServer) as host:
        yield f"http://{host}"


def test_every_call_uses_one_http_connection_even_after_a_failed_call(url: str) -> None:
    http_client, lock = httpx2.AsyncClient(), asyncio.Lock()

    async def get() -> str:
        async with lock:  # the other task waits here, so the lock belongs to this loop from now on
            return (await http_client.get(url)).text

    @tool
    async def fetch() -> str:
        text, _ = await asyncio.gather(get(), get())
        return text

    @tool
    async def fetch_and_raise() -> str:
        await get()
        raise LookupError

    @tool
    async def fetch_and_time_out() -> str:
        await get()
        async with asyncio.timeout(0):
            await asyncio.sleep(60)
        return "unreached"

    assert talk_to(fetch).call().text == "ok"
    for failing in (fetch_and_raise, fetch_and_time_out):
        assert "failed unexpectedly" in talk_to(failing).call().text
        assert talk_to(fetch).call().text == "ok"
    assert KeepAliveServer.connections == ["opened"]
    event_loop.run(http_client.aclose())


# Two calls at once


def test_two_concurrent_calls_can_wait_for_each_other_in_one_event_loop() -> None:
    arrived = {"left": asyncio.Event(), "right": asyncio.Event()}

    @tool
    async def meet(me: str, other: str) -> str:
        arrived[me].set()
        await arrived[other].wait()
        return me

    left, right = run_in_threads(
        lambda: talk_to(meet).call(me="left", other="right"), lambda: talk_to(meet).call(me="right", other="left")
    )
    assert left.text == "left"
    assert right.text == "right"


def test_a_handler_sees_the_context_of_the_thread_that_calls_it_and_does_not_change_it() -> None:
    async def change() -> str:
        name = caller_name.get()
        caller_name.set("changed")
        return name

    context = contextvars.copy_context()
    context.run(caller_name.set, "alice")
    assert context.run(event_loop.run, change()) == "alice"
    assert context[caller_name] == "alice"


# Tasks that a call leaves running


def test_the_tasks_that_a_call_leaves_running_end_with_it(counts: Counter[str]) -> None:
    began = asyncio.Event()

    async def parent() -> None:
        child = asyncio.create_task(wait_until_cancelled(counts, "child"))
        began.set()
        await wait_until_cancelled(counts, "parent")
        await child

    @tool
    async def leave_tasks() -> str:
        task = asyncio.create_task(parent())
        await began.wait()
        return f"done: {task.done()}"

    assert talk_to(leave_tasks).call().text == "done: False"
    assert counts == {"parent began": 1, "parent ended": 1, "child began": 1, "child ended": 1}


def test_the_tasks_of_another_call_continue_when_a_call_ends(counts: Counter[str]) -> None:
    began, may_end = asyncio.Event(), asyncio.Event()

    @tool
    async def stay() -> str:
        task = asyncio.create_task(wait_until_cancelled(counts, "task"))
        began.set()
        await may_end.wait()
        return f"done: {task.done()}"

    @tool
    async def begin_and_end() -> str:
        await began.wait()
        return "ended"

    @tool
    async def allow_end() -> str:
        may_end.set()
        return "allowed"

    def end_two_calls() -> None:
        talk_to(begin_and_end).call()
        talk_to(allow_end).call()

    first, _ = run_in_threads(talk_to(stay).call, end_two_calls)
    assert first.text == "done: False"


def test_a_task_that_a_connection_starts_after_its_call_belongs_to_the_process() -> None:
    may_end = asyncio.Event()
    tasks: list[asyncio.Task[Any]] = []
    callbacks: list[Callable[[], None]] = []

    @tool
    async def connect() -> str:
        context = contextvars.copy_context()  # as a connection keeps it for its callbacks

        def start_task() -> None:
            context.run(lambda: tasks.append(asyncio.get_running_loop().create_task(may_end.wait())))

        callbacks.append(start_task)
        return "connected"

    @tool
    async def receive() -> str:
        callbacks[0]()
        return "received"

    @tool
    async def finish() -> str:
        may_end.set()
        return f"not cancelled: {await tasks[0]}"

    talk_to(connect).call()
    talk_to(receive).call()
    assert talk_to(finish).call().text == "not cancelled: True"


async def run_steps_for_ever(step: Step, counts: Counter[str]) -> None:
    async def work(number: int) -> int:
        for _ in range(5):
            await asyncio.sleep(0)
        counts[f"step {number}"] += 1
        return number

    number = 0
    while True:
        number = await step.wait(f"step-{number}", work, number) + 1


def test_when_the_handler_returns_a_running_step_ends_and_no_other_begins(counts: Counter[str]) -> None:
    @tool
    async def leave(*, step: Step) -> str:
        asyncio.create_task(run_steps_for_ever(step, counts))  # noqa: RUF006 - the call keeps its tasks
        await asyncio.sleep(0)
        return "returned"

    assert talk_to(leave).call().text == "returned"
    assert counts == {"step 0": 1}


def test_a_step_that_ran_when_the_handler_asked_is_recorded(counts: Counter[str]) -> None:
    @tool
    async def leave_and_ask(*, step: Step, elicit: Elicit) -> str:
        if not counts:
            asyncio.create_task(run_steps_for_ever(step, counts))  # noqa: RUF006 - the call keeps its tasks
            await asyncio.sleep(0)
        elicit("number", "How many?", int)
        return f"recorded: {await step.wait('step-0', asyncio.sleep, 0)}"

    assert talk_to(leave_and_ask).call().accept(number=3).text == "recorded: 0"
    assert counts == {"step 0": 1}


def test_a_question_of_a_task_does_not_replace_the_result_of_the_handler() -> None:
    async def work() -> int:
        for _ in range(5):
            await asyncio.sleep(0)
        return 1

    async def work_and_ask(step: Step, elicit: Elicit) -> None:
        await step.wait("work", work)
        elicit("number", "How many?", int)

    @tool
    async def leave(*, step: Step, elicit: Elicit) -> str:
        asyncio.create_task(work_and_ask(step, elicit))  # noqa: RUF006 - the call keeps its tasks
        await asyncio.sleep(0)
        return "returned"

    assert talk_to(leave).call().text == "returned"


def test_an_unfinished_async_generator_is_closed_with_the_call(counts: Counter[str]) -> None:
    async def generate() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            counts["closed"] += 1

    @tool
    async def take_one() -> str:
        async for _ in generate():
            break
        return "one"

    talk_to(take_one).call()
    assert counts == {"closed": 1}


# The log


@pytest.mark.usefixtures("short_grace")
def test_a_task_that_cannot_be_cancelled_is_logged_and_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    may_end = asyncio.Event()

    async def ignore_cancelling(_argument: str) -> None:
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                continue

    @tool
    async def leave() -> str:
        asyncio.create_task(ignore_cancelling(ARGUMENT))  # noqa: RUF006 - the call keeps its tasks
        await asyncio.sleep(0)
        return "returned"

    @tool
    async def allow_end() -> str:
        may_end.set()
        return "allowed"

    assert talk_to(leave).call().text == "returned"
    (line,) = [line for line in caplog.messages if line.startswith("tasks go on")]
    assert line.endswith("<locals>.ignore_cancelling")
    talk_to(allow_end).call()


def test_an_exception_that_nobody_awaits_is_logged_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(argument: str) -> None:
        raise LookupError(argument)

    @tool
    async def leave() -> str:
        task = asyncio.create_task(fail(ARGUMENT))
        await asyncio.sleep(0)
        del task
        asyncio.get_running_loop().call_soon(int, ARGUMENT)
        return "returned"

    talk_to(leave).call()
    of_task, of_callback = [line for line in caplog.messages if line.startswith("not handled in the event loop")]
    assert "LookupError" in of_task
    assert f"{__file__}:" in of_task
    assert " in fail" in of_task
    assert "ValueError" in of_callback
    assert ARGUMENT not in caplog.text


# What a handler does to the loop


class OwnSignal(BaseException):
    """An exception that is no `Exception`."""


async def fail_with(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


async def stop_loop() -> None:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)


async def cancel_other_tasks() -> None:
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


async def succeed() -> str:
    await asyncio.sleep(0)
    return "success"


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, OwnSignal, LookupError])
def test_every_exception_of_a_handler_reaches_its_caller_and_the_loop_continues(error: type[BaseException]) -> None:
    with pytest.raises(error):
        event_loop.run(fail_with(error("no")))
    assert event_loop.run(succeed()) == "success"


@pytest.mark.parametrize("interfere", [stop_loop, cancel_other_tasks])
def test_a_handler_cannot_stop_the_loop_or_cancel_its_own_call(
    interfere: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    event_loop.run(interfere())
    assert event_loop.run(succeed()) == "success"


def test_an_async_handler_that_calls_another_like_a_client_gets_an_error(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    async def inner() -> str:
        return "unreached"

    @tool
    async def outer() -> str:
        return talk_to(inner).call().text

    talk_to(outer).call()
    assert "an async handler cannot be called from another one" in caplog.text


# Completers


def test_an_async_completer_runs_in_the_loop_and_its_exception_reaches_the_caller() -> None:
    lock = asyncio.Lock()

    @prompt
    def greet(language: str) -> str:
        return language

    async def find(beginning: str) -> list[str]:
        async with lock:  # two tasks wait for it, so it belongs to the loop
            await asyncio.sleep(0)
        return [language for language in ("polish", "portuguese") if language.startswith(beginning)]

    @greet.complete("language")
    async def complete(value: str, _arguments: object) -> list[str]:
        languages, _ = await asyncio.gather(find(value), find(value))
        if not languages:
            raise LookupError
        return languages

    for _ in range(2):
        assert greet.find_completions("language", "pol", {})["completion"]["values"] == ["polish"]
    with pytest.raises(LookupError):
        greet.find_completions("language", "nothing", {})
    assert asyncio.iscoroutinefunction(complete)


# In a new process

BEGINNING_OF_SCRIPT = """
import asyncio, contextvars, os, signal, sys, threading
from mcp_functions.handlers import event_loop
assert threading.active_count() == 1, "importing does nothing"
tasks = []

async def succeed():
    await asyncio.sleep(0)
    return "success"

async def leave_tasks():
    asyncio.create_task(asyncio.Event().wait())
    tasks.append(asyncio.create_task(asyncio.Event().wait(), context=contextvars.Context()))  # of no call
    return await succeed()
"""


def run_script(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a new process, where every warning is an error."""
    command = [sys.executable, "-W", "error", "-c", BEGINNING_OF_SCRIPT + script]
    path = {"PYTHONPATH": str(ROOT / "layers" / "shared")}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=path)  # noqa: S603 - our own words


def test_the_event_loop_adds_one_thread_and_the_process_ends_without_a_warning() -> None:
    ended = run_script("print(event_loop.run(leave_tasks()), event_loop.run(succeed()), threading.active_count())")
    assert ended.stdout == "success success 2\n"
    assert ended.stderr == ""
    assert ended.returncode == 0


def test_a_task_in_an_empty_context_belongs_to_the_process() -> None:
    assert run_script("event_loop.run(leave_tasks()); print(tasks[0].done())").stdout == "False\n"


def test_an_interrupt_of_the_calling_thread_cancels_the_call() -> None:
    script = """
def caller_waits():
    caller = threading.main_thread()
    return sys._current_frames()[caller.ident].f_code is threading.Condition.wait.__code__

async def interrupt():
    try:
        while not caller_waits():
            await asyncio.sleep(0.001)
        while True:  # CPython misses a signal that arrives just before a thread blocks, until the next signal
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(5)
    finally:
        print("cancelled", flush=True)

try:
    event_loop.run(interrupt())
except KeyboardInterrupt:
    print("interrupted", event_loop.run(succeed()))
"""
    ended = run_script(script)
    assert ended.stdout == "cancelled\ninterrupted success\n"
    assert ended.stderr == ""
