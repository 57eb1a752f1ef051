"""`block`: what template.yaml needs for a function."""

from __future__ import annotations

from pathlib import Path

import click

from mcp_functions.local.commands import options
from mcp_functions.local.scaffold import editing, samples


@click.command("block")
@click.argument("name", shell_complete=options.complete_functions)
@click.option("--kind", type=click.Choice(samples.KINDS), help="Of a function that is not written yet.")
@click.option("--write", is_flag=True, help="Write it into template.yaml; the rest of the file, comments too, stays.")
@options.debug
def command(name: str, *, kind: str | None, write: bool) -> None:
    """Print what template.yaml needs for a function, as its app.py is now."""
    if write and kind:
        both = "--write reads functions/NAME/app.py: leave --kind out."
        raise click.UsageError(both)
    if write:
        click.echo(editing.write(Path(), name))
    else:
        click.echo(editing.shown(Path(), name, kind), nl=False)
