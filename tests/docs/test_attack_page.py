"""The page "The attacker": its table matches the checks, its commands run, and its statements on other servers hold."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from typing import TYPE_CHECKING

import pytest

from mcp_functions.attack import CHECKS, attack, cli
from tests.docs.pages import ROOT, Page
from tests.peers.running import COMMANDS, HERE, row, started

if TYPE_CHECKING:
    from pathlib import Path

PAGE = Page.named("attack.md")
COMMANDS_SHOWN = [line for line in PAGE.code("sh").replace("\\\n", " ").splitlines() if "mcp_functions.attack" in line]
NAMES = {check.name for check in CHECKS}


def test_the_table_of_checks_equals_the_checks_of_the_attacker() -> None:
    written = [f"| `{c.name}` | {c.severity} | {c.basis} | {c.sentence} |" for c in CHECKS]
    table = PAGE.text.partition("## What it tries")[2].partition("\n## ")[0]
    assert [line for line in table.splitlines() if line.startswith("| `")] == written


@pytest.mark.parametrize("command", COMMANDS_SHOWN)
def test_the_attacker_accepts_the_commands_of_the_page(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    python, _m, module, *words = shlex.split(command)
    assert (python, module) == ("python", "mcp_functions.attack")
    with cli.command.make_context("attack", words) as context:
        assert context.params["url"].startswith("http://127.0.0.1:8000")


def test_the_commands_of_the_page_name_tools_of_the_samples() -> None:
    offered = json.loads((ROOT / "functions/mcp/catalog.json").read_text(encoding="utf-8"))["functions"]["tools"]
    assert set(re.findall(r"--tool (\w+)", PAGE.text)) <= offered.keys()


def test_the_statements_about_other_servers_name_pinned_versions_and_checks() -> None:
    found = PAGE.text.partition("## What it finds elsewhere")[2]
    rows = [line for line in found.splitlines() if re.match(r"\| [\w, ]+ \| (none|`)", line) and line.count("|") == 5]
    assert len(rows) == 7
    assert {name for line in rows for name in re.findall(r"`([\w-]+)`", line)} <= NAMES
    python = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert "mcp==2.3.0" in python["demo"]
    assert "`mcp` 2.3.0" in found
    for package, version in json.loads((HERE / "package.json").read_text(encoding="utf-8"))["dependencies"].items():
        if package.startswith("@modelcontextprotocol/"):
            assert f"`{package}` {version}" in found


def test_the_statement_about_the_default_of_the_python_sdk_is_true() -> None:
    with started(COMMANDS["python"]) as urls:
        report = attack(urls["Resolve"])
    assert row("Resolve", report) in PAGE.text.splitlines()
