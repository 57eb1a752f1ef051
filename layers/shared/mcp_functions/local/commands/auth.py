"""`auth`: who may call, in template.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mcp_functions.local import auth, template
from mcp_functions.local.commands import options
from mcp_functions.settings import AUTH_MODES

if TYPE_CHECKING:
    from mcp_functions.settings import AuthMode


@click.command("auth")
@click.argument("mode", type=click.Choice(list(AUTH_MODES)))
@options.debug
def command(mode: AuthMode) -> None:
    """Write into template.yaml who may call: who signs (iam), has a token (jwt) or signed in (oauth), or all (none)."""
    click.echo(auth.write(Path(template.FILE), mode))
