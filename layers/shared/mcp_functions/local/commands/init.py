"""`init`: a new project."""

from __future__ import annotations

from pathlib import Path

import click

from mcp_functions.local.commands import options
from mcp_functions.local.scaffold import beginning


@click.command("init")
@click.argument("directory", type=click.Path(path_type=Path), metavar="[DIR]", default=Path())
@options.debug
def command(directory: Path) -> None:
    """Write a new project in DIR, which is created if it is missing. Default: this folder."""
    click.echo(beginning.init(directory))
