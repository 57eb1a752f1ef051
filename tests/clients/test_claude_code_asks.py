"""Claude Code, with a scripted model, calls a tool that asks and a tool that is a task.

In its terminal it asks its person and follows tasks. In print mode (`-p`) nobody is there: it declares no tasks, and
dismisses a question unless a hook answers it.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.clients.claude_code import SECONDS, ClaudeCode, Person, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mcp_functions_harness import Harness

BOOKING, AUDIT = "mcp__shop__book_trip", "mcp__shop__audit_year"
ANSWER = {"hookSpecificOutput": {"hookEventName": "Elicitation", "action": "accept", "content": {"consent": True}}}
HOOK = {"matcher": "shop", "hooks": [{"type": "command", "command": f"echo '{json.dumps(ANSWER)}'"}]}


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel([(BOOKING, {"city": "Lisbon"}), (AUDIT, {"year": 2026})]).listening() as model:
        yield model


@pytest.fixture
def claude(model: ScriptedModel, tmp_path: Path) -> ClaudeCode:
    claude = ClaudeCode(tmp_path, model.url)
    claude.answer_first_questions()
    return claude


def words(harness: Harness) -> list[str]:
    servers = {"mcpServers": {"shop": {"type": "http", "url": harness.url}}}
    return ["--strict-mcp-config", "--mcp-config", json.dumps(servers), "--allowedTools", f"{BOOKING},{AUDIT}"]


def test_in_its_terminal_claude_code_asks_its_person_and_follows_a_task_to_its_result(
    harness: Harness, claude: ClaudeCode, model: ScriptedModel
) -> None:
    with claude.in_terminal("book, and audit", *words(harness), columns=140) as (_running, terminal):
        person = Person(terminal)
        booked = partial(model.has_heard, "Booked MF 106 to Lisbon: receipt ")
        person.accept_yes("Flight MF 106 to Lisbon costs 420 EUR. Book it?", until=booked)
        assert model.has_heard("started server-side task audit_year.", SECONDS)
        audited = partial(model.has_heard, "2026 is audited: 15 cents remain.")
        person.accept_yes("The first half of 2026 differs by 19 cents. Write that off?", until=audited)


def test_in_print_mode_claude_code_dismisses_a_question_and_follows_no_task(
    harness: Harness, claude: ClaudeCode, model: ScriptedModel
) -> None:
    claude.run("-p", "book, and audit", *words(harness))
    assert model.has_heard("The user dismissed without answering: Flight MF 106 to Lisbon costs 420 EUR. Book it?")
    assert model.has_heard("The client lacks a required capability: extensions.io.modelcontextprotocol/tasks")


def test_in_print_mode_a_hook_of_claude_code_answers_a_question(
    harness: Harness, claude: ClaudeCode, model: ScriptedModel
) -> None:
    settings = json.dumps({"hooks": {"Elicitation": [HOOK]}})
    claude.run("-p", "book, and audit", "--settings", settings, *words(harness))
    assert model.has_heard("Booked MF 106 to Lisbon: receipt ")
