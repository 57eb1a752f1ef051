"""`demo`: the official client holds a conversation, and the terminal shows each round."""

import sys
import traceback
from pathlib import Path

import click

from mcp_functions_harness.commands import options
from mcp_functions_harness.problems import DemoError


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
        if task:  # its workers are processes of the runtime anyway
            options.import_module("demo.task", extra="demo").run(functions, sys.stdout)
        else:
            name = "pause" if pause else "question"
            options.import_module(f"demo.{name}", extra="demo").run(functions, sys.stdout, runtime=runtime)
    except DemoError as error:
        if options.is_debug():
            traceback.print_exception(error)
        click.echo(f"mcp-functions: the demo went wrong: {error}", err=True)
        return 1
    return 0
