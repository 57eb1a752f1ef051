"""Where the lines of `serve` go: to a person, or as Lambda writes them to a program."""

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
        """Write to `out`; the answers of clients only on request."""
        super().__init__(out)
        self._out, self._lines = out, RoundLines("", show_answers=show_answers)

    def opens_states_with(self, key_arn: str) -> None:
        """Take the harness's key: a state that a client presents has the number of its round."""
        self._lines.key_arn = key_arn

    def log(self, folder: str, line: str) -> None:
        """Take a line about a function, or of its process."""
        if line.startswith(PROGRESS):
            self.progress(folder, *json.loads(line.removeprefix(PROGRESS)))
        else:
            self.tell(folder, line)

    def exchange(self, folder: str, event: bytes, outcome: Outcome) -> None:
        """Write the line of a call that has ended."""
        self.finish(folder)
        told = self._lines.line(folder, event, outcome)
        if told:
            line, failed = told
            self.say(f"  {line}", FAILED if failed else "")

    @contextlib.contextmanager
    def output(self) -> Iterator[None]:
        """Take what functions print and log, until the end of the block."""
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
        self._out, self._handler = out, lambdas_log(out)

    def opens_states_with(self, _key_arn: str) -> None:
        """Need no key: the toolkit's own line has the number of the round."""

    def say(self, text: str) -> None:
        """Write a text of the harness."""
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def log(self, _folder: str, line: str) -> None:
        """Take a line about a function, or of its process."""
        if not line.startswith(PROGRESS):
            with contextlib.suppress(OSError, ValueError):  # its reader may have ended; functions go on
                self._out.write(f"{line}\n")
                self._out.flush()

    def exchange(self, folder: str, event: bytes, outcome: Outcome) -> None:
        """Write nothing: the toolkit's own line tells the call."""

    def progress(self, folder: str, done: float, total: float | None) -> None:
        """Write nothing, as on Lambda."""

    @contextlib.contextmanager
    def output(self) -> Iterator[None]:
        """Take what functions log, until the end of the block."""
        with logged(self._handler):
            yield
