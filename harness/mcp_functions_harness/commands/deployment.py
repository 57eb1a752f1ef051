"""`auth`, `set`, `stop`, `start` and `doctor`: prepare a deployment of the project in this folder."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from mcp_functions.settings import AUTH_MODES, AuthMode
from mcp_functions_harness import auth, machine, parameter_changes, stops, template


@click.command("auth")
@click.argument("mode", type=click.Choice(list(AUTH_MODES)))
def write_auth(mode: AuthMode) -> None:
    """Write into template.yaml who may call: who signs (iam), has a token (jwt) or signed in (oauth), or all (none)."""
    click.echo(auth.write(Path(template.FILE), mode))


@click.command("set")
@click.argument("environment", metavar="ENV")
@click.argument("words", metavar="NAME=VALUE...", nargs=-1, required=True)
@click.option("--now", is_flag=True, help="Change the deployed stack too, without a build.")
def set_parameters(environment: str, words: Sequence[str], *, now: bool) -> None:
    """Write parameters of an environment into samconfig.toml.

    Each later deployment finds them there. NAME= is the default of template.yaml.
    """
    for line in parameter_changes.change(Path(), environment, words, now=now):
        click.echo(line)


def _of_target(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the arguments that name what is stopped or started."""
    now = "Call AWS at once, without CloudFormation, whatever the stack's state."
    for decorate in (
        click.option("--now", is_flag=True, help=now),
        click.argument("name", metavar="[FOLDER|CALLER]", default=""),
        click.argument("environment", metavar="ENV"),
        click.argument("kind", type=click.Choice(stops.KINDS)),
    ):
        function = decorate(function)
    return function


@click.command("stop")
@_of_target
def stop(kind: str, environment: str, name: str, *, now: bool) -> None:
    """Stop the server, a function or a caller of an environment of samconfig.toml."""
    for line in stops.change(Path(), environment, stops.Target(kind, name), stopped=True, now=now):
        click.echo(line)


@click.command("start")
@_of_target
def start(kind: str, environment: str, name: str, *, now: bool) -> None:
    """End a stop."""
    for line in stops.change(Path(), environment, stops.Target(kind, name), stopped=False, now=now):
        click.echo(line)


@click.command("doctor")
@click.option(
    "--build", is_flag=True, help="Only what a build needs; if nothing is missing, print folders for its PATH."
)
@click.option("--config-env", default="default", metavar="ENV", help="With --build: the table of samconfig.toml.")
def doctor(*, build: bool, config_env: str) -> int:
    """Say what this machine lacks to build, deploy, and run `sam local`. Exit 1 if something is missing."""
    if build:
        return _doctor_of_build(config_env)
    findings = machine.examine(Path())
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        outcome = "missing" if finding.remedy else "ok"
        click.echo(f"{outcome:<7}  {finding.subject:<{width}}  {finding.text}")
        if finding.remedy:
            click.echo(f"{'':<7}  {'':<{width}}  {finding.remedy}")
    return 1 if any(finding.remedy for finding in findings) else 0


def _doctor_of_build(environment: str) -> int:
    """Print the folders for SAM's PATH, or say on stderr what is missing, so that `make build` ends at once."""
    needed = machine.examine_for_build(Path(), environment)
    missing = [finding for finding in needed.findings if finding.remedy]
    if os.environ.get("UNCOMPILED"):
        missing = [finding for finding in missing if finding.subject != machine.LAYERS]
    for finding in missing:
        click.echo(f"{finding.subject}: {finding.text}\n  {finding.remedy}", err=True)
    if not missing:
        click.echo(os.pathsep.join(needed.folders))
    return 1 if missing else 0
