"""The terminal of `serve`: text in colours where it shows them, and whole lines of functions with their names.

A function in this process prints to `sys.stdout` and logs with `logging`; a line gets its name because the
context knows which function runs. Lambda's own format (`--log json`) passes both unchanged.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
from threading import RLock, get_ident
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.progress import Progress, TaskID
from rich.text import Text

from mcp_functions.http.identity import NO_AUTHENTICATION
from mcp_functions.local.lambdas.own_variables import running
from mcp_functions.local.loopback import json_object
from mcp_functions.local.problems import not_installed

if TYPE_CHECKING:
    from collections.abc import Iterator

FAILED = "red"
NAMED = "cyan"
TOOLKIT = "mcp_functions"  # the name of the toolkit's logger
LAMBDA_WARNING = "LAMBDA_WARNING: Unhandled exception"  # begins half a screen of text about updates of the runtime
PLATFORM = ("START RequestId: ", "END RequestId: ", "REPORT RequestId: ")
# Messages of the toolkit that begin so are not written: a round's line, a traceback or the banner tells the same.
TOLD = ("answered: ", "failed: ", NO_AUTHENTICATION)


class Screen:
    """Writes to a terminal, or to a file or a pipe without colours."""

    def __init__(self, out: TextIO) -> None:
        """Write to `out`."""
        self._console = Console(file=out, highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._progress = Progress(console=self._console, transient=True, redirect_stdout=False, redirect_stderr=False)
        self._lock = RLock()
        self._bars: dict[str, TaskID] = {}  # by folder: the bar of a call that reports its progress

    def say(self, text: str, style: str = "") -> None:
        """Write a text of the harness."""
        self._print(Text(text, style))

    def tell(self, folder: str, line: str, style: str = "") -> None:
        """Write a line of a function, with its name; leave out metrics and what the round's line contains."""
        shown = readable(line)
        if shown is not None:
            self._print(Text.assemble((f"  {folder}", NAMED), "  ", (shown, style)))

    def progress(self, folder: str, done: float, total: float | None) -> None:
        """Draw how far a call of a function is; without a terminal, nothing."""
        if not self._console.is_terminal:
            return
        with self._lock:
            if folder not in self._bars:
                self._progress.start()
                self._bars[folder] = self._progress.add_task(folder)
            self._progress.update(self._bars[folder], completed=done, total=total)

    def finish(self, folder: str) -> None:
        """Remove the bar of a call that has ended."""
        with self._lock:
            if folder not in self._bars:
                return
            self._progress.remove_task(self._bars.pop(folder))
            if not self._bars:
                self._progress.stop()

    def _print(self, text: Text) -> None:
        with self._lock, contextlib.suppress(OSError, ValueError):  # its reader may have ended; functions go on
            self._console.print(text)
            self._console.file.flush()


class NamedOutput(io.TextIOBase):
    """Standard output of functions in this process: each whole line gets the name of the function that printed it."""

    def __init__(self, screen: Screen, out: TextIO) -> None:
        """Write lines of functions to the screen, and everything else to `out`."""
        self._screen = screen
        self._out = out
        self._begun: dict[tuple[str, int], str] = {}  # by folder and thread: a line without its end

    def write(self, text: str) -> int:
        """Write the lines that are complete, and keep the rest."""
        folder = running.get()
        if not folder:
            return self._out.write(text)
        writer = (folder, get_ident())
        *lines, rest = (self._begun.pop(writer, "") + text).split("\n")
        for line in lines:
            self._screen.tell(folder, line)
        if rest:
            self._begun[writer] = rest
        return len(text)

    def flush(self) -> None:
        """Flush the output; a line that is not complete waits for its end."""
        self._out.flush()


class FunctionsLog(logging.Handler):
    """Tells what functions log; other loggers of this process are heard from WARNING on."""

    def __init__(self, screen: Screen) -> None:
        """Write to a screen."""
        super().__init__()
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record with the name of the function that logged it."""
        folder = running.get()
        message = record.getMessage()
        if record.name == TOOLKIT and message.startswith(TOLD):
            return
        # Outside of a function, only warnings and the toolkit's own messages are of interest.
        if not folder and record.levelno < logging.WARNING and record.name != TOOLKIT:
            return
        level = "" if record.levelno <= logging.INFO else f"{record.levelname} "
        trace = f"\n{logging.Formatter().formatException(record.exc_info)}" if record.exc_info else ""
        style = FAILED if record.levelno >= logging.ERROR else ""
        self._screen.tell(folder or record.name, f"{level}{message}{trace}", style)


def lambdas_log(out: TextIO) -> logging.Handler:
    """Return a handler that writes records as Lambda does in its JSON format.

    Raises:
        Problem: Lambda's runtime client is not installed.
    """
    try:
        lambdas = importlib.import_module("awslambdaric.lambda_runtime_log_utils")
    except ModuleNotFoundError as error:
        raise not_installed(error, "runtime") from error
    handler = logging.StreamHandler(out)
    handler.terminator = ""  # the formatter ends the line
    handler.setFormatter(lambdas.JsonFormatter())
    return handler


@contextlib.contextmanager
def logged(handler: logging.Handler) -> Iterator[None]:
    """Give the records of this process to a handler, at Lambda's level, until the end of the block."""
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


def readable(line: str) -> str | None:
    """Return what a person reads of a line; None for metrics, and for what a round's line contains already."""
    record = json_object(line)
    message = record.get("message")
    if "_aws" in record or line.startswith(PLATFORM) or LAMBDA_WARNING in line:
        return None
    if record.get("logger") == TOOLKIT and isinstance(message, str):
        return None if message.startswith(TOLD) else message
    if {"timestamp", "level", "requestId"} <= record.keys():
        return _text_of_lambdas(record)
    return line


def _text_of_lambdas(record: dict[str, Any]) -> str:
    """Return the text of a line that Lambda's own JSON formatter wrote."""
    level = "" if record["level"] == "INFO" else f"{record['level']} "
    texts = [str(record[name]) for name in ("message", "errorType", "errorMessage") if record.get(name)]
    trace = [str(line).rstrip("\n") for line in record.get("stackTrace", ())]
    return "\n".join([level + ": ".join(texts), *trace])
