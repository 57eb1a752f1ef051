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
    from types import ModuleType


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
            _import("task").run(functions, sys.stdout)
        elif pause:
            _import("pause").run(functions, sys.stdout, runtime=runtime)
        else:
            _import("question").run(functions, sys.stdout, runtime=runtime)
    except DemoError as error:
        if options.is_debug():
            traceback.print_exception(error)
        click.echo(f"mcp-functions: the demo went wrong: {error}", err=True)
        return 1
    return 0


def _import(name: str) -> ModuleType:
    """Import one demo, which needs packages that may not be installed."""
    try:
        return import_module(f"mcp_functions.local.demo.{name}")
    except ModuleNotFoundError as error:
        raise not_installed(error, "demo") from error
