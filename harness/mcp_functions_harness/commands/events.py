"""`events` and `next`: the events of recorded conversations, for `sam local invoke`."""

import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import click

from mcp_functions_harness import next_event
from mcp_functions_harness.commands import options
from mcp_functions_harness.problems import Problem, first_line

EVENTS = Path("events")
TESTS = Path("tests/functions")
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--update-events"]


@click.command("events")
@click.argument("names", nargs=-1, metavar="[FUNCTION]...", shell_complete=options.complete_functions)
def write_events(names: Sequence[str]) -> int:
    """Write events/ from the conversations in tests/functions, and remove what no test records any more.

    Default: the tests of all functions.
    """
    tests = [TESTS / f"test_{name}.py" for name in names] or [TESTS]
    for path in tests:
        if not path.exists():
            raise Problem(f"there is no {path}: a test of the function records its conversation")
    if find_spec("pytest") is None:
        raise Problem("pytest is not installed: pip install pytest")
    before = _read_events()
    process = subprocess.run([*PYTEST, *map(str, tests)], capture_output=True, text=True, check=False)
    if process.returncode:
        click.echo(f"{process.stdout}{process.stderr}", nl=False)
        return 1
    after = _read_events()
    changes = [f"wrote {path}" for path, content in after.items() if before.get(path) != content]
    changes += [f"removed {path}" for path in before if path not in after]
    click.echo("\n".join(changes) or f"{EVENTS}/ is up to date")
    return 0


@click.command("next")
@click.argument("response", metavar="RESPONSE")
@click.argument("event", metavar="EVENT")
def fill_next(response: str, event: str) -> None:
    """Fill a response's requestState into the next event.

    RESPONSE is what the Lambda returned, EVENT has {{requestState}} in its body; each is a file, or - for stdin.
    """
    if response == event == "-":
        raise Problem("only one of RESPONSE and EVENT can be -")
    click.echo(next_event.fill(_read(response), _read(event)), nl=False)


def _read(name: str) -> str:
    try:
        with click.open_file(name, encoding="utf-8") as file:
            return str(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise Problem(f"{name} cannot be read: {first_line(error)}") from error


def _read_events() -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(EVENTS.glob("*/*.json"))}
