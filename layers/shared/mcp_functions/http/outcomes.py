"""How a request came in and how it ended, in the notes for its log line.

Lambda's runtime would log the text of an exception, which may quote arguments or answers. So `run` turns every
unexpected exception into a `Crash`: the client gets -32603, and the log gets the exception's type and frames.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from mcp_functions import observability
from mcp_functions.protocol.errors import Crash, InternalError, McpError, Misconfigured, is_ctrl_c

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.lambda_types import LambdaContext, Response
    from mcp_functions.observability import Logger, Notes

T = TypeVar("T")

BAD_REQUEST = 400


class RequestLog:
    """Writes one line for each request of a Lambda function."""

    def __init__(self, logger: Logger | None) -> None:
        """Keep the author's logger; None if the lines go to this package's own logger."""
        self.logger = logger
        self._is_cold = True

    def respond(self, http: HttpRequest, context: LambdaContext, answer: Callable[[Notes], Response]) -> Response:
        """Return the response that `answer` makes, and write the line of its request."""
        notes = self.new_notes(context)
        note_request(notes, http)
        with observability.correlated(self.logger, notes):
            response = answer(notes)
            note_response(notes, response)
            self.write(notes)
        return response

    def new_notes(self, context: LambdaContext) -> Notes:
        """Return the notes of a new request."""
        notes = observability.Notes()
        notes.cold_start = observability.is_cold(first=self._is_cold)
        notes.request_id = getattr(context, "aws_request_id", None)
        self._is_cold = False
        return notes

    def write(self, notes: Notes) -> None:
        """Write the line of a request."""
        with suppress(Exception):  # a log line that fails must not cost the client its response
            observability.write_line(notes, self.logger)
        listener = observability.listener.get()
        if listener:
            listener(notes)


def run(notes: Notes, action: Callable[[], T]) -> T:
    """Run an action, with `notes` as the current notes, and note how long it took.

    Raises:
        McpError: as the action raised it, or a `Crash` for any other exception.
    """
    previous = observability.set_current(notes)
    started = time.perf_counter()
    try:
        return action()
    except McpError:
        raise
    except BaseException as error:
        if is_ctrl_c(error):
            raise
        raise Crash(InternalError.sentence, error) from None
    finally:
        notes.seconds = time.perf_counter() - started
        observability.restore_current(previous)


def note_request(notes: Notes, http: HttpRequest) -> None:
    """Note the gateway's id of a request, its trace, and the size of its body without base64."""
    notes.correlation_id = http.context.get("requestId")
    notes.trace_id = observability.trace_id(http.headers.get("traceparent"))
    notes.request_bytes = len(http.body) * 3 // 4 if http.is_base64 else observability.size(http.body)


def note_response(notes: Notes, response: Response) -> None:
    """Note the status and size of a response, and its outcome if that is not noted yet."""
    notes.status = response["statusCode"]
    notes.response_bytes = observability.size(response["body"])
    if not notes.outcome:
        notes.outcome = "refused" if notes.status >= BAD_REQUEST else "complete"


def note_error(notes: Notes, error: McpError) -> None:
    """Note why a request was refused, or has failed."""
    if isinstance(error, Crash):
        note_crash(notes, error.cause)
        return
    notes.conclude("failed" if error.is_server_fault else "refused", error.reason)
    notes.code = error.code
    notes.misconfigured = isinstance(error, Misconfigured)


def note_crash(notes: Notes, error: BaseException) -> None:
    """Note an unexpected exception, without its text."""
    notes.crash(error)
    notes.code = InternalError.code
