"""`catalog`: writes functions/mcp/catalog.json."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mcp_functions.local import banner
from mcp_functions.local import catalog as catalogs
from mcp_functions.local.commands import options

if TYPE_CHECKING:
    from pathlib import Path


@click.command("catalog")
@options.functions
@click.option("--check", is_flag=True, help="Write nothing; exit 1 and say what differs.")
def command(*, functions: Path, check: bool) -> int:
    """Write functions/mcp/catalog.json."""
    made = catalogs.generate(functions)
    if check:
        changed = catalogs.differences(catalogs.read(functions), made)
        click.echo(banner.stale(changed) if changed else "the catalog is up to date")
        return 1 if changed else 0
    written = catalogs.write(functions, made)
    count = sum(len(entries) for entries in made["functions"].values())
    click.echo(f"{written}: {count} {'handler' if count == 1 else 'handlers'}")
    return 0
