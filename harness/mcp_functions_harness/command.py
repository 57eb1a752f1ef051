"""The command `mcp-functions`, also `python -m mcp_functions_harness`.

The function of a command returns the exit code, or None for 0. If it raises an error that the user can correct, one
line goes to stderr, and the exit code is 2. Whatever a command writes, no text from outside reaches the terminal raw.
"""

import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

import click

from mcp_functions_harness.commands.options import DEBUG, INTERRUPTED, USAGE, Reporting
from mcp_functions_harness.terminal.safe_text import safe_line, safe_output

CRASHED = 1  # exit code of a command that fails unexpectedly
NAME = "mcp-functions"
COMMANDS = {  # the function of each command, in `commands`
    "add": "project.add",
    "adopt": "adopt.command",
    "auth": "deployment.write_auth",
    "block": "project.block",
    "call": "call.command",
    "catalog": "project.write_catalog",
    "demo": "demo.command",
    "docs": "docs.command",
    "doctor": "deployment.doctor",
    "emulator": "emulator.command",
    "events": "events.write_events",
    "init": "project.init",
    "kms": "kms.command",
    "new": "project.new",
    "next": "events.fill_next",
    "open": "open.command",
    "remove": "project.remove",
    "serve": "serve.command",
    "set": "deployment.set_parameters",
    "start": "deployment.start",
    "stop": "deployment.stop",
    "verify": "verify.command",
}


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (None: those of the process), and return its exit code."""
    with safe_output():
        return _run(argv)


def _run(argv: Sequence[str] | None) -> int:
    reporting = Reporting()
    try:
        code = main.main(argv, prog_name=NAME, standalone_mode=False, obj=reporting)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else NAME
        return _report(f"{error.format_message()} See {path} --help")
    except click.ClickException as error:
        if reporting.debug and error.__cause__:
            traceback.print_exception(error.__cause__)
        return _report(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - outside `safe_output`, Python would write its text raw
        traceback.print_exc()
        return CRASHED
    return code if isinstance(code, int) else 0


def _report(text: str) -> int:
    sys.stderr.write(f"{NAME}: {safe_line(text)}\n")
    return USAGE


class _Commands(click.Group):
    """Imports a command only when it runs, because the packages that other commands need take seconds to import."""

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command, and add --debug to it; None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        module, _dot, function = COMMANDS[cmd_name].rpartition(".")
        command: click.Command = getattr(import_module(f"mcp_functions_harness.commands.{module}"), function)
        if DEBUG not in command.params:
            command.params.append(DEBUG)
        return command


# The commands here stand only for their names.
@click.group(cls=_Commands, commands=[click.Command(name) for name in COMMANDS], no_args_is_help=False)
def main() -> None:
    """MCP servers as serverless functions."""
