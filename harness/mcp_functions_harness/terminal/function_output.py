"""Shows which function has printed or logged a line, though all functions share this process.

`FunctionStream` replaces `sys.stdout` and `sys.stderr`, and `FunctionLogHandler` gets the records of `logging`. Both
write each line with the folder in `running_function`, the function that runs in this thread.
"""

import contextlib
import io
import logging
import sys
from collections.abc import Callable, Iterator
from threading import get_ident
from typing import TextIO, TypeAlias

from mcp_functions_harness.lambdas.own_variables import running_function
from mcp_functions_harness.terminal.log_lines import TOOLKIT, is_skipped

WriteLog: TypeAlias = Callable[[str, str, str], None]  # takes a folder, a line, and its style
AWS_CLIENTS = ("boto3", "botocore")  # at INFO they tell of credentials, which are the harness's
FAILED = "red"  # a style of `rich`


class FunctionStream(io.TextIOBase):
    """A stdout or stderr that writes whole lines of functions, each with its function."""

    def __init__(self, write_log: WriteLog, out: TextIO) -> None:
        """Write lines of functions with `write_log`, and what is printed outside of functions to `out`."""
        self._write_log = write_log
        self._out = out
        self._partial_lines: dict[tuple[str, int], str] = {}  # by folder and thread

    def write(self, text: str) -> int:
        """Write complete lines, and keep the start of the next one."""
        folder = running_function.get()
        if not folder:
            return self._out.write(text)
        writer = (folder, get_ident())
        pending = self._partial_lines.pop(writer, "") + text
        *complete_lines, rest = pending.split("\n")
        for line in complete_lines:
            self._write_log(folder, line, "")
        if rest:
            self._partial_lines[writer] = rest
        return len(text)

    def flush(self) -> None:
        """Flush `out`. The start of a line waits for its end."""
        self._out.flush()


class FunctionLogHandler(logging.Handler):
    """Writes log records: all of functions and of the toolkit, of other code those from WARNING on."""

    def __init__(self, write_log: WriteLog) -> None:
        """Write with `write_log`."""
        super().__init__()
        self._write_log = write_log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record with the name of the function that logged it."""
        folder = running_function.get()
        message = record.getMessage()
        if record.name == TOOLKIT:
            if is_skipped(message):
                return
        elif record.levelno < logging.WARNING and (not folder or record.name.startswith(AWS_CLIENTS)):
            return
        text = message if record.levelno <= logging.INFO else f"{record.levelname} {message}"
        if record.exc_info:
            text += f"\n{logging.Formatter().formatException(record.exc_info)}"
        style = FAILED if record.levelno >= logging.ERROR else ""
        self._write_log(folder or record.name, text, style)


@contextlib.contextmanager
def redirected_to(write_log: WriteLog, out: TextIO) -> Iterator[None]:
    """Until the end of the block, write what functions print and log with `write_log`, and other prints to `out`."""
    with (
        contextlib.redirect_stdout(FunctionStream(write_log, out)),
        contextlib.redirect_stderr(FunctionStream(write_log, sys.stderr)),
        handling_records(FunctionLogHandler(write_log)),
    ):
        yield


@contextlib.contextmanager
def handling_records(handler: logging.Handler) -> Iterator[None]:
    """Until the end of the block, give all records from INFO on, as on Lambda, to a handler."""
    root = logging.getLogger()
    level_before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level_before)
