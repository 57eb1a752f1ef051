"""`adopt`: checks the source of a server, or writes the folder of its function."""

from __future__ import annotations

from pathlib import Path

import click

from mcp_functions.local.adoption import check as checking
from mcp_functions.local.adoption import writing
from mcp_functions.local.commands import options

ASKING = "Refused until you accept that they run again in every round:"
LEFT_BEHIND = """
Not carried over: what the server does outside MCP (routes of HTTP, its own sign-in), notifications that lists or
resources changed, and tasks of fastmcp-tasks."""


@click.command("adopt")
@click.argument("server", metavar="FILE:VARIABLE")
@click.option("--check", "checks", is_flag=True, help="Only say what would happen twice; exit 1 if something would.")
@click.option("--into", type=click.Path(path_type=Path), metavar="DIR", help="A project's functions/ folder.")
@click.option("--name", metavar="NAME", help="Of the function. Default: that of the file.")
@options.debug
def command(server: str, *, checks: bool, into: Path | None, name: str | None) -> int:
    """Adopt a server that was written with mcp or fastmcp.

    Its source is read, and not run. What stands before a question of a tool happens again in every round; each such
    line is named, and so is each call that this command does not know.
    """
    found = writing.ServerFile.parse(server)
    report = checking.check(found.path)
    for finding in report.findings:
        click.echo(f"{found.path}:{finding}")
    if report.asking:
        names = ", ".join(f'"{tool}"' for tool in report.asking)
        click.echo(f"{ASKING} adopt({found.variable}, replay=[{names}])")
    if into is not None and not checks:
        click.echo(writing.write(found, into, name))
        click.echo(LEFT_BEHIND)
        return 0
    return 1 if report.findings else 0
