"""The notes on a request: code that learns a fact about the request writes it there, for the request's one log line.

    current().handler = "book_flight"           `current()` returns the notes on the request that is served
    current().conclude("refused", "expired")

`http.outcomes` begins the notes, and `observability.lines` writes the line from them. The line holds codes, this
package's names, sizes and times. It never holds an argument, answer, state or principal.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from itertools import dropwhile
from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import DeveloperError, Misconfigured, TemporarilyUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

CRASHED = "crashed"  # the outcome if an author's function raised an unexpected exception, or broke a rule
FAILED = "failed"  # the outcome if the server or AWS failed
SEVERITY = {"refused": 1, FAILED: 2, CRASHED: 3}  # all other outcomes are successes, and count as 0
# The folder of this package, with a slash at its end: paths of our own frames begin with it.
PACKAGE = __file__.removesuffix("observability/__init__.py")
UNKNOWN = "unknown"  # replaces a method or name that this server does not have
EACH_END = 7  # a crash is logged with this number of innermost and of outermost frames


class Notes:
    """The facts about one request. A fact that is unknown (None) is left out of its line."""

    # A method of the specification or "unknown"; "metadata" or "preflight" for requests without JSON-RPC.
    method: str | None = None
    revision: str | None = None  # the client's revision, if that is not 2026-07-28
    handler: str | None = None  # a name in the catalog or "unknown"; None if the request has no name
    round: int | None = None  # the number of this request in its conversation, from 1
    flow: str | None = None  # the conversation's id, which is logged as a digest
    caller: str | None = None  # the caller's pseudonym, if the deployment logs callers
    # The id of the caller (`binding.caller_id`). A caller may send only few states that KMS cannot decrypt, and this id
    # tells whose they are. The id is not logged.
    caller_id: str = ""
    jti: bytes | None = None  # the id of the client's state, once that proved authentic; logged as base64url
    answered_by: str | None = None  # who gave the answers of this request; None if it has none
    outcome: str = ""  # complete, input_required, shed (ended without a question), forwarded, refused, failed, crashed
    status: int = 500
    code: int | None = None  # the code of the JSON-RPC error
    # A constant of this package or of AWS; for a crash, the exception's type or the broken rule.
    reason: str | None = None
    place: str | None = None  # the frames of an unexpected exception
    # The unexpected exception. Its text may quote secrets: only a listener on the author's machine reads it.
    raised: BaseException | None = None
    tool_error: bool = False
    misconfigured: bool = False  # True if the operator has to act
    cold_start: bool = False
    request_bytes: int = 0
    response_bytes: int = 0
    seconds: float = 0.0
    kms_calls: int = 0
    kms_failures: int = 0
    kms_seconds: float = 0.0
    forward_seconds: float | None = None  # how long the endpoint waited for the function behind it
    # The unchecked ids of the request, from API Gateway and from Lambda. They are logged only if they look like ids.
    correlation_id: object = None
    request_id: object = None
    trace_id: str | None = None  # the trace id in the client's `traceparent`, if that is valid

    def conclude(self, outcome: str, reason: str | None = None) -> None:
        """Set the outcome and its reason, unless an earlier outcome is worse.

        There are several where a client of the revision 2025-03-26 sends a batch of messages in one request.
        """
        if SEVERITY.get(outcome, 0) >= SEVERITY.get(self.outcome, 0):
            self.outcome = outcome
            if reason:
                self.reason = reason

    def crash(self, error: BaseException) -> None:
        """Set the outcome to an unexpected exception: its type or broken rule, and its frames, but not its text."""
        self.outcome = CRASHED
        self.raised = error
        self.handler = self.handler or UNKNOWN  # the metric counts only lines with a handler
        if isinstance(error, DeveloperError):
            self.reason = error.rule
            self.place = frames(error, of_author=True)
        else:
            self.reason = type(error).__name__
            self.place = frames(error)


# The notes on the request that is served; `http.outcomes` sets them. Each thread has its own.
request_notes: ContextVar[Notes | None] = ContextVar("notes", default=None)


def current() -> Notes:
    """Return the notes on the current request. Outside of a request, return new notes, which are not logged."""
    return request_notes.get() or Notes()


# Called with the notes on each answered request of this thread, in tests and in the harness.
listener: ContextVar[Callable[[Notes], object] | None] = ContextVar("listener", default=None)

# Called with `progress` and `total` of each report of progress, on the author's machine.
progress_listener: ContextVar[Callable[[float, float | None], object] | None] = ContextVar("progress", default=None)


class KmsTimer:
    """A context manager that counts one call of KMS, its duration and its failure. A bad token is no failure."""

    __slots__ = ("_began", "_notes")

    def __enter__(self) -> None:
        """Start the timer."""
        self._notes = current()
        self._began = time.perf_counter()

    def __exit__(self, _type: object, error: object, _traceback: object) -> None:
        """Add the call to the notes."""
        self._notes.kms_calls += 1
        self._notes.kms_seconds += time.perf_counter() - self._began
        if isinstance(error, TemporarilyUnavailable | Misconfigured):
            self._notes.kms_failures += 1


def frames(error: BaseException, *, of_author: bool = False) -> str:
    """Return the frames of an exception, the innermost first: `app.py:12 in update < …`.

    Args:
        error: the exception.
        of_author: True to begin with the innermost frame outside of this package, if there is one. The author has to
            change that line, although this package raised the exception.
    """
    import traceback  # noqa: PLC0415 - only for a crash

    summary = traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__), lookup_lines=False)
    calls = list(reversed(summary))
    if of_author:
        without_ours = list(dropwhile(lambda call: call.filename.startswith(PACKAGE), calls))
        calls = without_ours or calls
    lines = [f"{call.filename}:{call.lineno} in {call.name}" for call in calls]
    omitted = len(lines) - 2 * EACH_END
    if omitted > 0:
        lines = [*lines[:EACH_END], f"{omitted} more", *lines[-EACH_END:]]
    return " < ".join(lines)
