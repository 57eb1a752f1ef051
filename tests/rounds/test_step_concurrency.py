"""Steps in async handlers, tasks and threads: one key runs once at a time, and a running step is always recorded.

`step.wait` is the step of an async function. `talk_to(tool)` is the client of test_steps.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import Elicit, Step, tool
from mcp_functions.protocol.errors import DeveloperError
from tests.rounds.task_runners import both_task_runners, gather
from tests.support.conversations import talk_to

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from tests.rounds.conftest import AuthorError
    from tests.rounds.task_runners import RunAll

    InContext = Callable[[Callable[[], Any]], Callable[[], Any]]

TIMEOUT_SECONDS = 60  # no test waits that long, unless it fails

SAME_KEY_ERROR = (
    "step 'reserve' is called again while its first call still runs, in another task or thread: "
    "give each call a key of its own"
)


def copied_context(call: Callable[[], Any]) -> Callable[[], Any]:
    """Make a call for a thread, which runs it in a copy of this thread's context variables."""
    return functools.partial(contextvars.copy_context().run, call)


def empty_context(call: Callable[[], Any]) -> Callable[[], Any]:
    """Make a call for a thread, which has no context variables: Python gives a new thread none."""
    return call


both_contexts = pytest.mark.parametrize("in_context", [copied_context, empty_context])


async def ask(elicit: Elicit) -> bool:
    await asyncio.sleep(0)  # other tasks begin first
    return elicit("ok", "Ok?", bool)


# Different keys run at once.


@both_task_runners
def test_each_async_step_runs_once_and_is_recorded(runs: Counter[str], run_all: RunAll) -> None:
    async def fetch(page: int) -> int:
        runs[f"page {page}"] += 1
        await asyncio.sleep(0)
        return page * page

    @tool
    async def add_pages(*, elicit: Elicit, step: Step) -> int:
        squares = await run_all(*(step.wait(f"page-{page}", fetch, page) for page in range(3)))
        elicit("ok", "Ok?", bool)
        return sum(squares)

    assert talk_to(add_pages).call().accept(ok=True).text == "5"
    assert runs == {"page 0": 1, "page 1": 1, "page 2": 1}


def test_each_async_step_has_its_own_idempotency_key() -> None:
    keys: list[str] = []

    @tool
    async def pay_three(*, step: Step) -> str:
        async def pay() -> None:
            await asyncio.sleep(0)
            keys.append(step.key)

        await gather(*(step.wait(f"pay-{number}", pay) for number in range(3)))
        return "paid"

    talk_to(pay_three).call()
    assert len(set(keys)) == 3


def test_an_async_step_may_declare_its_duration() -> None:
    async def render() -> str:
        return "a page"

    @tool
    async def render_page(*, step: Step) -> str:
        return await step.within(1).wait("render", render)

    assert talk_to(render_page).call().text == "a page"


@both_contexts
def test_each_step_in_a_thread_runs_once_and_is_recorded(runs: Counter[str], in_context: InContext) -> None:
    started = [Event(), Event()]

    def fetch(page: int) -> int:
        runs[f"page {page}"] += 1
        started[page].set()
        assert all(event.wait(TIMEOUT_SECONDS) for event in started)
        return page + 1

    @tool
    def add_pages(*, elicit: Elicit, step: Step) -> int:
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(in_context(lambda: step("page-0", fetch, 0)))
            second = pool.submit(in_context(lambda: step("page-1", fetch, 1)))
            total = first.result() + second.result()
        elicit("ok", f"{total}?", bool)
        return int(total)

    assert talk_to(add_pages).call().accept(ok=True).text == "3"
    assert runs == {"page 0": 1, "page 1": 1}


def test_threads_may_all_read_a_recorded_step(runs: Counter[str]) -> None:
    def quote() -> dict[str, int]:
        runs["quote"] += 1
        return {"euros": 7}

    @tool
    async def buy(*, step: Step) -> list[int]:
        step("quote", quote)
        quotes = await gather(*(asyncio.to_thread(step, "quote", quote) for _ in range(8)))
        return [quote["euros"] for quote in quotes]

    assert talk_to(buy).call().result["structuredContent"] == [7] * 8
    assert runs == {"quote": 1}


# One key runs once at a time.


@both_task_runners
def test_two_tasks_may_not_run_one_key_at_once(runs: Counter[str], author_error: AuthorError, run_all: RunAll) -> None:
    async def reserve() -> str:
        runs["reserve"] += 1
        await asyncio.sleep(0)
        return "a seat"

    @tool
    async def book(*, step: Step) -> str:
        seats = await run_all(step.wait("reserve", reserve), step.wait("reserve", reserve))
        return str(seats)

    assert author_error(talk_to(book).call()) == SAME_KEY_ERROR
    assert runs == {"reserve": 1}


@both_contexts
def test_two_threads_may_not_run_one_key_at_once(
    runs: Counter[str], author_error: AuthorError, in_context: InContext
) -> None:
    first_began, second_ended = Event(), Event()

    def reserve() -> str:
        runs["reserve"] += 1
        first_began.set()
        assert second_ended.wait(TIMEOUT_SECONDS)
        return "a seat"

    @tool
    def book(*, step: Step) -> str:
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(in_context(lambda: step("reserve", reserve)))
            assert first_began.wait(TIMEOUT_SECONDS)
            with contextlib.suppress(DeveloperError):
                step("reserve", reserve)
            second_ended.set()
            return str(first.result())

    assert author_error(talk_to(book).call()) == SAME_KEY_ERROR
    assert runs == {"reserve": 1}


