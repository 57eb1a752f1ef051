"""`new`: another function in the project of this folder."""

from __future__ import annotations

from pathlib import Path

import click

from mcp_functions.local.commands import options
from mcp_functions.local.scaffold import adding, samples

KINDS = "\n".join(f"{kind:<12}{samples.SAMPLES[kind][0]}" for kind in samples.KINDS)


@click.command("new", help=f"Add a function to the project in this folder.\n\n\b\n{KINDS}")
@click.argument("kind", type=click.Choice(samples.KINDS))
@click.argument("name")
@options.debug
def command(kind: str, name: str) -> None:
    """Add a function."""
    click.echo(adding.new(Path(), kind, name))
