"""The command `mcp-functions`: its help, its shell completion, and its one-line errors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from mcp_functions_harness import command
from mcp_functions_harness.commands import deployment
from mcp_functions_harness.problems import Problem
from tests.harness.conftest import GREET, write_functions

ROOT = Path(__file__).parents[2]


def one_line(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert command.run(words) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1), captured.err
    return captured.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "mcp-functions: Missing command. See mcp-functions --help"),
        (["brew"], "mcp-functions: No such command 'brew'. See mcp-functions --help"),
        (["servr"], "No such command 'servr'. Did you mean 'serve'? See mcp-functions --help"),
        (["block", "x", "--kind", "tool", "--write"], "leave --kind out. See mcp-functions block --help"),
        (["--port"], "mcp-functions: No such option '--port'. See mcp-functions --help"),
        (["serve", "--port", "many"], "'many' is not a valid integer. See mcp-functions serve --help"),
        (["open"], "Missing argument 'TOKEN'. See mcp-functions open --help"),
        (["catalog", "--functions", "nowhere"], "nowhere"),
        (["attack"], "No such command 'attack'. See mcp-functions --help"),
    ],
)
def test_an_invalid_command_line_is_reported_in_one_line(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert why in one_line(capsys, *words)


def test_every_command_has_a_help_that_the_help_lists(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(["--help"]) == 0
    listed = re.findall(r"^  (\w+) {2,}\S", capsys.readouterr().out, re.MULTILINE)
    assert listed == list(command.COMMANDS)
    for name in listed:
        assert command.run([name, "--help"]) == 0
        assert f"mcp-functions {name}" in capsys.readouterr().out


def test_the_help_needs_no_package_of_an_extra() -> None:
    script = """
import sys
for package in ("mcp", "moto", "rich"):
    sys.modules[package] = None  # as if it were not installed
from mcp_functions_harness.command import run
sys.exit(run(["--help"]))
"""
    subprocess.run([sys.executable, "-c", script], check=True)  # noqa: S603 - this interpreter


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("mcp-functions ser", "serve"), ("mcp-functions new as", "asking"), ("mcp-functions block gr", "greet")],
)
def test_the_shell_completes_commands_kinds_and_functions(typed: str, offered: str, tmp_path: Path) -> None:
    write_functions(tmp_path / "functions", {"greet/app.py": GREET})
    variables = {
        **os.environ,
        "_MCP_FUNCTIONS_COMPLETE": "bash_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "mcp_functions_harness"],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"plain,{offered}\n"


def test_a_problem_and_an_interruption_have_different_exit_codes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(error: BaseException) -> int:
        def failing(**_: object) -> int:
            raise error

        monkeypatch.setattr(deployment.doctor, "callback", failing)
        return command.run(["doctor"])

    assert fail(Problem("the stack is not there")) == 2
    assert capsys.readouterr().err == "mcp-functions: the stack is not there\n"
    assert fail(KeyboardInterrupt()) == 130


def test_the_module_is_the_installed_command(tmp_path: Path) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert EntryPoint("mcp-functions", scripts["mcp-functions"], "console_scripts").load() is command.run
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "mcp_functions_harness", "brew"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"mcp-functions: No such command 'brew'. See mcp-functions --help\n"
