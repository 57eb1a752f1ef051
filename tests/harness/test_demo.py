"""`mcp-functions demo` shows a conversation of three rounds; it reports a changed tool in one line."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_functions_harness.command import run as main
from tests.harness.conftest import SKIP, change_tool

ROOT = Path(__file__).parents[2]


def test_the_demo_shows_three_rounds_and_a_refusal(demo_functions: Path) -> None:
    command = [sys.executable, "-m", "mcp_functions_harness", "demo"]
    ran = subprocess.run(command, cwd=demo_functions.parent, text=True, capture_output=True, check=False)  # noqa: S603
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "\033" not in ran.stdout
    lines = ran.stdout.splitlines()
    assert len(lines) < 60
    assert max(map(len, lines)) <= 120
    assert [line for line in lines if line and line[0] != " "][1:] == [
        "Round 1",
        "Round 2",
        "Round 3",
        "An attacker changes the state",
        "3 rounds, 3 invocations, and nothing kept on the server between them.",
    ]
    assert "resolution: Fixed | Won't Fix | Duplicate | By Design" in ran.stdout
    assert 'answers duplicate_of: {"duplicateOfId": 4301}' in ran.stdout
    assert len(set(re.findall(r"local_update_work_item ran .* request (\S+)", ran.stdout))) == 3
    assert len(re.findall(r"state {4}ks1\.\S{20}\.\.\.\S{6} {2}sealed, \d{3,4} characters", ran.stdout)) == 2
    assert "result   Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved" in ran.stdout
    assert "refused  -32602 Invalid or expired requestState" in ran.stdout
    assert not (demo_functions.parent / ".mcp-functions").exists()


def test_the_demo_of_a_task_completes_after_a_lost_worker_and_a_question(demo_functions: Path) -> None:
    """Twelve months of work, and a lease that has to run out: the slowest test here."""
    shutil.copytree(ROOT / "functions" / "audit_year", demo_functions / "audit_year", ignore=SKIP)
    shutil.rmtree(demo_functions / "update_work_item")
    assert main(["catalog"]) == 0
    command = [sys.executable, "-m", "mcp_functions_harness", "demo", "--task"]
    ran = subprocess.run(command, cwd=demo_functions.parent, text=True, capture_output=True, check=False)  # noqa: S603
    assert (ran.returncode, ran.stderr) == (0, "")
    lines = [line.strip() for line in ran.stdout.splitlines() if line]
    killed = next(number for number, line in enumerate(lines) if "its worker is killed (kill -9)" in line)
    asked = lines.index("it asks write_off: The first half of 2026 differs by 19 cents. Write that off?")
    assert re.fullmatch(r"at once: audit_year\.\S{22}, working", lines[1])
    assert lines[killed - 1].startswith("working: auditing ")
    assert killed < asked < lines.index("completed")
    assert lines[-2] == "2026 is audited: 15 cents remain."
    assert re.fullmatch(r"\d workers, 1 of them killed: no month that was written down was audited again\.", lines[-1])
    assert not (demo_functions.parent / ".mcp-functions").exists()


def demo_error(capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["demo"]) == 1
    error_output = capsys.readouterr().err
    assert error_output.count("\n") == 1
    return error_output


def test_the_demo_reports_a_tool_that_asks_another_question(
    demo_functions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change_tool(demo_functions, 'elicit("resolution"', 'elicit("mood"')
    assert demo_error(capsys) == "mcp-functions: the demo went wrong: the demo has no answer to mood\n"


def test_the_demo_reports_a_tool_that_ends_early(demo_functions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change_tool(demo_functions, 'resolution != "Duplicate"', "resolution")
    message = "round 2 ended the call: Bug #4522 resolved as Duplicate. State set to Resolved."
    assert demo_error(capsys) == f"mcp-functions: the demo went wrong: {message}\n"


def test_the_demo_reports_a_tool_with_another_result(demo_functions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change_tool(demo_functions, "resolved as Duplicate of", "is like")
    assert "the call ended with another result: Bug #4522 is like Bug #4301" in demo_error(capsys)


def test_a_stale_catalog_is_reported_in_one_line_with_its_fix(
    demo_functions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (demo_functions / "mcp" / "catalog.json").unlink()
    assert main(["demo"]) == 2
    message = "catalog.json is out of date; write it: python -m mcp_functions_harness catalog"
    assert capsys.readouterr() == ("", f"mcp-functions: {message}\n")


@pytest.mark.usefixtures("demo_functions")
def test_a_missing_client_is_reported_in_one_line_with_its_fix(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    for module in ("question", "one_round"):
        monkeypatch.delitem(sys.modules, f"mcp_functions_harness.demo.{module}", raising=False)
        monkeypatch.delattr(f"mcp_functions_harness.demo.{module}", raising=False)
    assert main(["demo"]) == 2
    assert capsys.readouterr() == ("", "mcp-functions: mcp is not installed: pip install 'mcp-functions[demo]'\n")
