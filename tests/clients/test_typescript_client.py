"""The official TypeScript client, pinned to 2026-07-28, lists and calls every sample function.

One Node process (`talk.mjs`) holds all conversations, at the front door and at each function's own endpoint; each is
judged on its own.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.clients.earlier import offered_by
from tests.clients.talks import PLACES, TALKS, end
from tests.conformance import node

if TYPE_CHECKING:
    from mcp_functions_harness import Harness

SCRIPT = Path(__file__).with_name("talk.mjs")


class Heard(NamedTuple):
    """The output of the script: the lists, and the result of each conversation by its name and number."""

    listed: dict[str, Any]
    held: dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def records(harness: Harness) -> Heard:
    keys = [(name, place) for name in TALKS for place in PLACES]
    calls = [TALKS[name].sent(harness.url, place) for name, place in keys]
    done = subprocess.run(  # noqa: S603 - our own script
        [node.needed(), SCRIPT],
        input=json.dumps({"url": harness.url, "calls": calls}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    return Heard(printed["listed"], dict(zip(keys, printed["held"], strict=True)))


def test_the_typescript_client_negotiates_the_revision_and_lists_every_sample(records: Heard, harness: Harness) -> None:
    assert records.listed["era"] == "modern"
    lists = ("tools", "prompts", "resources", "resourceTemplates")
    listed = [entry["name"] for kind in lists for entry in records.listed["result"][kind]]
    assert sorted(listed) == offered_by(harness)


def test_the_typescript_client_calls_every_sample(harness: Harness) -> None:
    # audit_year is a task, and this client knows none: tests/harness/test_task_client.py
    assert {talk.call[1] for talk in TALKS.values()} | {"mcp", "audit_year"} == set(harness.functions)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", TALKS)
def test_the_typescript_client_completes_the_conversation_of_each_sample(records: Heard, name: str, place: str) -> None:
    talk, held = TALKS[name], records.held[name, place]
    assert held["asked"] == talk.asked
    assert end(held) == talk.end
