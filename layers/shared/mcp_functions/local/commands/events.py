"""`events`: writes events/ again from the conversations of the tests."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mcp_functions.local.commands import options
from mcp_functions.local.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

EVENTS, TESTS = Path("events"), Path("tests/functions")
NO_PYTEST = "pytest is not installed: pip install pytest"


@click.command("events")
@click.argument("names", nargs=-1, metavar="[FUNCTION]...", shell_complete=options.complete_functions)
@options.debug
def command(names: Sequence[str]) -> int:
    """Write events/ from the conversations of the tests, and remove what no test records any more.

    Without a name, all functions are meant: pytest runs tests/functions with --update-events.
    """
    tests = [TESTS / f"test_{name}.py" for name in names] or [TESTS]
    missing = [path for path in tests if not path.exists()]
    if missing:
        none = f"there is no {missing[0]}: a test of the function records its conversation"
        raise Problem(none)
    if find_spec("pytest") is None:
        raise Problem(NO_PYTEST)
    before = _contents()
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--update-events"]
    done = subprocess.run([*pytest, *map(str, tests)], capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    if done.returncode:
        click.echo(f"{done.stdout}{done.stderr}", nl=False)
        return 1
    click.echo("\n".join(_changes(before, _contents())) or f"{EVENTS}/ is up to date")
    return 0


def _contents() -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(EVENTS.glob("*/*.json"))}


def _changes(before: dict[Path, bytes], after: dict[Path, bytes]) -> list[str]:
    written = [f"wrote {path}" for path, content in after.items() if before.get(path) != content]
    return written + [f"removed {path}" for path in before if path not in after]
