"""A shared value, such as a database: the first call opens it, every call gets it, the end of the process closes it.

    async def count(word: str, *, database: Annotated[Database, Shared(open_database)]) -> int: ...

The client sends `word`. The toolkit calls the author's `open_database`, which returns a context manager. (This module
has no `from __future__ import annotations`, because the decorators must find types in the annotations, and not text.)
"""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any

import pytest

from mcp_functions import Elicit, Shared, prompt, resource, serve, tool
from mcp_functions_harness.testing import Conversation
from tests.support.conversations import author_error, talk_to

opened: list[str] = []  # the names of the values that were opened, in this process


class Database:
    """A database that works only in the event loop in which it was opened, and has a task there."""

    def __init__(self, words: dict[str, int]) -> None:
        self.words = words
        self.loop = asyncio.get_running_loop()
        self.task = asyncio.create_task(asyncio.sleep(3600))

    async def count(self, word: str) -> int:
        """Count a word, if the loop is the same and no call has ended the task."""
        assert asyncio.get_running_loop() is self.loop
        assert not self.task.done()
        return self.words.get(word, 0)


@asynccontextmanager
async def open_database() -> AsyncIterator[Database]:
    opened.append("database")
    await asyncio.sleep(0)
    yield Database({"tea": 3})


@contextmanager
def open_cache() -> Iterator[dict[str, int]]:
    opened.append("cache")
    yield {}


Cache = Annotated[dict[str, int], Shared(open_cache)]
Words = Annotated[Database, Shared(open_database)]


@tool
async def count(word: str, *, database: Words) -> int:
    """Count a word."""
    return await database.count(word)


@tool
def remember(word: str, *, cache: Cache) -> int:
    """Count the calls with a word, in this process."""
    cache[word] = cache.get(word, 0) + 1
    return cache[word]


@prompt
def recall(word: str, *, cache: Cache) -> str:
    """Write how often `remember` was called with a word."""
    return f"{word}: {cache.get(word, 0)}"


@resource("words://{word}")
async def stored(word: str, *, database: Words) -> str:
    """Read the count of a word."""
    return str(await database.count(word))


@tool
async def order(word: str, *, elicit: Elicit, database: Words) -> str:
    """Order something."""
    number = elicit("number", f"How many of {await database.count(word)}?", int)
    return f"{number} of {await database.count(word)}"


handler = serve(remember)


def run_script(script: str) -> list[str]:
    """Run a script in a new process, and return the lines that it prints."""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    return ended.stdout.splitlines()


def test_the_first_call_opens_a_value_and_every_handler_gets_it() -> None:
    talk = Conversation(serve(count, stored, order))
    assert "database" not in opened
    for _ in range(3):
        assert talk.call("count", word="tea").text == "3"
    assert talk.read("words://tea").result["contents"][0]["text"] == "3"
    assert talk.call("order", word="tea").accept(number={"number": 2}).text == "2 of 3"
    assert opened.count("database") == 1


def test_a_plain_context_manager_serves_plain_functions() -> None:
    talk = Conversation(serve(remember, recall))
    assert talk.call("remember", word="plain").text == "1"
    assert talk.call("remember", word="plain").text == "2"
    assert talk.get("recall", word="plain").result["messages"][0]["content"]["text"] == "plain: 2"


SCRIPT_WITHOUT_LOOP = """
import sys
from tests.handlers.test_shared_values import open_cache
from mcp_functions.handlers.shared_values import shared_value
sys.modules.pop("asyncio")
assert shared_value(open_cache)() is shared_value(open_cache)()
print("asyncio" in sys.modules)
"""


def test_a_plain_value_needs_no_event_loop() -> None:
    assert run_script(SCRIPT_WITHOUT_LOOP) == ["False"]


def test_another_process_has_a_value_of_its_own() -> None:
    talk = Conversation(handler, fresh=True)  # every call runs in a new process
    assert talk.call("remember", word="fresh").text == "1"
    assert talk.call("remember", word="fresh").text == "1"


