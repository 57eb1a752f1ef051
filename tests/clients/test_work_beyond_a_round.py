"""Both official clients complete work of several rounds without code for it.

The function is `functions/summarize_year` on a slow day: every query takes six seconds, of a clock that the rest of
the process does not see.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from mcp import Client

from mcp_functions_harness import Harness
from tests.clients.conftest import FUNCTIONS
from tests.clients.people import talk, text
from tests.clients.test_typescript_client import SCRIPT
from tests.conformance import node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_types import CallToolResult

SUMMARY = "468 tickets in 2026, most of them in September: 79."
ROUNDS = 3  # 72 seconds of work, under 30 seconds each
SLOW_DAY = """
import time

working = [0.0]
quick, summarize = count_tickets, serve(summarize_year, now=lambda: time.time() + working[0])


def count_tickets(year: int, month: int) -> int:
    working[0] += 6
    return quick(year, month)


class SlowDay:
    handlers = summarize.handlers

    def __call__(self, event, context):
        working[0] = 0  # a new round: the clock of the world has caught up
        return summarize(event, context)


handler = SlowDay()
"""


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    folder = tmp_path_factory.mktemp("functions") / "summarize_year"
    folder.mkdir()
    source = (FUNCTIONS / "summarize_year" / "app.py").read_text(encoding="utf-8")
    (folder / "app.py").write_text(source + SLOW_DAY, encoding="utf-8")
    with Harness(folder.parent, state_dir=tmp_path_factory.mktemp("state")) as harness:
        yield harness


def test_the_python_client_gets_the_result_and_each_month_is_reported_once(slow: Harness) -> None:
    seen: list[tuple[float, float | None]] = []

    async def watch(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
        seen.append((progress, total))

    async def called(client: Client) -> tuple[CallToolResult, int]:
        await client.list_tools()  # now only the rounds are left to count
        before = len(slow.invocations)
        result = await client.call_tool("summarize_year", {"year": 2026}, progress_callback=watch)
        return result, len(slow.invocations) - before

    result, rounds = talk(Client(f"{slow.url}/summarize_year"), called)
    assert (text(result), rounds) == (SUMMARY, ROUNDS)
    assert seen == [(month, 12) for month in range(1, 13)]


def test_the_typescript_client_gets_the_result(slow: Harness) -> None:
    url, year = f"{slow.url}/summarize_year", {"name": "summarize_year", "arguments": {"year": 2026}}
    sent = {"url": url, "calls": [{"url": url, "method": "tools/call", "params": year, "answers": []}]}
    done = subprocess.run(  # noqa: S603 - our own script
        [node.needed(), SCRIPT], input=json.dumps(sent), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    (held,) = json.loads(done.stdout.splitlines()[-1])["held"]  # the client says which lists it left out
    assert held["result"]["content"] == [{"type": "text", "text": SUMMARY}]
    assert held["asked"] == []
