"""`init`, `new`, `block`, `remove`, `add` and `catalog`: write a project and what it needs."""

from pathlib import Path

import click

from mcp_functions_harness import banner, catalog
from mcp_functions_harness.commands import options
from mcp_functions_harness.scaffold import additions, beginning, editing, samples

PROJECT = Path()  # the folder in which the command runs
DESCRIBED_KINDS = "\n".join(f"{kind:<12}{samples.SAMPLES[kind][0]}" for kind in samples.KINDS)


@click.command("init")
@click.argument("directory", type=click.Path(path_type=Path), metavar="[DIR]", default=PROJECT)
def init(directory: Path) -> None:
    """Write a new project in DIR, which is created if it is missing. Default: this folder."""
    click.echo(beginning.init(directory))


@click.command("new", help=f"Add a function to the project in this folder.\n\n\b\n{DESCRIBED_KINDS}")
@click.argument("kind", type=click.Choice(samples.KINDS))
@click.argument("name")
def new(kind: str, name: str) -> None:
    """Add a function."""
    click.echo(editing.new(PROJECT, kind, name))


@click.command("block")
@click.argument("names", nargs=-1, metavar="NAME...", shell_complete=options.complete_functions)
@click.option("--kind", type=click.Choice(samples.KINDS), help="The kind of a function that is not written yet.")
@click.option("--write", is_flag=True, help="Write it into template.yaml; the rest of the file, comments too, stays.")
def block(names: tuple[str, ...], *, kind: str | None, write: bool) -> None:
    """Print what template.yaml needs for a function, as its app.py is now. --write alone does it for all functions."""
    if not write and len(names) != 1:
        raise click.UsageError("Name one function, or --write for all of them.")
    if write and kind:
        raise click.UsageError("--write reads functions/NAME/app.py: leave --kind out.")
    if write:
        click.echo(editing.write_blocks(PROJECT, names))
    else:
        click.echo(editing.block_text(PROJECT, names[0], kind), nl=False)


@click.command("remove")
@click.argument("name", shell_complete=options.complete_functions)
def remove(name: str) -> None:
    """Remove a function: its folder, test, events and blocks, and its entries in the catalog."""
    click.echo(editing.remove(PROJECT, name))


@click.command("add")
@click.argument("name", type=click.Choice(additions.NAMES))
def add(name: str) -> None:
    """Write into template.yaml what a first project does not have."""
    click.echo(additions.add(PROJECT, name))


@click.command("catalog")
@options.functions
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 and say what differs.")
def write_catalog(functions: Path, *, only_check: bool) -> int:
    """Write functions/mcp/catalog.json."""
    generated = catalog.generate(functions)
    if only_check:
        differences = catalog.differences(catalog.read(functions), generated)
        click.echo(banner.stale(differences) if differences else "the catalog is up to date")
        return 1 if differences else 0
    path = catalog.write(functions, generated)
    count = sum(map(len, catalog.folders(generated).values()))
    click.echo(f"{path}: {count} {'handler' if count == 1 else 'handlers'}")
    return 0
