"""Options that several commands have, and what they write with."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from mcp_functions.local.problems import first_line

if TYPE_CHECKING:
    from collections.abc import Callable

USAGE = 2  # exit code for an error that the user can correct
INTERRUPTED = 130  # exit code of a command that Ctrl-C ended
Command = TypeVar("Command", bound="Callable[..., object]")


@dataclass
class Reporting:
    """How errors are reported: `debug` shows whole tracebacks."""

    debug: bool = False


def functions(command: Command) -> Command:
    """Add --functions."""
    folder = click.Path(path_type=Path)
    option = click.option(
        "--functions", type=folder, default=Path("functions"), metavar="DIR", help="Default: functions."
    )
    return debug(option(command))


def runtime(command: Command) -> Command:
    """Add --runtime."""
    text = "Run functions as processes of the real Lambda runtime."
    return click.option("--runtime", is_flag=True, help=text)(command)


def debug(command: Command) -> Command:
    """Add --debug."""
    return click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        callback=_set_debug,
        help="Tracebacks have the frames of the toolkit too.",
    )(command)


def is_debug() -> bool:
    """Whether the command that runs has --debug."""
    return click.get_current_context().ensure_object(Reporting).debug


def complete_functions(context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """List the functions of the folder for the shell."""
    folder = Path(context.params.get("functions") or "functions")
    names = sorted(app.parent.name for app in folder.glob("*/app.py"))
    return [name for name in names if name.startswith(begun)]


def read(name: str) -> str:
    """Read a file; "-" is stdin.

    Raises:
        ClickException: it cannot be read.

    """
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        unreadable = f"{name} cannot be read: {first_line(error)}"
        raise click.ClickException(unreadable) from error


def _set_debug(context: click.Context, _parameter: click.Parameter, value: object) -> None:
    context.ensure_object(Reporting).debug |= bool(value)
