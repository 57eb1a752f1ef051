"""Async handlers share one event loop: clients of a module live as long as the process, tasks as long as their call."""

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
from pydantic import BaseModel

from mcp_functions import Elicit, Step, prompt, tool
from mcp_functions.handlers import event_loop
from mcp_functions.local import Harness
from tests.local.conftest import write_functions
from tests.support import wire
from tests.support.conversations import talk_to
from tests.support.http_servers import listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator

    from mcp_functions.testing import Conversation


ROOT = Path(__file__).parents[2]
SECRET = "hunter2"  # noqa: S105 - planted, so that a log that quotes can be caught


class Ok(BaseModel):
    ok: bool


YES = {"ok": True}
heard: contextvars.ContextVar[str] = contextvars.ContextVar("heard")


@pytest.fixture
def did() -> Counter[str]:
    return Counter()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls wait only briefly for tasks that will not end."""
    monkeypatch.setattr(event_loop, "GRACE_SECONDS", 0.01)


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Make some calls at once, each in its own thread, as the harness does."""
    with ThreadPoolExecutor(len(calls)) as threads:
        return [call.result() for call in [threads.submit(call) for call in calls]]


async def until_cancelled(did: Counter[str], name: str) -> None:
    did[f"{name} began"] += 1
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        did[f"{name} ended"] += 1


# ---- A client that a module makes, and calls at once


class Shop(BaseHTTPRequestHandler):
    """A server that keeps its connections open, and counts them."""

    protocol_version = "HTTP/1.1"
    connections: ClassVar[Counter[str]] = Counter()

    def setup(self) -> None:
        super().setup()
        self.connections["opened"] += 1

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def shop() -> Iterator[str]:
    with listening(Shop) as host:
        yield f"http://{host}"


def test_a_client_made_once_serves_every_call_even_after_a_failed_one(shop: str) -> None:
    client, lock = httpx2.AsyncClient(), asyncio.Lock()

    @tool
    async def look(how: str, *, elicit: Elicit) -> str:
        async def get() -> str:
            async with lock:  # a lock belongs to the loop in which a task first waits for it
                return (await client.get(shop)).text

        found, _ = await asyncio.gather(get(), get())
        match how:
            case "raise":
                raise LookupError
            case "time out":
                async with asyncio.timeout(0):
                    await asyncio.sleep(60)
            case "ask":
                found += str(elicit("sure", "Sure?", Ok).ok)
            case "close":
                await client.aclose()
        return found

    before = Shop.connections["opened"]
    for how in ("look", "raise", "look", "time out", "look"):
        talk = talk_to(look).call(how=how)
        if how == "look":
            assert talk.text == "ok"
    assert talk_to(look).call(how="ask").accept(sure=YES).text == "okTrue"
    assert talk_to(look).call(how="close").text == "ok"
    assert Shop.connections["opened"] - before == 1


def test_two_calls_at_once_wait_for_each_other_in_one_loop() -> None:
    arrived = {"left": asyncio.Event(), "right": asyncio.Event()}

    @tool
    async def meet(me: str, other: str) -> str:
        arrived[me].set()
        await arrived[other].wait()
        return me

    sides = [("left", "right"), ("right", "left")]
    talks = at_once(*(lambda me=me, other=other: talk_to(meet).call(me=me, other=other) for me, other in sides))
    assert [talk.text for talk in talks] == ["left", "right"]


MEET = """
import asyncio
from mcp_functions import serve, tool

ARRIVED = {"left": asyncio.Event(), "right": asyncio.Event()}

@tool
async def meet(me: str, other: str) -> str:
    ARRIVED[me].set()
    await ARRIVED[other].wait()
    return me

handler = serve(meet)
"""


def test_two_requests_at_once_meet_in_the_harness(tmp_path: Path) -> None:
    functions = write_functions(tmp_path / "functions", {"meet/app.py": MEET})
    with Harness(functions, state_dir=tmp_path / "state") as running:

        def meet(me: str, other: str) -> str:
            sent = wire.message("tools/call", {"name": "meet", "arguments": {"me": me, "other": other}})
            answer = httpx2.post(f"{running.url}/meet", json=sent, headers=wire.headers(sent), timeout=30)
            return str(answer.json()["result"]["content"][0]["text"])

        assert at_once(lambda: meet("left", "right"), lambda: meet("right", "left")) == ["left", "right"]


def test_a_handler_sees_the_context_of_the_thread_that_calls_it() -> None:
    async def look() -> str:
        await asyncio.sleep(0)
        seen = heard.get()
        heard.set("changed")
        return seen

    token = heard.set("the caller's")
    try:
        assert (event_loop.run(look()), heard.get()) == ("the caller's", "the caller's")
    finally:
        heard.reset(token)


