"""The errors that a function logs and raises while it answers a test. Its client does not receive them."""

from __future__ import annotations

import logging
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import get_ident
from typing import TYPE_CHECKING

from mcp_functions.local.failures import whole_traceback
from mcp_functions.observability import Notes, lines, listener

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_RAISED = 20  # exceptions that the report of a test shows
_raised: deque[tuple[str, BaseException]] = deque(maxlen=MAX_RAISED)
TEST_RUNNERS = ("_pytest", "hypothesis")  # their exceptions end a test


@dataclass
class Failures:
    """Log lines at ERROR, and the exceptions that handlers raised by accident."""

    lines: list[str] = field(default_factory=list)
    exceptions: list[BaseException] = field(default_factory=list)

    @property
    def last(self) -> BaseException | None:
        """The last exception."""
        return self.exceptions[-1] if self.exceptions else None

    def listen(self, notes: Notes) -> None:
        """Keep what the line of a request reports, whichever logger writes it."""
        if lines.level_of(notes) == logging.ERROR:
            self.lines.append(lines.message(notes))
        if notes.raised:
            self.exceptions.append(notes.raised)
            _raised.append((notes.handler or "a function", notes.raised))


class _ErrorHandler(logging.Handler):
    """Keeps the lines of one thread at ERROR that are not the line of a request."""

    def __init__(self, failures: Failures, fallback: logging.Handler | None) -> None:
        super().__init__()
        self._failures = failures
        self._fallback = fallback
        self._thread = get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if self._fallback and record.levelno >= self._fallback.level:
            self._fallback.handle(record)
        is_request_line = hasattr(record, "outcome")
        if record.levelno >= logging.ERROR and record.thread == self._thread and not is_request_line:
            self._failures.lines.append(record.getMessage())


@contextmanager
def captured_failures() -> Iterator[Failures]:
    """Collect the failures of the requests that this thread answers."""
    failures, log = Failures(), logging.getLogger("mcp_functions")
    # Without any handler, `logging` writes to stderr by itself; with this one it would not.
    fallback = None if log.hasHandlers() else logging.lastResort
    handler = _ErrorHandler(failures, fallback)
    log.addHandler(handler)
    token = listener.set(failures.listen)
    try:
        yield failures
    finally:
        listener.reset(token)
        log.removeHandler(handler)


def take_raised() -> list[tuple[str, str]]:
    """Return the names of the handlers that raised by accident since the last call, with whole tracebacks."""
    taken = [(name, whole_traceback(error)) for name, error in _raised if not ends_test(error)]
    _raised.clear()
    return taken


def ends_test(error: BaseException) -> bool:
    """Return whether a test runner raised it, as `pytest.fail()` does."""
    return any(kind.__module__.partition(".")[0] in TEST_RUNNERS for kind in type(error).__mro__)
