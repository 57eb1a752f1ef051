"""Where a function may ask: in any function it calls, in any kind of handler, in tasks and in threads.

An open question ends the round by an exception, `InputRequired`. No `except` clause and no other error may hide it.
`talk_to(tool)` is the client of test_elicitation.py.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BrokenBarrierError
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import Elicit, ToolError, prompt, resource, tool
from tests.rounds.task_runners import both_task_runners, task_group
from tests.support.conversations import talk_to

if TYPE_CHECKING:
    from tests.rounds.task_runners import RunAll

# In any function and any handler.


def test_functions_that_the_handler_calls_may_ask() -> None:
    def ask_name(elicit: Elicit, whom: str) -> str:
        return elicit(f"name-{whom}", f"What is {whom} name?", str)

    @tool
    def invite(*, elicit: Elicit) -> str:
        return ask_name(elicit, "her") + " and " + ask_name(elicit, "his")

    talk = talk_to(invite).call().accept(**{"name-her": "Ann"}).accept(**{"name-his": "Bob"})
    assert talk.text == "Ann and Bob"


def test_a_prompt_may_ask() -> None:
    @prompt
    def brief(*, elicit: Elicit) -> str:
        return elicit("name", "For whom?", str)

    assert talk_to(brief).get().accept(name="Ann").text == "Ann"


def test_a_resource_may_ask() -> None:
    @resource("house://rules")
    def rules(*, elicit: Elicit) -> str:
        return elicit("name", "For whom?", str)

    assert talk_to(rules).read("house://rules").accept(name="Ann").text == "Ann"


def test_a_resource_template_may_ask() -> None:
    @resource("tickets://{number}")
    def ticket(number: int, *, elicit: Elicit) -> str:
        return f"{number} {elicit('name', 'For whom?', str)}"

    assert talk_to(ticket).read("tickets://7").accept(name="Ann").text == "7 Ann"


# No author's code hides a question.


def test_finally_runs_in_every_round() -> None:
    runs = Counter[str]()

    @tool
    def connect(*, elicit: Elicit) -> str:
        try:
            return elicit("a", "A?", str) + elicit("b", "B?", str)
        finally:
            runs["close"] += 1

    assert talk_to(connect).call().accept(a="Ann").accept(b="Bob").text == "AnnBob"
    assert runs == {"close": 3}


@pytest.mark.parametrize("caught", [Exception, BaseException])
def test_no_except_clause_hides_a_question(caught: type[BaseException]) -> None:
    @tool
    def greet(*, elicit: Elicit) -> str:
        try:
            return elicit("name", "Who?", str)
        except caught:
            return "nobody"

    talk = talk_to(greet).call()
    assert talk.asked == ["name"]
    assert talk.accept(name="Ann").text == "Ann"


@contextlib.contextmanager
def replace_errors(error: Exception) -> Any:  # noqa: ANN401 - a generator
    """Raise this error in place of any other, as a transaction does whose rollback fails."""
    try:
        yield
    except BaseException as first:
        raise error from first


@pytest.mark.parametrize("error", [OSError("connection lost"), ToolError("No."), ValueError()], ids=repr)
def test_no_other_error_hides_a_question(error: Exception) -> None:
    @tool
    def greet(*, elicit: Elicit) -> str:
        with replace_errors(error):
            return elicit("name", "Who?", str)

    talk = talk_to(greet).call()
    assert talk.asked == ["name"]
    assert talk.accept(name="Ann").text == "Ann"


def test_no_other_error_hides_a_question_of_a_prompt() -> None:
    @prompt
    def brief(*, elicit: Elicit) -> str:
        with replace_errors(OSError("connection lost")):
            return elicit("name", "Who?", str)

    assert talk_to(brief).get().asked == ["name"]


def test_an_error_of_a_cancelled_task_hides_no_question() -> None:
    async def fail_when_cancelled() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            message = "closed in the middle"
            raise OSError(message) from None

    @tool
    async def greet(*, elicit: Elicit) -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail_when_cancelled())
            await asyncio.sleep(0)  # the task begins
            elicit("name", "Who?", str)
        return "unreached"

    assert talk_to(greet).call().asked == ["name"]


# In threads.


def test_a_thread_may_ask() -> None:
    @tool
    def greet(*, elicit: Elicit) -> str:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(elicit, "name", "Who?", str).result()

    assert talk_to(greet).call().accept(name="Ann").text == "Ann"


def test_threads_that_ask_at_once_ask_in_one_round() -> None:
    all_began = Barrier(8)

    @tool
    def invite(*, elicit: Elicit) -> int:
        def ask(number: int) -> int:
            with contextlib.suppress(BrokenBarrierError):
                all_began.wait(60)
            return len(elicit(f"guest-{number}", f"Guest {number}?", str))

        with ThreadPoolExecutor(8) as pool:
            return sum(pool.map(ask, range(8)))

    talk = talk_to(invite).call()
    assert sorted(talk.asked) == [f"guest-{number}" for number in range(8)]
    assert talk.accept(**dict.fromkeys(talk.asked, "Ann")).text == "24"


def test_a_thread_of_an_async_handler_may_ask() -> None:
    @tool
    async def greet(*, elicit: Elicit) -> str:
        return await asyncio.to_thread(elicit, "name", "Who?", str)

    assert talk_to(greet).call().accept(name="Ann").text == "Ann"


# In async handlers and their tasks.


async def ask(elicit: Elicit, key: str) -> str:
    await asyncio.sleep(0)
    return elicit(key, f"{key}?", str)


def test_an_async_handler_asks_without_await() -> None:
    @tool
    async def greet(*, elicit: Elicit) -> str:
        return await ask(elicit, "a") + await ask(elicit, "b")

    assert talk_to(greet).call().accept(a="Ann").accept(b="Bob").text == "AnnBob"


@both_task_runners
def test_tasks_ask_in_one_round(run_all: RunAll) -> None:
    @tool
    async def greet(*, elicit: Elicit) -> list[str]:
        return await run_all(ask(elicit, "a"), ask(elicit, "b"))

    talk = talk_to(greet).call()
    assert talk.asked == ["a", "b"]
    assert talk.accept(b="Bob").asked == ["a"]
    assert talk.accept(a="Ann").result["structuredContent"] == ["Ann", "Bob"]


def test_a_declined_question_in_a_task_is_a_tool_error() -> None:
    @tool
    async def greet(*, elicit: Elicit) -> list[str]:
        return await task_group(ask(elicit, "a"), ask(elicit, "b"))

    talk = talk_to(greet).call().decline("b").accept(a="Ann")
    assert talk.result["isError"]
    assert talk.text == "The user declined to answer: b?"


async def fail(error: Exception) -> str:
    await asyncio.sleep(0)
    raise error


def test_a_tool_error_in_nested_task_groups_is_a_tool_error() -> None:
    @tool
    async def greet() -> list[str]:
        return await task_group(task_group(fail(ToolError("No."))))

    assert talk_to(greet).call().text == "No."


def test_a_tool_error_in_a_task_of_a_prompt_is_an_error() -> None:
    @prompt
    async def brief() -> str:
        return str(await task_group(fail(ToolError("No."))))

    assert talk_to(brief).get().error["message"] == "No."


def test_another_error_in_a_task_is_a_crash_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    async def greet() -> list[str]:
        return await task_group(fail(OSError("a secret text")))

    talk = talk_to(greet).call()
    assert talk.result["isError"]
    assert "a secret text" not in talk.text
    assert "a secret text" not in caplog.text
