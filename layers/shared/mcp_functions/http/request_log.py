"""Begins the notes on a request, and writes the request's log line from them.

    with RequestLog(logger).request(context, http) as notes:
        response = respond(http)            # any code that this calls may add notes: `observability.current()`
        note_response(notes, response)

The line is written at the end of the `with`. Exceptions become responses inside it (`http.gateway`).
"""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING

from mcp_functions import observability
from mcp_functions.observability import lines

if TYPE_CHECKING:
    from mcp_functions.http.events import HttpRequest, LambdaContext, Response
    from mcp_functions.observability import Notes
    from mcp_functions.observability.lines import Logger

# W3C Trace Context, "traceparent Header": version ff is invalid, and so is an id of zeros.
TRACEPARENT = r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
BAD_REQUEST = 400  # the lowest HTTP status of an error


class RequestLog:
    """Writes one line for each request of a Lambda function."""

    def __init__(self, logger: Logger | None) -> None:
        """Keep the author's logger; None if the lines go to this package's own logger."""
        self.logger = logger
        self._is_first = True  # True until the first request of this environment

    def request(self, context: LambdaContext, http: HttpRequest | None = None) -> LoggedRequest:
        """Begin the notes on a request. `with` makes them the current ones, and writes their line at its end.

        Args:
            context: the context that Lambda passes.
            http: the HTTP request; None for an order to continue a task.
        """
        notes = observability.Notes()
        notes.cold_start = _is_cold(first=self._is_first)
        notes.request_id = getattr(context, "aws_request_id", None)
        self._is_first = False
        if http:
            note_request(notes, http)
        return LoggedRequest(notes, self.logger)


class LoggedRequest:
    """A request while it is served: a context manager that makes its notes the current ones (`observability`)."""

    def __init__(self, notes: Notes, logger: Logger | None) -> None:
        """Keep the notes, and the author's logger for their line."""
        self._notes = notes
        self._logger = logger

    def __enter__(self) -> Notes:
        """Begin to serve the request. The author's own lines get its id, too."""
        correlation_id = lines.correlation(self._notes.correlation_id)
        self._earlier_id = lines.set_correlation_id(self._logger, correlation_id)
        self._earlier_notes = observability.request_notes.set(self._notes)
        self._started = time.perf_counter()
        return self._notes

    def __exit__(self, _type: object, error: object, _traceback: object) -> None:
        """Write the line, unless the developer's Ctrl-C ended the request: that has no response.

        Every other exception was turned into a response inside the `with`.
        """
        self._notes.seconds = time.perf_counter() - self._started
        observability.request_notes.reset(self._earlier_notes)
        if error is None:
            lines.write_line(self._notes, self._logger)
            listener = observability.listener.get()
            if listener:
                listener(self._notes)
        lines.set_correlation_id(self._logger, self._earlier_id)


def note_request(notes: Notes, http: HttpRequest) -> None:
    """Note the gateway's id of a request, its trace, and the size of its body without base64."""
    notes.correlation_id = http.context.get("requestId")
    notes.trace_id = trace_id(http.headers.get("traceparent"))
    if http.is_base64:
        notes.request_bytes = len(http.body) * 3 // 4  # four characters of base64 are three bytes
    else:
        notes.request_bytes = _size(http.body)


def note_response(notes: Notes, response: Response) -> None:
    """Note the status and size of a response, and its outcome if that is not noted yet."""
    notes.status = response["statusCode"]
    notes.response_bytes = _size(response["body"])
    if not notes.outcome:
        notes.outcome = "refused" if notes.status >= BAD_REQUEST else "complete"


def trace_id(traceparent: object) -> str | None:
    """Return the trace id of a client's `traceparent`, or None if that is not valid."""
    if not isinstance(traceparent, str):
        return None
    found = re.fullmatch(TRACEPARENT, traceparent)
    return found[1] if found else None


def _is_cold(*, first: bool) -> bool:
    """Return whether a client waited for the start of this environment.

    Args:
        first: True for the first request of the environment. It does not wait if the environment was provisioned.
    """
    return first and os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") != "provisioned-concurrency"


def _size(text: str) -> int:
    """Return the number of bytes of a text in UTF-8."""
    if text.isascii():
        return len(text)  # without a copy of the text
    return len(text.encode("utf-8", "surrogatepass"))  # a header or a body may hold half of a surrogate pair
