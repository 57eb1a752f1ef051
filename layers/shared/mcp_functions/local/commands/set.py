"""`set`: parameters of an environment, in samconfig.toml and in its stack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mcp_functions.local import parameter_changes
from mcp_functions.local.commands import options

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command("set")
@click.argument("environment", metavar="ENV")
@click.argument("words", metavar="NAME=VALUE...", nargs=-1, required=True)
@click.option("--now", is_flag=True, help="Change the deployed stack too, without a build.")
@options.debug
def command(environment: str, words: Sequence[str], *, now: bool) -> None:
    """Write parameters of an environment into samconfig.toml.

    Each later deployment finds them there. NAME= is the default of template.yaml.
    """
    for line in parameter_changes.change(Path(), environment, words, now=now):
        click.echo(line)
