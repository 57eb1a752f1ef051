"""The log line of a request. While the request is served, code collects facts for the line: the notes.

    with RequestLog(logger).taking_notes(http) as notes:
        response = respond(http)            # any code that this calls may add notes: `observability.current()`
        note_response(notes, response)
                                            # the end of the `with` writes the line

Exceptions become responses inside the `with` (`http.gateway`), so every response has its line.
"""

from __future__ import annotations

import os
import re
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.http import events
from mcp_functions.observability import lines
from mcp_functions.protocol.constants import CALL_METHODS, METHODS
from mcp_functions.protocol.errors import Misconfigured, is_on_lambda

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.observability import Notes
    from mcp_functions.observability.lines import Logger
    from mcp_functions.protocol.event_types import LambdaContext, Response

FIRST_ERROR_STATUS = 400  # HTTP statuses from this one on are errors


class RequestLog:
    """Writes one line for each request of a Lambda function."""

    def __init__(self, logger: Logger | None) -> None:
        """Keep the author's logger; None if the lines go to this package's own logger."""
        self.logger = logger
        self._is_first_request = True  # of this environment

    @contextmanager
    def taking_notes(self, http: HttpRequest | None = None) -> Iterator[Notes]:
        """Begin the notes on a request, and write their line at the end of the `with`.

        An order to continue a task has no HTTP request. Only the developer's Ctrl-C ends the `with` with an exception.
        Then there is no response, and no line.
        """
        notes = observability.Notes()
        if self._is_first_request:
            # The client waited for the start of this environment, unless Lambda had started it in advance.
            notes.cold_start = os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") != "provisioned-concurrency"
            self._is_first_request = False
        if http:
            notes.correlation_id = http.request_context.get("requestId")
            notes.trace_id = trace_id(http.headers.get("traceparent"))
            # Four characters of base64 are three bytes.
            notes.request_bytes = len(http.body) * 3 // 4 if http.is_base64 else _size(http.body)
        # The other lines of the author's logger get the id of the request, too.
        earlier_id = lines.replace_correlation_id(self.logger, lines.checked_id(notes.correlation_id))
        earlier_notes = observability.request_notes.set(notes)
        started = time.perf_counter()
        try:
            yield notes
            notes.seconds = time.perf_counter() - started
            lines.write_line(notes, self.logger)
            listener = observability.listener.get()  # set in tests and in the local harness
            if listener:
                listener(notes)
        finally:
            observability.request_notes.reset(earlier_notes)
            lines.replace_correlation_id(self.logger, earlier_id)

    def read(self, event: Mapping[str, Any], context: LambdaContext, now: float) -> HttpRequest:
        """Read an event as an HTTP request. For any other event, write a line that raises the operator's alarm.

        The invocation fails, so that a queue keeps its messages, and a service tries again.

        Raises:
            ValueError: the event is not an HTTP request. On Lambda, another exception with the same text.
        """
        try:
            return events.read(event, context, now)
        except ValueError as error:
            text = str(error)
        with self.taking_notes() as notes:
            notes.status = Misconfigured.status
            notes.add_error(Misconfigured(text))
        raise _failure(text)


def _failure(text: str) -> Exception:
    """Make the exception that fails an invocation. Lambda's runtime logs its own class without frames, and no other."""
    runtime = sys.modules.get("awslambdaric.lambda_runtime_exception")
    if runtime is None or not is_on_lambda():
        return ValueError(text)
    failure: Exception = runtime.FaultException("NotHttp", text)
    return failure


def note_method(notes: Notes, method: str) -> None:
    """Note the method of a message. The handler is "unknown" until one with the requested name is found."""
    notes.method = method if method in METHODS else observability.UNKNOWN
    if method in CALL_METHODS or method == "completion/complete":
        notes.handler = observability.UNKNOWN


def note_response(notes: Notes, response: Response) -> None:
    """Note the status and size of a response, and its outcome if that is not noted yet."""
    notes.status = response["statusCode"]
    notes.response_bytes = _size(response["body"])
    if not notes.outcome:
        notes.outcome = "refused" if notes.status >= FIRST_ERROR_STATUS else "complete"


def trace_id(traceparent: object) -> str | None:
    """Return the trace id of a client's `traceparent` (W3C Trace Context), or None if that is not valid."""
    if not isinstance(traceparent, str):
        return None
    pattern = r"""(?x)                          # the pattern may have spaces and comments
        (?!ff)    [0-9a-f]{2}    -              # version; "ff" is invalid
        (?!0{32}) (?P<trace_id> [0-9a-f]{32}) - # zeros are invalid
        (?!0{16}) [0-9a-f]{16}   -              # parent id; zeros are invalid
        [0-9a-f]{2}                             # flags
    """
    found = re.fullmatch(pattern, traceparent)
    return found["trace_id"] if found else None


def _size(text: str) -> int:
    """Return the number of bytes of a text in UTF-8."""
    if text.isascii():
        return len(text)  # without a copy of the text
    return len(text.encode("utf-8", "surrogatepass"))  # the text may hold half of a surrogate pair