# ---- What a call leaves running


def test_the_tasks_that_a_call_leaves_running_end_with_it_and_no_others(did: Counter[str]) -> None:
    began, over = asyncio.Event(), asyncio.Event()

    async def parent(name: str) -> None:
        child = asyncio.create_task(until_cancelled(did, f"{name}'s child"))
        began.set()
        await until_cancelled(did, name)
        await child

    @tool
    async def leaves() -> str:
        left = asyncio.create_task(parent("left"))
        await began.wait()
        return str(left.done())

    @tool
    async def goes_on() -> str:
        kept = asyncio.create_task(until_cancelled(did, "kept"))
        await over.wait()
        return str(kept.done())

    @tool
    async def ends() -> str:
        over.set()
        return "told"

    def leave_and_end() -> Conversation:
        try:
            left = talk_to(leaves).call()
            assert did == {"left began": 1, "left's child began": 1, "left ended": 1, "left's child ended": 1, **kept()}
        finally:
            talk_to(ends).call()
        return left

    def kept() -> dict[str, int]:
        return {name: count for name, count in did.items() if name.startswith("kept")}

    other, one = at_once(talk_to(goes_on).call, leave_and_end)
    assert (one.text, other.text) == ("False", "False")
    assert kept() == {"kept began": 1, "kept ended": 1}


def test_later_tasks_of_an_ended_calls_connection_belong_to_the_process() -> None:
    read = asyncio.Event()
    kept: list[asyncio.Task[Any]] = []

    @tool
    async def connects() -> str:
        made_here = contextvars.copy_context()  # as a connection keeps it for its callbacks

        def receive() -> None:
            made_here.run(lambda: kept.append(asyncio.get_running_loop().create_task(read.wait())))

        received.append(receive)
        return "connected"

    @tool
    async def reads() -> str:
        received[0]()
        return "reading"

    @tool
    async def ends() -> str:
        read.set()
        return str(await kept[0])

    received: list[Callable[[], None]] = []
    talk_to(connects).call()
    talk_to(reads).call()
    assert talk_to(ends).call().text == "True"


def test_running_steps_are_recorded_when_the_handler_returns_and_no_others_begin(did: Counter[str]) -> None:
    async def work(number: int) -> int:
        for _ in range(5):
            await asyncio.sleep(0)
        did[str(number)] += 1
        return number

    async def work_for_ever(step: Step) -> None:
        number = 0
        while True:
            number = await step.wait(f"step-{number}", work, number) + 1

    @tool
    async def leaves(*, step: Step, elicit: Elicit) -> str:
        if not did:
            asyncio.create_task(work_for_ever(step))  # noqa: RUF006 - the call keeps its tasks
            await asyncio.sleep(0)
        elicit("sure", "Sure?", Ok)
        return str(await step.wait("step-0", work, 0))

    @tool
    async def returns(*, step: Step) -> str:
        asyncio.create_task(work_for_ever(step))  # noqa: RUF006 - likewise
        await asyncio.sleep(0)
        return "returned"

    assert talk_to(leaves).call().accept(sure=YES).text == "0"
    assert did == {"0": 1}
    assert talk_to(returns).call().text == "returned"
    assert did == {"0": 2}


def test_a_question_that_a_task_asks_after_the_handler_has_returned_does_not_replace_the_result() -> None:
    async def work() -> int:
        for _ in range(5):
            await asyncio.sleep(0)
        return 1

    async def work_and_ask(step: Step, elicit: Elicit) -> None:
        await step.wait("work", work)
        elicit("sure", "Sure?", Ok)

    @tool
    async def returns(*, step: Step, elicit: Elicit) -> str:
        asyncio.create_task(work_and_ask(step, elicit))  # noqa: RUF006 - the call keeps its tasks
        await asyncio.sleep(0)
        return "returned"

    assert talk_to(returns).call().text == "returned"


def test_a_dropped_async_generator_is_closed_with_the_call(did: Counter[str]) -> None:
    async def count(name: str) -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            did[name] += 1

    @tool
    async def drops() -> str:
        async for _ in count("dropped"):
            break
        return "one is enough"

    talk_to(drops).call()
    assert did == {"dropped": 1}


@pytest.mark.usefixtures("impatient")
def test_a_task_that_does_not_end_is_logged_and_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    enough = asyncio.Event()

    async def stubborn(_known: str) -> None:
        while not enough.is_set():
            try:
                await enough.wait()
            except asyncio.CancelledError:
                continue

    @tool
    async def leaves() -> str:
        asyncio.create_task(stubborn(SECRET))  # noqa: RUF006 - the call keeps its tasks
        await asyncio.sleep(0)
        return "done"

    @tool
    async def ends() -> str:
        enough.set()
        return "ended"

    assert talk_to(leaves).call().text == "done"
    told = [line for line in caplog.messages if line.startswith("tasks go on")]
    assert len(told) == 1
    assert told[0].endswith("<locals>.stubborn")
    talk_to(ends).call()


