"""One log line for each request: its facts are collected here, and `observability.lines` writes it.

    code learns a fact       current().handler = "book_flight"
    the response is ready    fields(notes) == {"handler": "book_flight", "outcome": "complete", "status": 200, …}

A line holds codes, this package's names, sizes and times. It never holds an argument, answer, state or principal.
"""

from __future__ import annotations

import os
import re
import time
from contextvars import ContextVar
from itertools import dropwhile
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import DeveloperError, Misconfigured, TemporarilyUnavailable
from mcp_functions.protocol.json_writer import base64url

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CRASHED = "crashed"  # the outcome if an author's function raised an unexpected exception, or broke a rule
FAILED = "failed"  # the outcome if the server or AWS failed
SEVERITY = {"refused": 1, FAILED: 2, CRASHED: 3}  # all other outcomes are successes, and count as 0
# The folder of this package, with a slash at its end: paths of our own frames begin with it.
PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")  # noqa: PTH118, PTH120 - no pathlib for a path
UNKNOWN = "unknown"  # replaces a method or name that this server does not have
# W3C Trace Context, "traceparent Header": version ff is invalid, and so is an id of zeros.
TRACEPARENT = r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
XRAY = r"Root=(1-[0-9a-f]{8}-[0-9a-f]{24})\b"  # the trace id in TRACED
TRACED = "_X_AMZN_TRACE_ID"  # the environment variable that Lambda sets for each invocation
# The ids of API Gateway and Lambda: their characters, and the length of the longest.
ID_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_=+/.-")
LONGEST_ID = 64
DIGEST_BYTES = 12  # enough to tell conversations apart in a log
EACH_END = 7  # a crash is logged with this number of innermost and of outermost frames
# These attributes of the notes become fields of the line without a change.
LOGGED = (
    "method", "revision", "handler", "round", "answered_by", "outcome", "status", "code", "reason", "caller",
    "request_bytes", "response_bytes", "kms_calls", "cold_start",
)  # fmt: skip


class Notes:
    """The facts about one request. A fact that is unknown (None) is left out of its line."""

    # A method of the specification or "unknown"; "metadata" or "preflight" for requests without JSON-RPC.
    method: str | None = None
    revision: str | None = None  # the client's revision, if that is not 2026-07-28
    handler: str | None = None  # a name in the catalog or "unknown"; None if the request has no name
    round: int | None = None  # the number of this request in its conversation, from 1
    flow: str | None = None  # the conversation's id, which is logged as a digest
    caller: str | None = None  # the caller's pseudonym, if the deployment logs callers
    # The caller (`binding.caller_id`). Its states whose key KMS cannot decrypt use up its budget. It is not logged.
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
        """Set the outcome, unless an earlier one is worse: a client of 2025 may send several messages in a batch."""
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


# The notes on the request that is served; `http.outcomes.run` sets them. Each thread has its own.
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


def trace_id(traceparent: object) -> str | None:
    """Return the trace id of a client's `traceparent`, or None if that is not valid."""
    if not isinstance(traceparent, str):
        return None
    found = re.fullmatch(TRACEPARENT, traceparent)
    return found[1] if found else None


def xray_trace_id() -> str | None:
    """Return the trace id of X-Ray, if Lambda traces this request."""
    found = re.search(XRAY, os.environ.get(TRACED, ""))
    return found[1] if found else None


def is_cold(*, first: bool) -> bool:
    """Return whether a client waited for the start of this environment.

    Args:
        first: True for the first request of the environment. It does not wait if the environment was provisioned.
    """
    return first and os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") != "provisioned-concurrency"


def correlation(identifier: object) -> str | None:
    """Return an id, or None if it does not have the form of one: a client could have put a secret there."""
    if isinstance(identifier, str) and 0 < len(identifier) <= LONGEST_ID and ID_CHARACTERS.issuperset(identifier):
        return identifier
    return None


def digest(name: str) -> str:
    """Return a digest of a secret name, by which log lines can be joined."""
    import hashlib  # noqa: PLC0415 - imported already where there are conversations

    hashed = hashlib.sha256(name.encode("utf-8", "surrogatepass"))
    return base64url(hashed.digest()[:DIGEST_BYTES])


def size(text: str) -> int:
    """Return the number of bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


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


def milliseconds(seconds: float) -> float:
    """Return rounded milliseconds for a log line."""
    return round(seconds * 1000, 2)


def fields(notes: Notes) -> Mapping[str, Any]:
    """Return the fields of a log line, without unknown ones (None)."""
    known = {name: getattr(notes, name) for name in LOGGED}
    known |= {
        # A line has these three only if they are not False or 0.
        "tool_error": notes.tool_error or None,
        "misconfigured": notes.misconfigured or None,
        "kms_failures": notes.kms_failures or None,
        "flow": None if notes.flow is None else digest(notes.flow),
        "jti": None if notes.jti is None else base64url(notes.jti),
        "duration_ms": milliseconds(notes.seconds),
        "forward_ms": None if notes.forward_seconds is None else milliseconds(notes.forward_seconds),
        "kms_ms": milliseconds(notes.kms_seconds),
        "correlation_id": correlation(notes.correlation_id),
        "request_id": correlation(notes.request_id),
        "trace_id": notes.trace_id or xray_trace_id(),
    }
    return {key: value for key, value in known.items() if value is not None}
