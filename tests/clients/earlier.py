"""The clients that speak the revisions of 2025, and how each of them holds a list of conversations."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.clients.talks import PLACES, TALKS
from tests.conformance import node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mcp_functions_harness import Harness

HERE = Path(__file__).parent
PYTHON_1 = HERE.parents[1] / ".venv-clients" / "bin" / "python"
SECONDS = 600  # of a machine that has much else to do
EVERYTHING = os.environ.get("CLIENTS") == "all"  # `make clients`
OLDEST, JUNE, LATEST = "2025-03-26", "2025-06-18", "2025-11-25"
LISTS = {"method": "lists", "params": {}, "answers": []}


class Heard(NamedTuple):
    """The output of a client: the lists, and the result of each conversation by its name and number."""

    listed: dict[str, Any]
    held: dict[tuple[str, str], dict[str, Any]]

    def is_of(self, speaker: Speaker, harness: Harness) -> None:
        """Find its revision in every conversation, and every handler in its lists if it asked for them."""
        said = [*self.held.values(), *([self.listed] if self.listed else [])]
        assert {held["revision"] for held in said} == {speaker.revision}
        if self.listed:
            lists = ("tools", "prompts", "resources", "resourceTemplates")
            listed = [entry["name"] for kind in lists for entry in self.listed["result"][kind]]
            assert sorted(listed) == offered_by(harness)


def offered_by(harness: Harness) -> list[str]:
    """Return the sorted names in the lists of the samples: their handlers, and each skill, which is a resource too."""
    handlers = [handler.name for each in harness.functions.values() for handler in each.handlers]
    skills = (Path(__file__).parents[2] / "skills").glob("*/SKILL.md")
    return sorted([*handlers, *(path.parent.name for path in skills)])


class Speaker(NamedTuple):
    """One client as its maker released it.

    Attributes:
        name: as the table of docs/compatibility.md names it.
        revision: that it negotiates.
        command: that reads conversations from stdin and prints what came of them; it skips the test if it cannot run.
        asks: whether its user can be asked by what it knows of the protocol.

    """

    name: str
    revision: str
    command: Callable[[], list[str]]
    asks: bool = True

    def hold(self, url: str, names: Iterable[str], places: Sequence[str] = PLACES[:1], *, lists: bool = True) -> Heard:
        """Hold conversations of TALKS, some at once, in one process of the client."""
        keys = [(name, place) for name in names for place in places]
        calls = [TALKS[name].sent(url, place) for name, place in keys]
        listed, *held = self.say([{"url": url, **LISTS}, *calls]) if lists else ({}, *self.say(calls))
        return Heard(listed, dict(zip(keys, held, strict=True)))

    def say(self, calls: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Hold the given conversations with the same client."""
        done = subprocess.run(  # noqa: S603 - our own scripts
            self.command(),
            input="".join(f"{json.dumps(call)}\n" for call in calls),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


def _python_1() -> list[str]:
    if not PYTHON_1.exists():
        missing = "no .venv-clients: make clients prepares it"
        (pytest.fail if os.environ.get("CI", "") not in {"", "false"} else pytest.skip)(missing)
    return [str(PYTHON_1), str(HERE / "python_1.py")]


def _python_2() -> list[str]:
    return [sys.executable, str(HERE / "python_2.py")]


def ai_sdk(package: str) -> Callable[[], list[str]]:
    """Return the command of a release of Vercel's client."""
    return lambda: [str(node.needed()), str(HERE / "ai_sdk.mjs"), package]


def _typescript(package: str) -> Callable[[], list[str]]:
    return lambda: [str(node.needed()), str(HERE / "earlier.mjs"), package]


SPEAKERS = {
    speaker.name: speaker
    for speaker in (
        Speaker('Python `mcp` 2.3, `mode="legacy"`', LATEST, _python_2),
        Speaker("Python `mcp` 1.30", LATEST, _python_1),
        Speaker("TypeScript `client` 2.4, its default", LATEST, _typescript("@modelcontextprotocol/client")),
        Speaker("TypeScript `sdk` 1.32", LATEST, _typescript("@modelcontextprotocol/sdk")),
        Speaker("Vercel `@ai-sdk/mcp` 1.0", LATEST, ai_sdk("ai-sdk-2025-11-25"), asks=False),
        Speaker("TypeScript `sdk` 1.17", JUNE, _typescript("sdk-2025-06-18"), asks=False),
        Speaker("TypeScript `sdk` 1.12", OLDEST, _typescript("sdk-2025-03-26"), asks=False),
    )
}
ASKED = [name for name, speaker in SPEAKERS.items() if speaker.asks]
TOLD = [name for name, speaker in SPEAKERS.items() if not speaker.asks]

# A question after a question, a booking, a prompt, both kinds of resources, two requests in one round.
SAMPLES = {"add", "update_work_item", "book_trip", "briefing", "ticket", "house_rules"}
HELD = [name for name, talk in TALKS.items() if talk.call[1] in SAMPLES or name == "two requests in one round"]
