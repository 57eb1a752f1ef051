"""A shared value: the first call opens it, every call gets it, and the end of the process closes it.

No `from __future__ import annotations` here, because most authors' modules have none.
"""

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any

import pytest

from mcp_functions import Elicit, Shared, prompt, resource, serve, tool
from mcp_functions.testing import Conversation
from tests.support.conversations import author_error, talk_to

OPENED: list[str] = []


class Database:
    """A database that belongs to the event loop in which it was opened."""

    def __init__(self, words: dict[str, int]) -> None:
        self.words, self.loop = words, asyncio.get_running_loop()
        self.is_open, self.watcher = True, asyncio.create_task(asyncio.sleep(3600))

    async def count(self, word: str) -> int:
        """Count a word: the loop must be the same, and no call may have ended what the database started."""
        assert asyncio.get_running_loop() is self.loop
        assert self.is_open
        assert not self.watcher.done()
        return self.words.get(word, 0)


@asynccontextmanager
async def open_database() -> AsyncIterator[Database]:
    OPENED.append("database")
    await asyncio.sleep(0)
    yield Database({"tea": 3})


@contextmanager
def open_cache() -> Iterator[dict[str, int]]:
    OPENED.append("cache")
    yield {}


Cache = Annotated[dict[str, int], Shared(open_cache)]
Words = Annotated[Database, Shared(open_database)]


@tool
async def count(word: str, *, database: Words) -> int:
    """Count a word."""
    return await database.count(word)


@tool
def remember(word: str, *, cache: Cache) -> int:
    """Count how often a container has heard a word."""
    cache[word] = cache.get(word, 0) + 1
    return cache[word]


@prompt
def recall(word: str, *, cache: Cache) -> str:
    """Recall how often."""
    return f"{word}: {cache.get(word, 0)}"


@resource("words://{word}")
async def stored(word: str, *, database: Words) -> str:
    """Read it."""
    return str(await database.count(word))


@tool
async def order(word: str, *, elicit: Elicit, database: Words) -> str:
    """Order something."""
    number = elicit("number", f"How many of {await database.count(word)}?", int)
    return f"{number} of {await database.count(word)}"


handler = serve(remember)


def test_the_first_call_opens_it_and_every_handler_gets_the_same() -> None:
    talk = Conversation(serve(count, stored, order))
    assert "database" not in OPENED
    assert [talk.call("count", word="tea").text for _ in range(3)] == ["3"] * 3
    assert talk.read("words://tea").result["contents"][0]["text"] == "3"
    assert talk.call("order", word="tea").accept(number={"number": 2}).text == "2 of 3"
    assert OPENED.count("database") == 1


def test_a_plain_context_manager_serves_plain_functions() -> None:
    talk = Conversation(serve(remember, recall))
    assert [talk.call("remember", word="plain").text for _ in range(2)] == ["1", "2"]
    assert talk.get("recall", word="plain").result["messages"][0]["content"]["text"] == "plain: 2"


NO_LOOP = """
import sys
from tests.handlers.test_shared_values import open_cache
from mcp_functions.handlers.shared_values import shared_value
sys.modules.pop("asyncio")
assert shared_value(open_cache)() is shared_value(open_cache)()
print("asyncio" in sys.modules)
"""


def test_a_plain_value_needs_no_event_loop() -> None:
    ran = subprocess.run([sys.executable, "-c", NO_LOOP], capture_output=True, text=True, check=True)  # noqa: S603
    assert ran.stdout == "False\n"


def test_another_process_has_a_value_of_its_own() -> None:
    talk = Conversation(handler, fresh=True)
    assert [talk.call("remember", word="fresh").text for _ in range(2)] == ["1", "1"]


def test_the_model_does_not_see_it_and_no_key_is_needed() -> None:
    assert list(count.describe()["inputSchema"]["properties"]) == ["word"]
    assert not count.needs_state


def test_a_unit_test_passes_its_own() -> None:
    assert remember("x", cache={"x": 4}) == 5


def test_two_calls_at_once_open_it_once() -> None:
    opened, gate = [], threading.Barrier(4)

    @contextmanager
    def open_slowly() -> Iterator[int]:
        opened.append(1)
        threading.Event().wait(0.1)
        yield 7

    @tool
    def seven(*, value: Annotated[int, Shared(open_slowly)]) -> int:
        """Return a number."""
        return value

    def call_it(_index: int) -> str:
        gate.wait()
        return str(talk_to(seven).call().text)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(call_it, range(4))) == ["7"] * 4
    assert opened == [1]


@pytest.mark.parametrize("is_async", [True, False])
def test_a_failure_to_open_is_a_crash_and_the_next_call_tries_again(is_async: bool) -> None:  # noqa: FBT001
    tries = []

    def attempt() -> int:
        tries.append(1)
        if len(tries) == 1:
            message = "the password is hunter2"
            raise OSError(message)
        return len(tries)

    @asynccontextmanager
    async def open_async() -> AsyncIterator[int]:
        yield attempt()

    @contextmanager
    def open_plain() -> Iterator[int]:
        yield attempt()

    enter: Any = open_async if is_async else open_plain

    @tool
    def tried(*, number: Annotated[int, Shared(enter)]) -> int:
        """Return a number."""
        return number

    talk = talk_to(tried).call()
    assert talk.text == "The tool tried failed unexpectedly. The server's log says why."
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
    assert any("an async handler cannot be called from another one" in line for line in caplog.messages)
    assert talk_to(inner).call().text == "7"


def test_what_is_no_context_manager_is_the_authors_error(caplog: pytest.LogCaptureFixture) -> None:
    wrong: Any = lambda: 7  # noqa: E731 - it is wrong on purpose

    @tool
    def tried(*, number: Annotated[int, Shared(wrong)]) -> int:
        """Return a number."""
        return number

    assert "takes a function that returns a context manager" in author_error(talk_to(tried).call(), caplog)


def test_a_wrong_place_or_value_is_refused_at_the_decorator() -> None:
    def before(cache: Cache) -> None:
        """Do nothing."""

    def wrong(*, cache: Annotated[int, Shared(7)]) -> None:
        """Do nothing."""

    with pytest.raises(TypeError, match="cache: what calls share is a parameter after"):
        tool(before)
    with pytest.raises(TypeError, match="cache: Shared takes a function"):
        tool(wrong)


LEAVES = """
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated
from mcp_functions import Shared, serve, tool
from mcp_functions.testing import Conversation, deployed

@contextmanager
def plain():
    yield 1
    print("plain left")

@asynccontextmanager
async def later():
    yield 2
    print("async left")

@tool
async def both(*, a: Annotated[int, Shared(plain)], b: Annotated[int, Shared(later)]) -> int:
    return a + b

with deployed():
    print(Conversation(serve(both)).call().text)
"""


def test_a_local_process_leaves_what_it_opened_when_it_ends() -> None:
    ran = subprocess.run([sys.executable, "-c", LEAVES], capture_output=True, text=True, check=True)  # noqa: S603
    first, *others = ran.stdout.split("\n")[:3]
    assert (first, sorted(others)) == ("3", ["async left", "plain left"])
