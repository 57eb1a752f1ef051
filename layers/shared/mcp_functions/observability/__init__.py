"""The notes on a request: code that learns a fact about the request writes it there, for the request's one log line.

    current().handler = "book_flight"           `current()` returns the notes on the request that is served
    current().conclude("refused", "expired")

`http.request_log` begins the notes, and `observability.lines` writes the line from them. The line holds codes, this
package's names, sizes and times. It never holds an argument, answer, state or principal.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from itertools import dropwhile
from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import Crash, DeveloperError, McpError, Misconfigured, TemporarilyUnavailable

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
    """The facts about one request. A fact that is unknown (None) is left out of its line.

    The outcome is one of these:

        complete           a result
        input_required     a question
        shed               the function ran out of time and asks nothing: the client only sends the next request
        forwarded          the response of another function
        refused            an error that the request caused
        failed             an error of the server or of AWS
        crashed            an unexpected exception of an author's function, or a broken rule
    """

    # The request. `method` is one of the specification or "unknown", or "metadata" or "preflight" without JSON-RPC.
    method: str | None = None
    revision: str | None = None  # the client's revision, if that is not 2026-07-28
    handler: str | None = None  # a name in the catalog or "unknown"; None if the request has no name
    request_bytes: int = 0
    cold_start: bool = False  # True if the client waited for the start of this environment
    # The ids of the request: of API Gateway and of Lambda, unchecked, and of the trace that the client names.
    correlation_id: object = None
    request_id: object = None
    trace_id: str | None = None

    # The conversation.
    round: int | None = None  # the number of this request in its conversation, from 1
    flow: str | None = None  # the conversation's id, which is logged as a digest
    jti: bytes | None = None  # the id of the client's state, once that proved authentic; logged as base64url
    answered_by: str | None = None  # who gave the answers of this request; None if it has none

    # The caller. Only the pseudonym is logged. A caller may send few states that KMS cannot decrypt, and the id (of
    # `binding.caller_id`) tells whose they are.
    caller: str | None = None  # the caller's pseudonym, if the deployment logs callers
    caller_id: str = ""

    # The response.
    outcome: str = ""
    status: int = 500
    response_bytes: int = 0
    seconds: float = 0.0
    tool_error: bool = False

    # The error.
    code: int | None = None  # the code of JSON-RPC
    # A constant of this package or of AWS; for a crash, the exception's type or the broken rule.
    reason: str | None = None
    misconfigured: bool = False  # True if the operator has to act
    place: str | None = None  # the frames of an unexpected exception
    # The unexpected exception. Its text may quote secrets: only a listener on the author's machine reads it.
    raised: BaseException | None = None

    # Calls of AWS.
    kms_calls: int = 0
    kms_failures: int = 0
    kms_seconds: float = 0.0
    forward_seconds: float | None = None  # how long the endpoint waited for the function behind it

    def conclude(self, outcome: str, reason: str | None = None) -> None:
        """Set the outcome and its reason, unless an earlier outcome is worse.

        There are several where a client of the revision 2025-03-26 sends a batch of messages in one request.
        """
        if SEVERITY.get(outcome, 0) >= SEVERITY.get(self.outcome, 0):
            self.outcome = outcome
            if reason:
                self.reason = reason

    def add_error(self, error: BaseException) -> None:
        """Set the outcome to an error: the reason of one that the client gets, or an unexpected exception."""
        if isinstance(error, McpError) and not isinstance(error, Crash):
            self.conclude(FAILED if error.is_server_fault else "refused", error.reason)
            self.code = error.code
            self.misconfigured = isinstance(error, Misconfigured)
        else:
            self.add_crash(error.cause if isinstance(error, Crash) else error)
            self.code = Crash.code

    def add_crash(self, error: BaseException) -> None:
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


# The notes on the request that is served; `http.request_log` sets them. Each thread has its own.
request_notes: ContextVar[Notes | None] = ContextVar("notes", default=None)


def current() -> Notes:
    """Return the notes on the current request. Outside of a request, return new notes, which are not logged."""
    return request_notes.get() or Notes()


# Called with the notes on each answered request of this thread, in tests and in the harness.
listener: ContextVar[Callable[[Notes], object] | None] = ContextVar("listener", default=None)

# Called with `progress` and `total` of each report of progress, on the author's machine.
progress_listener: ContextVar[Callable[[float, float | None], object] | None] = ContextVar("progress", default=None)


class KmsTimer:
    """A context manager that counts one call of KMS, its duration, and whether KMS failed.

    KMS did not fail if it says that it cannot decrypt a token's key (InvalidRequestState): that token is bad.
    """

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
