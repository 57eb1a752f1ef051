"""`demo`: the official client holds a conversation, and the terminal shows each round."""

from __future__ import annotations

import sys
import traceback
from importlib import import_module
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
    name = "pause" if pause else "question"
    options_of_demo = {"runtime": runtime}
    if task:
        name = "task"
        options_of_demo = {}  # a task's workers are always processes of the runtime
    try:
        demo = import_module(f"mcp_functions.local.demo.{name}")
    except ModuleNotFoundError as error:
        raise not_installed(error, "demo") from error
    try:
        demo.run(functions, sys.stdout, **options_of_demo)
    except DemoError as surprise:
        if options.is_debug():
            traceback.print_exception(surprise)
        click.echo(f"mcp-functions: the demo went wrong: {surprise}", err=True)
        return 1
    return 0
