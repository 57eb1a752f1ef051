"""`adopt`: makes a function of a server that was written with mcp or fastmcp."""

from __future__ import annotations

from pathlib import Path

import click

from mcp_functions_harness.adoption import check, options, writing
from mcp_functions_harness.problems import stop

NOT_CARRIED_OVER = "\nNot carried over: notifications that lists or resources changed."
NOT_LOADED = "{}: it cannot be loaded ({}): its options are unknown"

TWO_WAYS = (
    "They return InputRequiredResult too, so they are not refused at 2026-07-28: {}. Name them in replay only if a "
    "call is refused"
)


@click.command("adopt")
@click.argument("server", metavar="FILE:VARIABLE")
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 if there is something to look at.")
@click.option("--into", type=click.Path(path_type=Path), metavar="DIR", help="A project's functions/ folder.")
@click.option("--name", metavar="NAME", help="The name of the function. Default: that of the file.")
def command(server: str, *, only_check: bool, into: Path | None, name: str | None) -> int:
    """Adopt a server that was written with mcp or fastmcp.

    Its file is read, and loaded once. A tool that asks runs again from its first line after each answer. So each line
    before a question that has a side effect is named, and each call that this command does not know. So is each option
    of the server that says who may call, and that is not carried over as it is.
    """
    server_file = writing.ServerFile.parse(server)
    report = check.check_source(server_file.path)
    for finding in report.findings:
        click.echo(f"{server_file.path}:{finding}")
    said = options.read(server_file.path, server_file.variable)
    for text in (*said.refused, *said.named):
        click.echo(f"{server_file.path}: {text}")
    if said.failure:
        click.echo(NOT_LOADED.format(server_file.path, said.failure))
    if report.asking:
        tools = ", ".join(f'"{tool}"' for tool in report.asking)
        accepted = f"adopt({server_file.variable}, replay=[{tools}])"
        click.echo(f"Refused until you accept that they run again in every round: {accepted}")
    if report.asking_in_two_ways:
        click.echo(TWO_WAYS.format(", ".join(report.asking_in_two_ways)))
    if into is None or only_check:
        return 1 if report.findings or any(said) else 0
    if said.refused:
        stop("adopt refuses this server: change the options above first")
    click.echo(writing.write(server_file, into, name))
    click.echo(NOT_CARRIED_OVER)
    return 0
