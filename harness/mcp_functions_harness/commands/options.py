"""Shared by several commands: options, packages of an extra, and the end of `serve` and `kms` by a signal."""

import contextlib
import importlib
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import click

from mcp_functions_harness.problems import not_installed

USAGE = 2  # exit code for an error that the user can correct
INTERRUPTED = 130  # exit code of a command that Ctrl-C ended
LOOK_SECONDS = 0.2  # the pause between two questions whether a command is stopped
STOPPING = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Reporting:
    """How errors are reported; click keeps it as the context's object."""

    debug: bool = False  # whether whole tracebacks are shown


def _set_debug(context: click.Context, _parameter: click.Parameter, value: object) -> None:
    context.ensure_object(Reporting).debug |= bool(value)


DEBUG = click.Option(  # of every command
    ["--debug"],
    is_flag=True,
    expose_value=False,
    callback=_set_debug,
    help="Tracebacks have the frames of the toolkit too.",
)
functions = click.option(
    "--functions", type=click.Path(path_type=Path), default=Path("functions"), metavar="DIR", help="Default: functions."
)
runtime = click.option("--runtime", is_flag=True, help="Run functions as processes of the real Lambda runtime.")


def is_debug() -> bool:
    """Whether the command that runs has --debug."""
    return click.get_current_context().ensure_object(Reporting).debug


def import_module(name: str, extra: str) -> ModuleType:
    """Import a module of this package that needs packages of an extra of this project.

    Raises:
        Problem: they are not installed.
    """
    try:
        return importlib.import_module(f"mcp_functions_harness.{name}")
    except ModuleNotFoundError as error:
        raise not_installed(error, extra) from error


def complete_functions(context: click.Context, _parameter: click.Parameter, prefix: str) -> list[str]:
    """List the functions of the folder for the shell."""
    folder = Path(context.params.get("functions") or "functions")
    names = sorted(app.parent.name for app in folder.glob("*/app.py"))
    return [name for name in names if name.startswith(prefix)]


def wait(is_stopped: Callable[[], bool]) -> None:
    """Wait in a block of `until_stopped`."""
    while not is_stopped():
        time.sleep(LOOK_SECONDS)


@contextlib.contextmanager
def until_stopped() -> Iterator[Callable[[], bool]]:
    """Run the block until SIGINT or SIGTERM; a second signal does nothing.

    The signal raises KeyboardInterrupt inside the block. Python drops an exception that is raised while a finalizer
    runs, so the block must also ask the yielded function whether it is stopped.
    """
    is_stopped = False

    def stop(_number: int, _frame: object) -> None:
        nonlocal is_stopped
        for number in STOPPING:
            signal.signal(number, signal.SIG_IGN)
        is_stopped = True
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in STOPPING}
    try:
        yield lambda: is_stopped
    except KeyboardInterrupt:
        pass  # the signal ends the block, and is no error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
