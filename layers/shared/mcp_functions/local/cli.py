"""What `serve` does and writes. SIGINT and SIGTERM end it quietly."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import signal
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TextIO

from mcp_functions.http.identity import NO_AUTHENTICATION
from mcp_functions.local import banner, catalog
from mcp_functions.local.harness import Harness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mcp_functions.local.lambdas import Invocation

DEFAULT_PORT = 8000
LOOK_SECONDS = 0.2
ANSWERED = tuple(f"answered: {outcome}" for outcome in ("complete", "input_required", "shed", "forwarded"))
STOPPING = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, kw_only=True)
class Serving:
    """The options of `serve`, as its help describes them."""

    functions: Path
    port: int
    runtime: bool
    auth: Literal["none", "jwt", "oauth"]
    no_reuse: bool
    debug: bool


def serve(options: Serving) -> int:
    """Serve every function until SIGINT or SIGTERM; return the exit code."""
    how: dict[str, Any] = {
        "runtime": options.runtime,
        "reuse": not options.no_reuse,
        "on_log": _log,
        "auth": options.auth,
    }
    with (
        contextlib.redirect_stdout(_ReadableOutput(sys.stdout)),
        until_stopped() as stopped,
        Harness(options.functions, port=options.port, debug=options.debug, on_invocation=_report, **how) as harness,
    ):
        logging.basicConfig(stream=sys.stderr, format="  %(message)s")
        logging.getLogger("mcp_functions").setLevel(logging.INFO)
        logging.getLogger("mcp_functions").addFilter(_is_news)
        _say(banner.text(harness.url, harness.functions, harness.issuer, options.auth))
        offered = catalog.describe(harness.functions.values())
        if changed := catalog.differences(catalog.read(options.functions), offered):
            _say(banner.stale(changed))
        while not stopped():
            time.sleep(LOOK_SECONDS)
    return 0


def _report(invocation: Invocation) -> None:
    with contextlib.suppress(OSError):  # the reader of these lines may have ended; the function still answers
        _say(f"  {invocation.error or invocation.status}  {invocation.folder}  {invocation.milliseconds:.0f} ms")


def _is_news(record: logging.LogRecord) -> bool:
    # the banner explains authentication, and `_report` writes a line for every answer
    return record.msg != NO_AUTHENTICATION and not record.getMessage().endswith(ANSWERED)


def _log(folder: str, line: str) -> None:
    text = _readable(line)
    if text is not None:
        with contextlib.suppress(OSError):
            _say(f"  {folder}  {text}")


class _ReadableOutput(io.TextIOBase):
    """Standard output for functions in this process, whose Powertools Logger may write JSON."""

    def __init__(self, out: TextIO) -> None:
        """Write to `out`."""
        self._out = out

    def write(self, text: str) -> int:
        """Write the toolkit's lines readably, and other text unchanged."""
        line = _readable(text)
        if line is not None:
            self._out.write(line if line == text else f"  {line}\n")
        return len(text)

    def flush(self) -> None:
        """Flush the output."""
        self._out.flush()


def _readable(line: str) -> str | None:
    """Return the message of the toolkit's JSON lines, None instead of metrics, and every other line unchanged."""
    try:
        record = json.loads(line)
    except ValueError:
        return line
    match record:
        case {"_aws": {"CloudWatchMetrics": _}}:
            return None
        case {"logger": "mcp_functions", "message": str(message)}:
            return None if message.endswith(ANSWERED) else message
    return line


class _Stopped(BaseException):
    """A signal asks to stop. It is no `Exception`, so that no function catches it."""


@contextlib.contextmanager
def until_stopped() -> Iterator[Callable[[], bool]]:
    """Run the block until SIGINT or SIGTERM; a second signal does nothing.

    The signal raises an exception where the block is, and sets a flag too, because an exception in a finalizer is lost.
    There is no lock: a handler that interrupts the holder of a lock would wait for ever.
    """
    stopped = False

    def stop(_number: int, _frame: object) -> None:
        nonlocal stopped
        for number in STOPPING:
            signal.signal(number, signal.SIG_IGN)
        stopped = True
        raise _Stopped

    before = {number: signal.signal(number, stop) for number in STOPPING}
    try:
        yield lambda: stopped
    except _Stopped:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
