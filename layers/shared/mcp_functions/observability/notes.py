"""What becomes known of one request while it is answered: written down where it is learnt, told once at the end."""

from __future__ import annotations

import os
import re
import time
from contextvars import ContextVar
from itertools import dropwhile
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.json_writer import base64url

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CRASHED, FAILED = "crashed", "failed"
WORSE = {"refused": 1, FAILED: 2, CRASHED: 3}
PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")  # noqa: PTH118, PTH120 - no pathlib for a path
UNKNOWN = "unknown"  # stands for every name and method that is the client's own invention
# "version "-" trace-id "-" parent-id "-" trace-flags", lower case; ff is no version, and neither id is all zeros (W3C)
TRACEPARENT = r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
XRAY = r"Root=(1-[0-9a-f]{8}-[0-9a-f]{24})\b"
# Of which API Gateway and Lambda make their ids, and how long one may be.
ID_LETTERS, LONGEST_ID = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_=+/.-", 64
EACH_END = 7  # frames of a crash that are told: so many of the innermost and of the outermost
TRACED = "_X_AMZN_TRACE_ID"  # Lambda sets it anew for each invocation


class Notes:
    """All that is told of a request.

    Attributes:
        method: of the specification, else "unknown"; "metadata" or "preflight" if HTTP alone decided; or None.
        revision: of a client that is not of 2026-07-28.
        handler: its name in the catalog, else "unknown"; None for requests that name none.
        round: of the conversation, from 1.
        flow: the conversation's name, which is told as a digest.
        payer: who is charged for unwraps (`request_state.caller_id`); never told.
        jti: names the presented state, once that proved authentic; told as base64url.
        outcome: complete, input_required, shed, forwarded, refused, failed or crashed.
        code: of the JSON-RPC error.
        reason: a constant of ours, or of AWS; of a crash the exception's type, or the rule that was broken.
        place: the frames of an exception that nobody expected.
        raised: that exception. Its text may quote anything: only who listens on the author's machine reads it.
        misconfigured: whether the operator has to act.
        forward_seconds: that the endpoint waited for the function behind it.
        correlation_id: API Gateway's, `request_id` Lambda's, `traceparent` the client's: as they came, and only told
            if they look like it.

    """

    method: str | None = None
    revision: str | None = None
    handler: str | None = None
    round: int | None = None
    flow: str | None = None
    payer: str = ""
    jti: bytes | None = None
    outcome: str = ""
    status: int = 500
    code: int | None = None
    reason: str | None = None
    place: str | None = None
    raised: BaseException | None = None
    tool_error: bool = False
    misconfigured: bool = False
    cold_start: bool = False
    request_bytes: int = 0
    response_bytes: int = 0
    seconds: float = 0.0
    kms_calls: int = 0
    kms_failures: int = 0
    kms_seconds: float = 0.0
    forward_seconds: float | None = None
    correlation_id: object = None
    request_id: object = None
    traceparent: object = None

    @classmethod
    def of(cls, **known: object) -> Notes:
        """Begin with what is known."""
        notes = cls()
        for name, value in known.items():
            setattr(notes, name, value)
        return notes

    def conclude(self, outcome: str, reason: str | None = None) -> None:
        """Say how the request ended; of a batch, the worst counts."""
        if WORSE.get(outcome, 0) >= WORSE.get(self.outcome, 0):
            self.outcome, self.reason = outcome, reason or self.reason

    def crash(self, error: BaseException) -> None:
        """Note what nobody expected: its type, or the rule that it names, and its frames; never its text."""
        broken = isinstance(error, DeveloperError)
        self.outcome, self.raised, self.place = CRASHED, error, frames(error, of_author=broken)
        self.reason = error.rule if isinstance(error, DeveloperError) else type(error).__name__


_current: ContextVar[Notes | None] = ContextVar("notes", default=None)


def current() -> Notes:
    """Return the notes on the request at hand; outside of one, notes that nobody will read."""
    return _current.get() or Notes()


# Called with the notes on each request of this thread that is answered, where an author listens: in tests, or locally.
listener: ContextVar[Callable[[Notes], object] | None] = ContextVar("listener", default=None)

