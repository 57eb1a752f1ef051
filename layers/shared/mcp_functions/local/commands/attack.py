"""`attack`: what a hostile client can try. The attacker reads its own words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mcp_functions.attack import cli

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command("attack", context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(words: Sequence[str]) -> int:
    """Attack a server of your own as a hostile client would."""
    return cli.main(words)
