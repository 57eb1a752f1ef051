"""`adopt`: makes a function of a server that was written with mcp or fastmcp."""

from __future__ import annotations

from pathlib import Path

import click

from mcp_functions_harness.adoption import check, writing

NOT_CARRIED_OVER = """
Not carried over: what the server does outside MCP (routes of HTTP, its own sign-in), notifications that lists or
resources changed, and tasks of fastmcp-tasks."""


@click.command("adopt")
@click.argument("server", metavar="FILE:VARIABLE")
@click.option(
    "--check", "only_check", is_flag=True, help="Write nothing; exit 1 if a round would repeat a side effect."
)
@click.option("--into", type=click.Path(path_type=Path), metavar="DIR", help="A project's functions/ folder.")
@click.option("--name", metavar="NAME", help="The name of the function. Default: that of the file.")
def command(server: str, *, only_check: bool, into: Path | None, name: str | None) -> int:
    """Adopt a server that was written with mcp or fastmcp.

    Its source is read, and not run. A tool that asks runs again from its first line after each answer. So each line
    before a question that has a side effect is named, and each call that this command does not know.
    """
    server_file = writing.ServerFile.parse(server)
    report = check.check_source(server_file.path)
    for finding in report.findings:
        click.echo(f"{server_file.path}:{finding}")
    if report.asking:
        tools = ", ".join(f'"{tool}"' for tool in report.asking)
        accepted = f"adopt({server_file.variable}, replay=[{tools}])"
        click.echo(f"Refused until you accept that they run again in every round: {accepted}")
    if into is None or only_check:
        return 1 if report.findings else 0
    click.echo(writing.write(server_file, into, name))
    click.echo(NOT_CARRIED_OVER)
    return 0
