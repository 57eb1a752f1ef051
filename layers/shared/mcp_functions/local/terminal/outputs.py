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
from typing import Any, TextIO

from mcp_functions.local.lambdas import Outcome
from mcp_functions.local.lambdas.functions import FRONT_DOOR
from mcp_functions.local.loopback import json_object
from mcp_functions.local.problems import not_installed
from mcp_functions.local.terminal.function_output import handling_records, redirected_to
from mcp_functions.local.terminal.round_lines import RoundLines
from mcp_functions.local.terminal.screen import FAILED, Screen
from mcp_functions.local.terminal.state_rounds import StateRounds

MAX_REQUESTS = 200  # how many requests `TextOutput` remembers


class TextOutput(Screen):
    """Writes a line for each round, and the output of functions with their names."""

    def __init__(self, out: TextIO, *, show_answers: bool) -> None:
        """Write to `out`; `show_answers` also writes what users answered."""
        super().__init__(out)
        self._out = out
        self._round_lines = RoundLines(StateRounds().round_of, show_answers=show_answers)
        self._requests_with_line: deque[str] = deque(maxlen=MAX_REQUESTS)  # API Gateway's ids of the last requests

    def write_call(self, folder: str, event: bytes, outcome: Outcome) -> None:
        """Write the line of a call that has ended. A request that functions/mcp passed on has one line."""
        self.remove_progress(folder)
        sent = json_object(event)
        request_id = _request_id(sent)
        if folder == FRONT_DOOR and request_id in self._requests_with_line:
            return  # the call of the other function has ended before
        if request_id:
            self._requests_with_line.append(request_id)
        line = self._round_lines.line(folder, sent, outcome)
        self.write(f"  {line.text}", FAILED if line.is_failure else "")

    def capture(self) -> AbstractContextManager[None]:
        """Write what functions of this process print and log, until the end of the block."""
        return redirected_to(self, self._out)


class JsonOutput:
    """Writes the lines that Lambda would write. Texts of the harness go to stderr."""

    def __init__(self, out: TextIO) -> None:
        """Write to `out`.

        Raises:
            Problem: Lambda's runtime client, which has the format, is not installed.
        """
        self._out = out
        self._handler = logging.StreamHandler(out)
        self._handler.terminator = ""  # the formatter ends the line
        self._handler.setFormatter(_lambda_formatter())

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


def _request_id(event: dict[str, Any]) -> str:
    context = event.get("requestContext")
    return str(context.get("requestId", "")) if isinstance(context, dict) else ""


def _write_line(out: TextIO, line: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # the reader of a pipe may have ended; functions go on
        out.write(f"{line}\n")
        out.flush()


def _lambda_formatter() -> logging.Formatter:
    try:
        module = importlib.import_module("awslambdaric.lambda_runtime_log_utils")
    except ModuleNotFoundError as error:
        raise not_installed(error, "runtime") from error
    formatter: logging.Formatter = module.JsonFormatter()
    return formatter
