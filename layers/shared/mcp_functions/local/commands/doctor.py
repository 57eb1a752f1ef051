"""`doctor`: what this machine lacks."""

from __future__ import annotations

from pathlib import Path

import click

from mcp_functions.local import machine
from mcp_functions.local.commands import options


@click.command("doctor")
@options.debug
def command() -> int:
    """Say what this machine lacks to build, deploy, and run `sam local`. Exit 1 if something is missing."""
    found = machine.examine(Path())
    width = max(len(line.subject) for line in found)
    for line in found:
        outcome = "ok     " if line.remedy == "" else "missing"
        click.echo(f"{outcome}  {line.subject:<{width}}  {line.text}")
        if line.remedy:
            click.echo(f"{'':9}{'':{width}}  {line.remedy}")
    return 1 if any(line.remedy for line in found) else 0
