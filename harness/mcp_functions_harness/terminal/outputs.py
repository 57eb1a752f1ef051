"""The two outputs of `serve`: `TextOutput` for a person, and `JsonOutput` with the log lines that Lambda would write.

Both have the same methods:

write            a text of the harness
write_log        a line that a function in another process has logged
write_call       a call has ended
show_progress    a running call reports its progress
capture          redirects what functions in this process print and log, for a block
"""

import contextlib
import importlib
import logging
import sys
from collections import deque
from contextlib import AbstractContextManager
from threading import Lock
from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TaskID
from rich.text import Text

from mcp_functions_harness.lambdas.functions import FRONT_DOOR
from mcp_functions_harness.lambdas.service import Outcome, http_request_id
from mcp_functions_harness.problems import not_installed
from mcp_functions_harness.terminal import long_rounds
from mcp_functions_harness.terminal.function_output import FAILED, handling_records, redirected_to
from mcp_functions_harness.terminal.log_lines import shown_text
from mcp_functions_harness.terminal.round_lines import RoundLines
from mcp_functions_harness.terminal.safe_text import raw_stream, safe_line, safe_text

FOLDER = "cyan"  # a style of `rich`
MAX_REQUESTS = 200  # how many requests `TextOutput` remembers


class TextOutput:
    """Writes a line for each round, and the output of functions after their names.

    A terminal has colours, and a progress bar for each function that reports its progress. A file or a pipe has not.
    """

    def __init__(self, out: TextIO, *, show_answers: bool = False) -> None:
        """Write to `out`; `show_answers` also writes what users answered."""
        self._out = out
        # The styles are written past the stream that escapes all text, so this class escapes the text itself.
        raw = raw_stream(out)
        self._console = Console(file=raw, highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._progress = Progress(console=self._console, transient=True, redirect_stdout=False, redirect_stderr=False)
        self._bars: dict[str, TaskID] = {}  # the progress bars by function
        self._lock = Lock()  # guards _bars; functions report from several threads
        self._round_lines = RoundLines(show_answers=show_answers)
        self._requests_with_line: deque[str] = deque(maxlen=MAX_REQUESTS)  # API Gateway's ids

    def write(self, text: str, style: str = "") -> None:
        """Write a line of the harness, or several."""
        self._print(Text(safe_text(text), style))

    def write_log(self, folder: str, line: str, style: str = "") -> None:
        """Write a log line of a function, after the function's name; `shown_text` may skip the line.

        A line break in it begins no line of the harness: the function's name precedes each line.
        """
        text = shown_text(line)
        if text is not None:
            name = f"  {safe_line(folder)}"
            lines = [Text.assemble((name, FOLDER), "  ", (part, style)) for part in safe_text(text).split("\n")]
            self._print(Text("\n").join(lines))

    def write_call(self, folder: str, event: bytes, outcome: Outcome) -> None:
        """Write the line of a call that has ended. A request that functions/mcp passed on has one line."""
        self._remove_bar(folder)
        request_id = http_request_id(event)
        if folder == FRONT_DOOR and request_id in self._requests_with_line:
            return  # the call of the other function has ended before
        if request_id:
            self._requests_with_line.append(request_id)
        line = self._round_lines.line(folder, event, outcome)
        self.write(f"  {line.text}", FAILED if line.is_failure else "")
        warning = long_rounds.warning(folder, outcome)
        if warning:
            self.write(f"  {warning}", FAILED)

    def show_progress(self, folder: str, done: float, total: float | None) -> None:
        """Move the bar of a function, or add it."""
        if not self._console.is_terminal:
            return
        with self._lock:
            if folder not in self._bars:
                self._progress.start()
                self._bars[folder] = self._progress.add_task(escape(safe_line(folder)))
            self._progress.update(self._bars[folder], completed=done, total=total)

    def capture(self) -> AbstractContextManager[None]:
        """Write what functions of this process print and log, until the end of the block."""
        return redirected_to(self.write_log, self._out)

    def _remove_bar(self, folder: str) -> None:
        with self._lock:
            if folder not in self._bars:
                return
            self._progress.remove_task(self._bars.pop(folder))
            if not self._bars:
                self._progress.stop()

    def _print(self, text: Text) -> None:
        # The reader of a pipe may have ended (OSError), or the file is closed (ValueError). Functions go on.
        with contextlib.suppress(OSError, ValueError):
            self._console.print(text)


class JsonOutput:
    """Writes the lines that Lambda would write. Texts of the harness go to stderr."""

    def __init__(self, out: TextIO) -> None:
        """Write to `out`.

        Raises:
            Problem: Lambda's runtime client, which has the format, is not installed.
        """
        try:
            lambda_runtime_log_utils = importlib.import_module("awslambdaric.lambda_runtime_log_utils")
        except ModuleNotFoundError as error:
            raise not_installed(error, "runtime") from error
        self._out = out
        self._handler = logging.StreamHandler(out)
        self._handler.terminator = ""  # the formatter ends the line
        self._handler.setFormatter(lambda_runtime_log_utils.JsonFormatter())

    def write(self, text: str) -> None:
        """Write a text of the harness."""
        _write_line(sys.stderr, text)

    def write_log(self, _folder: str, line: str) -> None:
        """Write a log line of a function as it is."""
        _write_line(self._out, line)

    def write_call(self, folder: str, event: bytes, outcome: Outcome) -> None:
        """Write nothing: the toolkit's own line says how the call ended."""

    def show_progress(self, folder: str, done: float, total: float | None) -> None:
        """Write nothing, as on Lambda."""

    def capture(self) -> AbstractContextManager[None]:
        """Write what functions of this process log, until the end of the block."""
        return handling_records(self._handler)


def _write_line(out: TextIO, line: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # the reader of a pipe may have ended
        out.write(f"{line}\n")
        out.flush()
