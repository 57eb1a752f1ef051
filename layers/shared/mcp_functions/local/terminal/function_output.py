"""What functions in this process print and log, written to a screen with the name of the function that runs.

A function prints to `sys.stdout` and logs with `logging`, which all functions share. The context variable
`running_function` has the folder of the function that runs in this thread.
"""

from __future__ import annotations

import contextlib
import io
import logging
import sys
from threading import get_ident
from typing import TYPE_CHECKING, TextIO

from mcp_functions.local.lambdas.own_variables import running_function
from mcp_functions.local.terminal.log_lines import TOOLKIT, is_skipped
from mcp_functions.local.terminal.screen import FAILED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.local.terminal.screen import Screen


class FunctionStream(io.TextIOBase):
    """Replaces stdout or stderr: each whole line that a function prints gets the function's name."""

    def __init__(self, screen: Screen, out: TextIO) -> None:
        """Write lines of functions to the screen, and all other text to `out`."""
        self._screen = screen
        self._out = out
        # by folder and thread: the start of a line whose end was not printed yet
        self._partial_lines: dict[tuple[str, int], str] = {}

    def write(self, text: str) -> int:
        """Write the lines that are complete, and keep the start of the next one."""
        folder = running_function.get()
        if not folder:
            return self._out.write(text)
        writer = (folder, get_ident())
        pending = self._partial_lines.pop(writer, "") + text
        *complete_lines, rest = pending.split("\n")
        for line in complete_lines:
            self._screen.write_log(folder, line)
        if rest:
            self._partial_lines[writer] = rest
        return len(text)

    def flush(self) -> None:
        """Flush the output; the start of a line waits for its end."""
        self._out.flush()


class FunctionLogHandler(logging.Handler):
    """Writes the records of functions and of the toolkit; of all others only those from WARNING on."""

    def __init__(self, screen: Screen) -> None:
        """Write to a screen."""
        super().__init__()
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record with the name of the function that logged it."""
        folder = running_function.get()
        message = record.getMessage()
        if record.name == TOOLKIT and is_skipped(message):
            return
        if not folder and record.name != TOOLKIT and record.levelno < logging.WARNING:
            return
        text = message if record.levelno <= logging.INFO else f"{record.levelname} {message}"
        if record.exc_info:
            text += f"\n{logging.Formatter().formatException(record.exc_info)}"
        style = FAILED if record.levelno >= logging.ERROR else ""
        self._screen.write_log(folder or record.name, text, style)


@contextlib.contextmanager
def redirected_to(screen: Screen, out: TextIO) -> Iterator[None]:
    """Write what functions print and log to a screen until the end of the block, and other prints to `out`."""
    with (
        contextlib.redirect_stdout(FunctionStream(screen, out)),
        contextlib.redirect_stderr(FunctionStream(screen, sys.stderr)),
        handling_records(FunctionLogHandler(screen)),
    ):
        yield


@contextlib.contextmanager
def handling_records(handler: logging.Handler) -> Iterator[None]:
    """Give the records of this process to a handler, from Lambda's level INFO on, until the end of the block."""
    root = logging.getLogger()
    level_before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level_before)
