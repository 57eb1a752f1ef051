"""The two forms of what `serve` writes: `TextOutlet` for a person, `JsonOutlet` with Lambda's JSON lines for a program.

Both have the same methods. `serve` gives them to the harness, which calls them for each line, call and progress.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import TYPE_CHECKING, TextIO

from mcp_functions.local.runtime.author_process import PROGRESS
from mcp_functions.local.terminal.round_lines import RoundLines
from mcp_functions.local.terminal.screen import FAILED, FunctionsLog, NamedOutput, Screen, lambdas_log, logged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.local.lambdas import Outcome


class TextOutlet(Screen):
    """Tells a person each round in a line, and the output of functions with their names."""

    def __init__(self, out: TextIO, *, show_answers: bool) -> None:
        """Write to `out`; `show_answers` also writes what users answered."""
        super().__init__(out)
        self._out = out
        self._lines = RoundLines("", show_answers=show_answers)

    def use_key(self, key_arn: str) -> None:
        """Take the harness's KMS key, which opens a client's state: it contains the number of the round."""
        self._lines.key_arn = key_arn

    def log(self, folder: str, line: str) -> None:
        """Write a line about a function, or of its process."""
        if line.startswith(PROGRESS):
            self.progress(folder, *json.loads(line.removeprefix(PROGRESS)))
        else:
            self.tell(folder, line)

    def exchange(self, folder: str, event: bytes, outcome: Outcome) -> None:
        """Write the line of a call that has ended."""
        self.finish(folder)
        written = self._lines.line(folder, event, outcome)
        if written:
            line, failed = written
            self.say(f"  {line}", FAILED if failed else "")

    @contextlib.contextmanager
    def output(self) -> Iterator[None]:
        """Write what functions print and log, until the end of the block."""
        with (
            contextlib.redirect_stdout(NamedOutput(self, self._out)),
            contextlib.redirect_stderr(NamedOutput(self, sys.stderr)),
            logged(FunctionsLog(self)),
        ):
            yield


class JsonOutlet:
    """Writes the lines that Lambda would write. Texts of the harness go to stderr."""

    def __init__(self, out: TextIO) -> None:
        """Write to `out`."""
        self._out = out
        self._handler = lambdas_log(out)

    def use_key(self, _key_arn: str) -> None:
        """Need no key: the toolkit's own line has the number of the round."""

    def say(self, text: str) -> None:
        """Write a text of the harness."""
        with contextlib.suppress(OSError, ValueError):  # the reader of the pipe may have ended; functions go on
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def log(self, _folder: str, line: str) -> None:
        """Write a line about a function, or of its process."""
        if line.startswith(PROGRESS):
            return
        with contextlib.suppress(OSError, ValueError):  # the reader of the pipe may have ended; functions go on
            self._out.write(f"{line}\n")
            self._out.flush()

    def exchange(self, folder: str, event: bytes, outcome: Outcome) -> None:
        """Write nothing: the toolkit's own line tells the call."""

    def progress(self, folder: str, done: float, total: float | None) -> None:
        """Write nothing, as on Lambda."""

    @contextlib.contextmanager
    def output(self) -> Iterator[None]:
        """Write what functions log, until the end of the block."""
        with logged(self._handler):
            yield
