"""`serve`: every function behind one URL, until Ctrl-C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

import click

from mcp_functions.local import cli
from mcp_functions.local.commands import options

if TYPE_CHECKING:
    from pathlib import Path


class Words(TypedDict):
    """The options."""

    functions: Path
    port: int
    runtime: bool
    auth: Literal["none", "jwt", "oauth"]
    no_reuse: bool


@click.command("serve")
@options.functions
@options.runtime
@click.option("--port", type=int, default=cli.DEFAULT_PORT, metavar="N", help=f"Default: {cli.DEFAULT_PORT}; 0: any.")
@click.option(
    "--auth",
    type=click.Choice(["none", "jwt", "oauth"]),
    default="none",
    help="jwt: require an access token, and run an issuer. oauth: with the sign-in front before it. Default: none.",
)
@click.option("--no-reuse", is_flag=True, help="With --runtime, a process for every invocation.")
def command(**given: Unpack[Words]) -> int:
    """Serve every function until Ctrl-C."""
    return cli.serve(cli.Serving(debug=options.is_debug(), **given))