take = _current.set  # notes on the request at hand; returns what `put_back` takes when it is answered
put_back = _current.reset


class kms:  # noqa: N801 - a context manager that reads as a word
    """Counts one call of KMS, and how long it takes."""

    __slots__ = ("_began", "_notes")

    def __enter__(self) -> None:
        """Begin."""
        self._notes, self._began = current(), time.perf_counter()

    def __exit__(self, *_error: object) -> None:
        """End."""
        self._notes.kms_calls += 1
        self._notes.kms_seconds += time.perf_counter() - self._began


def trace(traceparent: object) -> str | None:
    """Find the id under which a request is traced: the client's `_meta.traceparent`, if it is one, or else X-Ray's."""
    if isinstance(traceparent, str) and (found := re.fullmatch(TRACEPARENT, traceparent)):
        return found[1]
    found = re.search(XRAY, os.environ.get(TRACED, ""))
    return found[1] if found else None


def is_cold(*, first: bool) -> bool:
    """Tell whether somebody waited for this environment, if this is its first request."""
    return first and os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") != "provisioned-concurrency"


def correlation(identifier: object) -> str | None:
    """Take an id as it is, if it looks like one."""
    if isinstance(identifier, str) and 0 < len(identifier) <= LONGEST_ID and not identifier.strip(ID_LETTERS):
        return identifier
    return None


def digest(name: str) -> str:
    """Name something without saying its name: equal names have equal digests."""
    import hashlib  # noqa: PLC0415 - who has conversations has it already

    return base64url(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:12])


def size(text: str) -> int:
    """Count the bytes of a text as UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def frames(error: BaseException, *, of_author: bool = False) -> str:
    """Say where an exception came from, the innermost frame first: `app.py:12 in update < …`.

    Args:
        error: that was raised.
        of_author: whether to begin with the innermost frame that is no code of this package, if there is one.

    """
    import traceback  # noqa: PLC0415 - only for a crash

    summary = traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__), lookup_lines=False)
    calls = list(reversed(summary))
    if of_author:
        calls = list(dropwhile(lambda call: call.filename.startswith(PACKAGE), calls)) or calls
    told = [f"{call.filename}:{call.lineno} in {call.name}" for call in calls]
    more = len(told) - 2 * EACH_END
    if more > 0:
        told = [*told[:EACH_END], f"{more} more", *told[-EACH_END:]]
    return " < ".join(told)


def failed(notes: Notes) -> bool:
    """Tell whether the server is at fault. The HTTP status does not say: a tool that crashed is answered with 200."""
    return notes.outcome in {CRASHED, FAILED}


def milliseconds(seconds: float) -> float:
    """Write seconds as a person reads them in a log."""
    return round(seconds * 1000, 2) if seconds else 0.0


def fields(notes: Notes) -> Mapping[str, Any]:
    """Write notes as the keys of a line; what is not known is not there."""
    forward = None if notes.forward_seconds is None else milliseconds(notes.forward_seconds)
    written = {
        "method": notes.method,
        "revision": notes.revision,
        "handler": notes.handler,
        "round": notes.round,
        "outcome": notes.outcome,
        "status": notes.status,
        "code": notes.code,
        "reason": notes.reason,
        "tool_error": notes.tool_error or None,
        "misconfigured": notes.misconfigured or None,
        "flow": None if notes.flow is None else digest(notes.flow),
        "jti": None if notes.jti is None else base64url(notes.jti),
        "request_bytes": notes.request_bytes,
        "response_bytes": notes.response_bytes,
        "duration_ms": milliseconds(notes.seconds),
        "forward_ms": forward,
        "kms_calls": notes.kms_calls,
        "kms_failures": notes.kms_failures or None,
        "kms_ms": milliseconds(notes.kms_seconds),
        "cold_start": notes.cold_start,
        "correlation_id": correlation(notes.correlation_id),
        "request_id": correlation(notes.request_id),
        "trace_id": trace(notes.traceparent),
    }
    return {key: value for key, value in written.items() if value is not None}
