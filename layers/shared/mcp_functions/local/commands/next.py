"""`next`: the state of a response goes into the next round's event."""

from __future__ import annotations

import click

from mcp_functions.local import next_event
from mcp_functions.local.commands import options
from mcp_functions.local.problems import Problem


@click.command("next")
@click.argument("response", metavar="RESPONSE")
@click.argument("event", metavar="EVENT")
@options.debug
def command(response: str, event: str) -> None:
    """Fill a response's requestState into the next event.

    RESPONSE is what the Lambda returned, EVENT has {{requestState}} in its body; each is a file, or - for stdin.
    """
    if response == event == "-":
        both = "only one of RESPONSE and EVENT can be -"
        raise Problem(both)
    click.echo(next_event.follow(options.read(response), options.read(event)), nl=False)