def test_an_exception_that_is_not_awaited_is_logged_by_type_and_place_without_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fails(known: str) -> None:
        raise LookupError(known)

    @tool
    async def leaves() -> str:
        task = asyncio.create_task(fails(SECRET))
        await asyncio.sleep(0)
        del task
        asyncio.get_running_loop().call_soon(int, SECRET)
        return "done"

    talk_to(leaves).call()
    told = [line for line in caplog.messages if line.startswith("not handled in the event loop")]
    assert [line.split()[6] for line in told] == ["LookupError", "ValueError"]
    assert f"{__file__}:" in told[0]
    assert " in fails" in told[0]
    assert SECRET not in caplog.text


# ---- What a handler does to the loop


class OwnSignal(BaseException):
    """An exception that is no `Exception`."""


async def raises(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


async def stops() -> None:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)


async def cancels_everything() -> None:
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


async def fine() -> str:
    await asyncio.sleep(0)
    return "fine"


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, OwnSignal, LookupError])
def test_every_exception_of_a_handler_reaches_its_caller_and_the_loop_continues(error: type[BaseException]) -> None:
    with pytest.raises(error):
        event_loop.run(raises(error("no")))
    assert event_loop.run(fine()) == "fine"


@pytest.mark.parametrize("how", [stops, cancels_everything])
def test_a_handler_cannot_stop_the_loop_or_cancel_its_own_call(
    how: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    event_loop.run(how())
    assert event_loop.run(fine()) == "fine"


def test_an_async_handler_that_calls_another_like_a_client_gets_an_error(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    async def inner() -> str:
        return "unreached"

    @tool
    async def outer() -> str:
        return talk_to(inner).call().text

    talk_to(outer).call()
    assert any("an async handler cannot be called from another one" in line for line in caplog.messages)


# ---- Completers


def test_a_completer_may_be_async_and_wait_for_the_client_of_its_module() -> None:
    lock = asyncio.Lock()

    @prompt
    def greet(language: str) -> str:
        return language

    async def known(begin: str) -> list[str]:
        async with lock:
            await asyncio.sleep(0)
            return [language for language in ("polish", "portuguese") if language.startswith(begin)]

    @greet.complete("language")
    async def languages(value: str, _arguments: object) -> list[str]:
        found, _ = await asyncio.gather(known(value), known(value))
        if not found:
            raise LookupError
        return found

    found = [greet.find_completions("language", value, {})["completion"]["values"] for value in ("po", "pol")]
    assert found == [["polish", "portuguese"], ["polish"]]
    with pytest.raises(LookupError):
        greet.find_completions("language", "nothing", {})
    assert asyncio.iscoroutinefunction(languages)


# ---- In a new process


def run_script(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script where every warning is an error."""
    command = [sys.executable, "-W", "error", "-c", script]
    path = {"PYTHONPATH": str(ROOT / "layers" / "shared")}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=path)  # noqa: S603 - our own words


BEGIN = """
import asyncio, contextvars, os, signal, sys, threading, warnings
from mcp_functions.handlers import event_loop
assert threading.active_count() == 1, "importing does nothing"
LOCK = asyncio.Lock()

async def fine():
    async with LOCK:
        held = asyncio.create_task(LOCK.acquire())
        await asyncio.sleep(0)
    await held
    LOCK.release()
    return "fine"

async def watch():
    await asyncio.Event().wait()

async def watched():
    asyncio.create_task(watch(), name="left")
    KEPT.append(asyncio.create_task(watch(), context=contextvars.Context()))
    await asyncio.sleep(0)
    return await fine()

KEPT = []
"""


def test_a_process_ends_without_a_warning() -> None:
    done = run_script(BEGIN + "print(event_loop.run(watched()), event_loop.run(fine()), threading.active_count())")
    assert (done.stdout, done.stderr, done.returncode) == ("fine fine 2\n", "", 0)


def test_interrupting_the_caller_interrupts_the_call() -> None:
    interrupt = """
async def interrupted():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        await watch()
    finally:
        print("cancelled", flush=True)

try:
    event_loop.run(interrupted())
except KeyboardInterrupt:
    print("interrupted", event_loop.run(fine()))
"""
    done = run_script(BEGIN + interrupt)
    assert (done.stdout, done.stderr, done.returncode) == ("cancelled\ninterrupted fine\n", "", 0)