def test_a_shared_value_is_not_in_the_schema_and_needs_no_key() -> None:
    assert list(count.describe()["inputSchema"]["properties"]) == ["word"]
    assert not count.needs_state


def test_a_unit_test_may_pass_its_own_shared_value() -> None:
    assert remember("x", cache={"x": 4}) == 5


def test_four_calls_at_once_open_a_value_once() -> None:
    barrier = threading.Barrier(4)

    @contextmanager
    def open_slowly() -> Iterator[int]:
        opened.append("slow value")
        time.sleep(0.1)
        yield 7

    @tool
    def get_number(*, number: Annotated[int, Shared(open_slowly)]) -> int:
        """Return the shared number."""
        return number

    def call_at_once(_index: int) -> str:
        barrier.wait()
        return talk_to(get_number).call().text

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(call_at_once, range(4))) == ["7"] * 4
    assert opened.count("slow value") == 1


attempts: list[str] = []


def fail_once() -> int:
    attempts.append("attempt")
    if len(attempts) == 1:
        message = "the password is hunter2"
        raise OSError(message)
    return len(attempts)


@contextmanager
def open_at_second_attempt() -> Iterator[int]:
    yield fail_once()


@asynccontextmanager
async def open_async_at_second_attempt() -> AsyncIterator[int]:
    yield fail_once()


@pytest.mark.parametrize("open_value", [open_at_second_attempt, open_async_at_second_attempt])
def test_a_failure_to_open_is_a_crash_and_the_next_call_tries_again(open_value: Any) -> None:  # noqa: ANN401
    @tool
    def get_number(*, number: Annotated[int, Shared(open_value)]) -> int:
        """Return the shared number."""
        return number

    attempts.clear()
    talk = talk_to(get_number).call()
    assert talk.text == "The tool get_number failed unexpectedly. The server's log says why."
    assert isinstance(talk.raised, OSError)
    assert talk.call().text == "2"
    assert talk.call().text == "2"


def test_an_async_handler_that_would_wait_for_its_own_loop_gets_an_error(caplog: pytest.LogCaptureFixture) -> None:
    @asynccontextmanager
    async def open_numbers() -> AsyncIterator[int]:
        yield 7

    @tool
    def inner(*, number: Annotated[int, Shared(open_numbers)]) -> int:
        """Return a number."""
        return number

    @tool
    async def outer() -> str:
        """Call another tool as a client does."""
        return str(talk_to(inner).call().text)

    talk_to(outer).call()
    assert "an async handler cannot be called from another one" in caplog.text
    assert talk_to(inner).call().text == "7"


def test_a_function_that_returns_no_context_manager_is_the_authors_error(caplog: pytest.LogCaptureFixture) -> None:
    return_number: Any = lambda: 7  # noqa: E731 - an author's mistake

    @tool
    def get_number(*, number: Annotated[int, Shared(return_number)]) -> int:
        """Return the shared number."""
        return number

    assert "takes a function that returns a context manager" in author_error(talk_to(get_number).call(), caplog)


SCRIPT_THAT_ENDS = """
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated
from mcp_functions import Shared, serve, tool
from mcp_functions_harness.testing import Conversation, deployed

@contextmanager
def plain():
    yield 1
    print("plain closed")

@asynccontextmanager
async def later():
    yield 2
    print("async closed")

@tool
async def both(*, a: Annotated[int, Shared(plain)], b: Annotated[int, Shared(later)]) -> int:
    return a + b

with deployed():
    print(Conversation(serve(both)).call().text)
"""


def test_a_local_process_closes_its_shared_values_when_it_ends() -> None:
    sum_of_both, *closed = run_script(SCRIPT_THAT_ENDS)
    assert sum_of_both == "3"
    assert sorted(closed) == ["async closed", "plain closed"]
