"""`mcp-functions demo --pause`: another client completes a conversation after three days."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_functions_harness.command import run as main
from mcp_functions_harness.demo import clients
from tests.conformance import node
from tests.harness.conftest import change_tool

ROOT = Path(__file__).parents[2]
END = "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created. (release 2)"


def headings(page: str) -> list[str]:
    assert "\033" not in page
    lines = page.splitlines()
    assert max(map(len, lines)) <= 120
    return [line for line in lines if line.startswith(("Round", "Three days"))]


def test_the_typescript_client_completes_a_conversation_of_the_python_client(demo_functions: Path) -> None:
    found = node.needed()
    for there in (clients.SCRIPT, clients.PACKAGES):
        (demo_functions.parent / there.parent).mkdir(exist_ok=True, parents=True)
        (demo_functions.parent / there).symlink_to(ROOT / there)
    command = [sys.executable, "-m", "mcp_functions_harness", "demo", "--pause"]
    path = f"{found.parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(  # noqa: S603 - ours
        command, cwd=demo_functions.parent, env=os.environ | {"PATH": path}, text=True, capture_output=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    first, pause, second, third = headings(ran.stdout)
    assert (first, pause) == ("Round 1: the official Python client", "Three days later")
    assert second.startswith("Round 2: the official TypeScript client 2.4.0, Node.js v")
    assert third.startswith("Round 3: the official TypeScript client 2.4.0, Node.js v")
    assert "moto only lists the rotation" in ran.stdout
    assert f"result   {END}" in ran.stdout


def test_without_a_typescript_client_another_python_process_finishes(
    demo_functions: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(demo_functions))
    before = (demo_functions / "update_work_item" / "app.py").read_bytes()
    assert main(["demo", "--pause"]) == 0
    page, errors = capsys.readouterr()
    assert errors == ""
    assert headings(page) == [
        "Round 1: the official Python client",
        "Three days later",
        "Round 2: the official Python client",
        "Round 3: the official Python client",
    ]
    assert "The TypeScript client does not take over: Node.js is not installed. A new Python process does." in page
    assert f"result   {END}" in page
    assert (demo_functions / "update_work_item" / "app.py").read_bytes() == before
    assert not (demo_functions.parent / ".mcp-functions").exists()


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("v18.20.4", "Node.js v18.20.4 is older than 20"),
        ("v22.23.3", "it is not installed (npm ci --prefix tests/conformance)"),
    ],
)
def test_the_demo_states_why_there_is_no_typescript_client(
    version: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "node"
    program.write_text(f"#!/bin/sh\necho {version}\n", encoding="utf-8")
    program.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert clients.typescript(tmp_path) == why


def demo_error(demo_functions: Path, old: str, new: str, capsys: pytest.CaptureFixture[str]) -> str:
    change_tool(demo_functions, old, new)
    assert main(["demo", "--pause"]) == 1
    error_output = capsys.readouterr().err
    assert error_output.count("\n") == 1
    return error_output.removeprefix("mcp-functions: the demo went wrong: ").strip()


def test_the_demo_of_a_pause_reports_a_tool_that_does_not_wait_for_days(
    demo_functions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = demo_error(demo_functions, "timedelta(days=7)", "timedelta(days=2)", capsys)
    assert message == "the official Python client failed: -32602 Invalid or expired requestState"


def test_the_demo_of_a_pause_reports_a_tool_that_cannot_be_upgraded(
    demo_functions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = demo_error(demo_functions, "duplicate link created.", "a link too.", capsys)
    assert message == "update_work_item/app.py cannot be upgraded: 'link created.' must be in it once"


def test_a_stale_catalog_is_reported_in_one_line_with_its_fix(
    demo_functions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (demo_functions / "mcp" / "catalog.json").unlink()
    assert main(["demo", "--pause"]) == 2
    message = "catalog.json is out of date; write it: python -m mcp_functions_harness catalog"
    assert capsys.readouterr() == ("", f"mcp-functions: {message}\n")
