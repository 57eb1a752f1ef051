"""`serve`: every function behind one URL, until Ctrl-C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

import click

from mcp_functions.local import serve
from mcp_functions.local.commands import options
from mcp_functions.local.stopping import until_stopped

if TYPE_CHECKING:
    from pathlib import Path

PORT = 8000


class Words(TypedDict):
    """The options that `serve` takes as they are."""

    functions: Path
    port: int
    auth: Literal["none", "jwt", "oauth"]
    runtime: bool
    log: Literal["text", "json"]
    show_answers: bool


@click.command("serve")
@options.functions
@options.runtime
@click.option("--port", type=int, default=PORT, metavar="N", help=f"Default: {PORT}; 0: any.")
@click.option(
    "--auth",
    type=click.Choice(["none", "jwt", "oauth"]),
    default="none",
    help="jwt: require an access token, and run an issuer. oauth: with the sign-in front before it. Default: none.",
)
@click.option("--no-reuse", is_flag=True, help="With --runtime, a process for every invocation.")
@click.option("--show-answers", is_flag=True, help="A round's line has the user's answers.")
@click.option("--log", type=click.Choice(["text", "json"]), default="text", help="json: lines as on Lambda.")
def command(*, no_reuse: bool, **words: Unpack[Words]) -> None:
    """Serve every function until Ctrl-C."""
    given = serve.Options(reuse=not no_reuse, debug=options.is_debug(), **words)
    with until_stopped() as stopped:
        serve.run(given, stopped)
