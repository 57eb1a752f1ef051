"""`demo`: the official client holds a conversation, and the terminal shows each round."""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING

import click

from mcp_functions.local.commands import options
from mcp_functions.local.problems import DemoError, not_installed

if TYPE_CHECKING:
    from pathlib import Path


@click.command("demo")
@options.functions
@options.runtime
@click.option(
    "--pause",
    is_flag=True,
    help="Answer three days later: another client, the server restarted and upgraded, the KMS key rotated.",
)
@click.option("--task", is_flag=True, help="A task that asks, and whose worker is killed on the way.")
def command(*, functions: Path, runtime: bool, pause: bool, task: bool) -> int:
    """Watch the official client hold a conversation."""
    try:
        from mcp_functions.local.demo import pause as paused  # noqa: PLC0415 - they need the official client
        from mcp_functions.local.demo import question  # noqa: PLC0415
        from mcp_functions.local.demo import task as worked  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise not_installed(error, "demo") from error
    try:
        if task:
            worked.run(functions, sys.stdout)
        elif pause:
            paused.run(functions, sys.stdout, runtime=runtime)
        else:
            question.run(functions, sys.stdout, runtime=runtime)
    except DemoError as surprise:
        if options.is_debug():
            traceback.print_exception(surprise)
        click.echo(f"mcp-functions: the demo went wrong: {surprise}", err=True)
        return 1
    return 0
