"""The errors that a function logs and raises while it answers a test, so that the test can show them.

They are nowhere else: the client gets a general message, and the log has only the type of the exception and its place.
"""

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import get_ident

from mcp_functions.observability import Notes, lines, listener
from mcp_functions_harness.lambdas.failures import whole_traceback

MAX_RAISED = 20  # the report of a test shows no more exceptions than the last 20
TEST_RUNNERS = ("_pytest", "hypothesis")  # packages whose exceptions end a test
# The name of each handler and its exception, until the pytest plugin takes them.
_raised: deque[tuple[str, BaseException]] = deque(maxlen=MAX_RAISED)


@dataclass
class Failures:
    """Log lines at ERROR, and exceptions that handlers did not expect."""

    lines: list[str] = field(default_factory=list)
    exceptions: list[BaseException] = field(default_factory=list)

    @property
    def last(self) -> BaseException | None:
        """The last exception."""
        return self.exceptions[-1] if self.exceptions else None

    def listen(self, notes: Notes) -> None:
        """Keep the failure of one request. The toolkit writes the request's log line from the same notes."""
        if lines.level_of(notes) == logging.ERROR:
            self.lines.append(lines.message(notes))
        if notes.raised:
            self.exceptions.append(notes.raised)
            _raised.append((notes.handler or "a function", notes.raised))


@contextmanager
def captured_failures() -> Iterator[Failures]:
    """Collect the failures of the requests that this thread answers."""
    failures = Failures()
    thread = get_ident()

    def keep_errors(record: logging.LogRecord) -> bool:
        is_request_line = hasattr(record, "outcome")  # `Failures.listen` keeps these
        if record.levelno >= logging.ERROR and record.thread == thread and not is_request_line:
            failures.lines.append(record.getMessage())
        return True  # every record is logged

    log = logging.getLogger("mcp_functions")
    log.addFilter(keep_errors)
    token = listener.set(failures.listen)
    try:
        yield failures
    finally:
        listener.reset(token)
        log.removeFilter(keep_errors)


def take_raised() -> list[tuple[str, str]]:
    """Return the handlers' unexpected exceptions since the last call: the name of the handler, and the traceback."""
    taken = [(name, whole_traceback(error)) for name, error in _raised if not ends_test(error)]
    _raised.clear()
    return taken


def ends_test(error: BaseException) -> bool:
    """Tell whether a test runner raised an exception, as `pytest.fail()` does."""
    return any(base.__module__.partition(".")[0] in TEST_RUNNERS for base in type(error).__mro__)
