"""The notes on a request: code that learns a fact about the request writes it there, for the request's one log line.

    current().handler = "book_flight"           `current()` returns the notes on the request that is served
    current().conclude("refused", "expired")

`http.request_log` begins the notes, and `observability.lines` writes the line from them. The line holds codes, this
package's names, sizes and times. It never holds an argument, answer, state or principal.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import dropwhile
from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import Crash, DeveloperError, McpError, Misconfigured, TemporarilyUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ERRORS = frozenset({"refused", "failed", "crashed"})  # these outcomes; all others are successes
UNKNOWN = "unknown"  # in place of a method or a name that this server does not have
PACKAGE = __file__.removesuffix("observability/__init__.py")  # its folder, with a slash at its end
FRAMES_EACH_END = 7  # the line of a crash has so many innermost frames, and so many outermost ones


class Notes:
    """The facts about one request. A fact that is unknown (None) is left out of its line.

    The outcome is one of these:

        complete           a result
        input_required     a question
        shed               the function ran out of time, and goes on when the client sends the next request
        forwarded          the response of another function
        refused            an error that the request caused
        failed             an error of the server or of AWS
        crashed            an unexpected exception of an author's function, or a broken rule
    """

    # The request.
    method: str | None = None  # of MCP, "unknown", or another request's name, such as "metadata"
    revision: str | None = None  # the client's revision, if that is not 2026-07-28
    handler: str | None = None  # a name in the catalog or "unknown"; None without a name
    request_bytes: int = 0
    cold_start: bool = False  # True if the client waited for the start of this environment
    correlation_id: object = None  # API Gateway's id of the request; unchecked
    trace_id: str | None = None  # from the client's `traceparent`

    # The conversation.
    round: int | None = None  # the number of this request in its conversation, from 1
    flow: str | None = None  # the conversation's id, which is logged as a digest
    jti: bytes | None = None  # the id of the client's state, once that proved authentic
    answered_by: str | None = None  # who gave the answers of this request; None if it has none

    # The caller.
    caller: str | None = None  # the pseudonym (`http.callers`), if the deployment logs callers
    caller_id: str = ""  # never logged: `seal` limits the forged states of a caller by it

    # The response.
    outcome: str = ""
    status: int = 500
    response_bytes: int = 0
    seconds: float = 0.0
    tool_error: bool = False

    # The error.
    code: int | None = None  # the code of JSON-RPC
    reason: str | None = None  # a constant, the type of an exception, or the broken rule
    misconfigured: bool = False  # True if the operator has to act
    place: str | None = None  # the frames of an unexpected exception
    raised: BaseException | None = None  # for listeners alone: its text may quote secrets

    # Calls of AWS.
    kms_calls: int = 0
    kms_failures: int = 0
    kms_seconds: float = 0.0
    forward_seconds: float | None = None  # how long the front door waited for the function

    def conclude(self, outcome: str, reason: str | None = None) -> None:
        """Set the outcome and its reason. An earlier error stays: the result that describes a crash is no success."""
        if self.outcome not in ERRORS:
            self.outcome = outcome
            if reason:
                self.reason = reason

    def add_error(self, error: BaseException) -> None:
        """Set the outcome to an error: one of this package (McpError), or an unexpected exception."""
        if isinstance(error, McpError) and not isinstance(error, Crash):
            self.conclude("failed" if error.is_server_fault else "refused", error.reason)
            self.code = error.code
            self.misconfigured = isinstance(error, Misconfigured)
        else:
            self.add_crash(error.cause if isinstance(error, Crash) else error)
            self.code = Crash.code

    def add_crash(self, error: BaseException) -> None:
        """Set the outcome to an unexpected exception: its type or broken rule, and its frames, but not its text."""
        self.outcome = "crashed"
        self.raised = error
        self.handler = self.handler or UNKNOWN  # CloudWatch's metric counts lines with a handler
        if isinstance(error, DeveloperError):
            self.reason = error.rule
            self.place = frames(error, of_author=True)
        else:
            self.reason = type(error).__name__
            self.place = frames(error)


# The notes on the request that is served; `http.request_log` sets them. Each thread has its own.
request_notes: ContextVar[Notes | None] = ContextVar("notes", default=None)


def current() -> Notes:
    """Return the notes on the current request; outside of a request, new notes that nobody logs."""
    return request_notes.get() or Notes()


# In tests and in the local harness: called with the notes on each answered request of this thread.
listener: ContextVar[Callable[[Notes], object] | None] = ContextVar("listener", default=None)

# On the author's machine: called with `progress` and `total` (None if unknown) of each report of progress.
progress_listener: ContextVar[Callable[[float, float | None], object] | None] = ContextVar("progress", default=None)


@contextmanager
def kms_call() -> Iterator[None]:
    """Note one call of KMS: how long the block took, and whether KMS failed.

    InvalidRequestState is no failure of KMS: KMS says that a state's key cannot be decrypted, so the state is bad.
    """
    notes = current()
    began = time.perf_counter()
    try:
        yield
    except (TemporarilyUnavailable, Misconfigured):
        notes.kms_failures += 1
        raise
    finally:
        notes.kms_calls += 1
        notes.kms_seconds += time.perf_counter() - began


def frames(error: BaseException, *, of_author: bool = False) -> str:
    """Return the frames of an exception, the innermost first: `app.py:12 in update < …`.

    Args:
        error: the exception.
        of_author: True to begin with the innermost frame outside of this package, if there is one. The author has to
            change that line, although this package raised the exception.
    """
    import traceback

    summary = traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__), lookup_lines=False)
    innermost_first = list(reversed(summary))
    if of_author:
        without_ours = list(dropwhile(lambda frame: frame.filename.startswith(PACKAGE), innermost_first))
        innermost_first = without_ours or innermost_first
    written = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in innermost_first]
    omitted = len(written) - 2 * FRAMES_EACH_END
    if omitted > 0:
        written = [*written[:FRAMES_EACH_END], f"{omitted} more", *written[-FRAMES_EACH_END:]]
    return " < ".join(written)
