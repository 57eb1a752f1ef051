"""`catalog`: writes functions/mcp/catalog.json."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mcp_functions.local import banner, catalog
from mcp_functions.local.commands import options

if TYPE_CHECKING:
    from pathlib import Path


@click.command("catalog")
@options.functions
@click.option("--check", is_flag=True, help="Write nothing; exit 1 and say what differs.")
def command(*, functions: Path, check: bool) -> int:
    """Write functions/mcp/catalog.json."""
    generated = catalog.generate(functions)
    if check:
        differences = catalog.differences(catalog.read(functions), generated)
        click.echo(banner.stale(differences) if differences else "the catalog is up to date")
        return 1 if differences else 0
    path = catalog.write(functions, generated)
    count = sum(len(entries) for entries in generated["functions"].values())
    click.echo(f"{path}: {count} {'handler' if count == 1 else 'handlers'}")
    return 0
