"""The command `mcp-functions`, also `python -m mcp_functions` and `python -m mcp_functions.local`.

A function that runs a command returns its exit code. An error that the user can correct is one line on stderr, and exit
code 2.
"""

from __future__ import annotations

import difflib
import sys
import traceback
from importlib import import_module
from typing import TYPE_CHECKING

import click

from mcp_functions.local.commands.options import INTERRUPTED, USAGE, Reporting

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "mcp-functions"
# in commands/project.py
IN_PROJECT = ("adopt", "auth", "block", "catalog", "doctor", "events", "init", "new", "next", "set")
ALONE = ("call", "demo", "kms", "open", "serve", "verify")  # each has a module of its name
COMMANDS = tuple(sorted((*IN_PROJECT, *ALONE, "attack")))


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Args:
        argv: its arguments, without the program's name; None: the process's own.
    """
    reporting = Reporting()
    try:
        code = main.main(argv, prog_name=NAME, standalone_mode=False, obj=reporting)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else NAME
        return _report(f"{error.format_message()} See {path} --help")
    except click.ClickException as error:
        if reporting.debug and error.__cause__:
            traceback.print_exception(error.__cause__)
        return _report(str(error))
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _report(text: str) -> int:
    sys.stderr.write(f"{NAME}: {text}\n")
    return USAGE


class _Commands(click.Group):
    """Imports a command when it runs: each needs other packages, and none waits for the others'."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names."""
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in IN_PROJECT:
            group: click.Group = import_module("mcp_functions.local.commands.project").commands
            return group.commands[cmd_name]
        module = "attack.cli" if cmd_name == "attack" else f"local.commands.{cmd_name}"
        command: click.Command = import_module(f"mcp_functions.{module}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command, if the given one is unknown."""
        near = difflib.get_close_matches(args[0], COMMANDS, n=1)
        if args[0] not in COMMANDS and near:
            message = f"No such command {args[0]!r}. Did you mean {near[0]!r}?"
            raise click.UsageError(message, ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, no_args_is_help=False)
def main() -> None:
    """MCP servers as serverless functions."""
