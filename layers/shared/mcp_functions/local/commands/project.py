"""The commands that read and write the files of a project."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mcp_functions.local import auth, banner, catalog, machine, next_event, parameter_changes, template
from mcp_functions.local.adoption import check, writing
from mcp_functions.local.commands import options
from mcp_functions.local.problems import stop
from mcp_functions.local.scaffold import beginning, editing, samples
from mcp_functions.settings import AUTH_MODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_functions.settings import AuthMode

EVENTS = Path("events")
TESTS = Path("tests/functions")
KINDS = "\n".join(f"{kind:<12}{samples.SAMPLES[kind][0]}" for kind in samples.KINDS)  # each with its description
ACCEPT_REPLAY = "Refused until you accept that they run again in every round:"
NOT_CARRIED_OVER = """
Not carried over: what the server does outside MCP (routes of HTTP, its own sign-in), notifications that lists or
resources changed, and tasks of fastmcp-tasks."""

commands = click.Group()


@commands.command("init")
@click.argument("directory", type=click.Path(path_type=Path), metavar="[DIR]", default=Path())
@options.debug
def init(directory: Path) -> None:
    """Write a new project in DIR, which is created if it is missing. Default: this folder."""
    click.echo(beginning.init(directory))


@commands.command("new", help=f"Add a function to the project in this folder.\n\n\b\n{KINDS}")
@click.argument("kind", type=click.Choice(samples.KINDS))
@click.argument("name")
@options.debug
def new(kind: str, name: str) -> None:
    """Add a function."""
    click.echo(editing.new(Path(), kind, name))


@commands.command("block")
@click.argument("name", shell_complete=options.complete_functions)
@click.option("--kind", type=click.Choice(samples.KINDS), help="Of a function that is not written yet.")
@click.option("--write", is_flag=True, help="Write it into template.yaml; the rest of the file, comments too, stays.")
@options.debug
def block(name: str, *, kind: str | None, write: bool) -> None:
    """Print what template.yaml needs for a function, as its app.py is now."""
    if write and kind:
        message = "--write reads functions/NAME/app.py: leave --kind out."
        raise click.UsageError(message)
    if write:
        click.echo(editing.write_block(Path(), name))
    else:
        click.echo(editing.block_text(Path(), name, kind), nl=False)


@commands.command("auth")
@click.argument("mode", type=click.Choice(list(AUTH_MODES)))
@options.debug
def write_auth(mode: AuthMode) -> None:
    """Write into template.yaml who may call: who signs (iam), has a token (jwt) or signed in (oauth), or all (none)."""
    click.echo(auth.write(Path(template.FILE), mode))


@commands.command("set")
@click.argument("environment", metavar="ENV")
@click.argument("words", metavar="NAME=VALUE...", nargs=-1, required=True)
@click.option("--now", is_flag=True, help="Change the deployed stack too, without a build.")
@options.debug
def set_parameters(environment: str, words: Sequence[str], *, now: bool) -> None:
    """Write parameters of an environment into samconfig.toml.

    Each later deployment finds them there. NAME= is the default of template.yaml.
    """
    for line in parameter_changes.change(Path(), environment, words, now=now):
        click.echo(line)


@commands.command("doctor")
@options.debug
def doctor() -> int:
    """Say what this machine lacks to build, deploy, and run `sam local`. Exit 1 if something is missing."""
    findings = machine.examine(Path())
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        outcome = "missing" if finding.remedy else "ok"
        click.echo(f"{outcome:<7}  {finding.subject:<{width}}  {finding.text}")
        if finding.remedy:
            click.echo(f"{'':<7}  {'':<{width}}  {finding.remedy}")
    return 1 if any(finding.remedy for finding in findings) else 0


@commands.command("adopt")
@click.argument("server", metavar="FILE:VARIABLE")
@click.option("--check", "checks", is_flag=True, help="Write nothing; exit 1 if a round would repeat a side effect.")
@click.option("--into", type=click.Path(path_type=Path), metavar="DIR", help="A project's functions/ folder.")
@click.option("--name", metavar="NAME", help="Of the function. Default: that of the file.")
@options.debug
def adopt(server: str, *, checks: bool, into: Path | None, name: str | None) -> int:
    """Adopt a server that was written with mcp or fastmcp.

    Its source is read, and not run. A tool that asks runs again from its first line after each answer. So each line
    before a question that has a side effect is named, and each call that this command does not know.
    """
    server_file = writing.ServerFile.parse(server)
    report = check.check_source(server_file.path)
    for finding in report.findings:
        click.echo(f"{server_file.path}:{finding}")
    if report.asking:
        names = ", ".join(f'"{tool}"' for tool in report.asking)
        click.echo(f"{ACCEPT_REPLAY} adopt({server_file.variable}, replay=[{names}])")
    if into is not None and not checks:
        click.echo(writing.write(server_file, into, name))
        click.echo(NOT_CARRIED_OVER)
        return 0
    return 1 if report.findings else 0


@commands.command("catalog")
@options.functions
@click.option("--check", "checks", is_flag=True, help="Write nothing; exit 1 and say what differs.")
def write_catalog(functions: Path, *, checks: bool) -> int:
    """Write functions/mcp/catalog.json."""
    generated = catalog.generate(functions)
    if checks:
        differences = catalog.differences(catalog.read(functions), generated)
        click.echo(banner.stale(differences) if differences else "the catalog is up to date")
        return 1 if differences else 0
    path = catalog.write(functions, generated)
    count = sum(len(entries) for entries in generated["functions"].values())
    click.echo(f"{path}: {count} {'handler' if count == 1 else 'handlers'}")
    return 0


@commands.command("events")
@click.argument("names", nargs=-1, metavar="[FUNCTION]...", shell_complete=options.complete_functions)
@options.debug
def write_events(names: Sequence[str]) -> int:
    """Write events/ from the conversations in tests/functions, and remove what no test records any more.

    Default: the tests of all functions.
    """
    tests = [TESTS / f"test_{name}.py" for name in names] or [TESTS]
    missing = [path for path in tests if not path.exists()]
    if missing:
        stop(f"there is no {missing[0]}: a test of the function records its conversation")
    if find_spec("pytest") is None:
        stop("pytest is not installed: pip install pytest")
    before = _read_events()
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--update-events"]
    process = subprocess.run([*pytest, *map(str, tests)], capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    if process.returncode:
        click.echo(f"{process.stdout}{process.stderr}", nl=False)
        return 1
    after = _read_events()
    changes = [f"wrote {path}" for path, content in after.items() if before.get(path) != content]
    changes += [f"removed {path}" for path in before if path not in after]
    click.echo("\n".join(changes) or f"{EVENTS}/ is up to date")
    return 0


def _read_events() -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(EVENTS.glob("*/*.json"))}


@commands.command("next")
@click.argument("response", metavar="RESPONSE")
@click.argument("event", metavar="EVENT")
@options.debug
def fill_next(response: str, event: str) -> None:
    """Fill a response's requestState into the next event.

    RESPONSE is what the Lambda returned, EVENT has {{requestState}} in its body; each is a file, or - for stdin.
    """
    if response == event == "-":
        stop("only one of RESPONSE and EVENT can be -")
    click.echo(next_event.fill(options.read(response), options.read(event)), nl=False)
