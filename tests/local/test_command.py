"""The command `mcp-functions`: what it offers, and that a mistake is one line."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from mcp_functions.local import command
from mcp_functions.local.problems import Problem

ROOT = Path(__file__).parents[2]


def one_line(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert command.run(words) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1), said.err
    return said.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "mcp-functions: Missing command. See mcp-functions --help"),
        (["brew"], "mcp-functions: No such command 'brew'. See mcp-functions --help"),
        (["--port"], "mcp-functions: No such option '--port'. See mcp-functions --help"),
        (["serve", "--port", "many"], "invalid int value: 'many'. See mcp-functions serve --help"),
        (["open"], "the following arguments are required: TOKEN. See mcp-functions open --help"),
        (["catalog", "--functions", "nowhere"], "nowhere"),
        (["attack"], "the following arguments are required: url. See --help"),
        (["attack", "http://localhost:1/", "--requests", "few"], "invalid int value: 'few'"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert why in one_line(capsys, *words)


def test_every_command_of_the_harness_is_one_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    for name in command.main.commands:
        with pytest.raises(SystemExit) as ended:
            command.main.main([name, "--help"], prog_name="mcp-functions")
        assert ended.value.code == 0
        assert f"mcp-functions {name}" in capsys.readouterr().out or name == "attack"
    assert command.main.commands.keys() >= {"attack", "catalog", "init", "new", "open", "serve"}


def test_a_problem_and_an_interruption_have_exit_codes_of_their_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(error: BaseException) -> int:
        def failing(**_: object) -> int:
            raise error

        monkeypatch.setattr(command.main.commands["attack"], "callback", failing)
        return command.run(["attack"])

    assert fail(Problem("the stack is not there")) == 2
    assert capsys.readouterr().err == "mcp-functions: the stack is not there\n"
    assert fail(KeyboardInterrupt()) == 130


def test_the_module_is_the_installed_command(tmp_path: Path) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert EntryPoint("mcp-functions", scripts["mcp-functions"], "console_scripts").load() is command.run
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "mcp_functions", "brew"], cwd=tmp_path, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"mcp-functions: No such command 'brew'. See mcp-functions --help\n"