def test_an_async_step_that_raised_may_be_called_again_at_once(runs: Counter[str]) -> None:
    async def reserve() -> str:
        runs["reserve"] += 1
        if runs["reserve"] == 1:
            message = "not yet"
            raise LookupError(message)
        return "a seat"

    @tool
    async def book(*, step: Step) -> str:
        with contextlib.suppress(LookupError):
            await step.wait("reserve", reserve)
        return await step.wait("reserve", reserve)

    assert talk_to(book).call().text == "a seat"


def test_a_cancelled_step_may_be_called_again_after_its_cleanup(runs: Counter[str]) -> None:
    async def reserve() -> str:
        runs["reserve"] += 1
        if runs["reserve"] == 1:
            try:
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(0)
                runs["cleanup"] += 1
        return f"a seat after {runs['cleanup']} cleanup"

    @tool
    async def book(*, step: Step) -> str:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await step.wait("reserve", reserve)
        return await step.wait("reserve", reserve)

    assert talk_to(book).call().text == "a seat after 1 cleanup"


def test_the_author_may_cancel_an_async_step() -> None:
    @tool
    async def hurry(*, step: Step) -> str:
        try:
            await asyncio.wait_for(step.wait("sleep", asyncio.sleep, 3600), timeout=0)
        except TimeoutError:
            return "too slow"
        return "unreached"

    assert talk_to(hurry).call().text == "too slow"


def test_a_task_that_outlives_its_step_may_run_steps() -> None:
    @tool
    async def start_task(*, step: Step) -> str:
        first_ended = asyncio.Event()
        tasks: list[asyncio.Task[str]] = []

        async def run_second() -> str:
            await first_ended.wait()
            return step("second", lambda: "from the second step")

        async def run_first() -> None:
            tasks.append(asyncio.create_task(run_second()))

        await step.wait("first", run_first)
        first_ended.set()
        return await tasks[0]

    assert talk_to(start_task).call().text == "from the second step"


# A round that ends with a question waits for its running steps, and records them.


def test_a_step_in_a_thread_is_recorded_when_the_round_ends(runs: Counter[str]) -> None:
    step_began, round_ended = Event(), Event()

    def reserve() -> str:
        step_began.set()
        assert round_ended.wait(TIMEOUT_SECONDS)
        Event().wait(0.1)  # seconds: the handler has ended by then
        runs["reserve"] += 1
        return "a seat"

    with ThreadPoolExecutor(1) as pool:

        @tool
        def book(*, elicit: Elicit, step: Step) -> str:
            seat = pool.submit(step, "reserve", reserve)
            assert step_began.wait(TIMEOUT_SECONDS)
            try:
                elicit("ok", "Ok?", bool)
            finally:
                round_ended.set()
            return str(seat.result())

        talk = talk_to(book).call()
        assert talk.asked == ["ok"]
        assert runs == {"reserve": 1}
        assert talk.accept(ok=True).text == "a seat"
    assert runs == {"reserve": 1}


@both_task_runners
def test_a_step_in_a_task_is_recorded_when_another_task_asks(runs: Counter[str], run_all: RunAll) -> None:
    async def reserve() -> str:
        for _ in range(5):
            await asyncio.sleep(0)
        runs["reserve"] += 1
        return "a seat"

    @tool
    async def book(*, elicit: Elicit, step: Step) -> str:
        return str(await run_all(ask(elicit), step.wait("reserve", reserve)))

    talk = talk_to(book).call()
    assert talk.asked == ["ok"]
    assert runs == {"reserve": 1}
    assert talk.accept(ok=True).text == "[True, 'a seat']"
    assert runs == {"reserve": 1}


@both_task_runners
def test_no_step_begins_after_another_task_has_asked(runs: Counter[str], run_all: RunAll) -> None:
    async def reserve() -> str:
        for _ in range(5):
            await asyncio.sleep(0)
        return "a seat"

    def pay() -> None:
        runs["pay"] += 1

    async def reserve_and_pay(step: Step) -> str:
        seat = await step.wait("reserve", reserve)
        step("pay", pay)
        return seat

    @tool
    async def book(*, elicit: Elicit, step: Step) -> str:
        return str(await run_all(ask(elicit), reserve_and_pay(step)))

    talk = talk_to(book).call()
    assert runs == {}
    assert talk.accept(ok=True).text == "[True, 'a seat']"
    assert runs == {"pay": 1}


def test_an_async_step_that_fails_while_another_task_asks_is_not_recorded(runs: Counter[str]) -> None:
    async def reserve() -> str:
        runs["reserve"] += 1
        await asyncio.sleep(0)
        if runs["reserve"] == 1:
            message = "not yet"
            raise LookupError(message)
        return "a seat"

    @tool
    async def book(*, elicit: Elicit, step: Step) -> str:
        return str(await gather(step.wait("reserve", reserve), ask(elicit)))

    assert talk_to(book).call().accept(ok=True).text == "['a seat', True]"
