"""How a request came in and how it ended, in the notes for its log line (`observability.Notes`).

    new_notes -> note_request -> run(the exchange) -> note_error or note_crash -> note_response -> write

Lambda's runtime would log the text of an exception, which may quote arguments or answers. So `run` turns every
unexpected exception into a `Crash`: the client gets -32603, and the log gets the exception's type and frames.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from mcp_functions import observability
from mcp_functions.observability import lines
from mcp_functions.protocol.errors import Crash, InternalError, McpError, Misconfigured, is_ctrl_c

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.http.events import HttpRequest, LambdaContext, Response
    from mcp_functions.observability import Notes
    from mcp_functions.observability.lines import Logger

T = TypeVar("T")

BAD_REQUEST = 400  # the lowest HTTP status of an error


class RequestLog:
    """Writes one line for each request of a Lambda function."""

    def __init__(self, logger: Logger | None) -> None:
        """Keep the author's logger; None if the lines go to this package's own logger."""
        self.logger = logger
        self._is_first = True  # True until the first request of this environment

    def respond(
        self,
        http: HttpRequest,
        context: LambdaContext,
        answer: Callable[[], Response],
        error_response: Callable[[McpError], Response],
    ) -> Response:
        """Respond to a request, and write its line.

        Args:
            http: the request.
            context: the context that Lambda passes.
            answer: makes the response.
            error_response: makes the response if `answer` raised.
        """
        notes = self.new_notes(context)
        note_request(notes, http)
        # The author's own lines about this request get its id; the earlier id is restored at the end.
        earlier_id = lines.set_correlation_id(self.logger, observability.correlation(notes.correlation_id))
        response = run(notes, answer)
        if isinstance(response, McpError):
            response = error_response(response)
        note_response(notes, response)
        self.write(notes)
        lines.set_correlation_id(self.logger, earlier_id)
        return response

    def new_notes(self, context: LambdaContext) -> Notes:
        """Return the notes of a new request."""
        notes = observability.Notes()
        notes.cold_start = observability.is_cold(first=self._is_first)
        notes.request_id = getattr(context, "aws_request_id", None)
        self._is_first = False
        return notes

    def write(self, notes: Notes) -> None:
        """Write the line of a request."""
        lines.write_line(notes, self.logger)
        listener = observability.listener.get()
        if listener:
            listener(notes)


def run(notes: Notes, action: Callable[[], T]) -> T | McpError:
    """Run an action with `notes` as the current notes, and note its duration and its error.

    Returns:
        The result of the action, or its error: an exception of another kind becomes a `Crash`.
    """
    previous = observability.request_notes.set(notes)
    started = time.perf_counter()
    try:
        return action()
    except McpError as error:
        note_error(notes, error)
        return error
    except BaseException as error:
        if is_ctrl_c(error):
            raise
        note_crash(notes, error)  # also for SystemExit: an author's `sys.exit` must not end the environment
        return Crash(InternalError.default_message, error)
    finally:
        notes.seconds = time.perf_counter() - started
        observability.request_notes.reset(previous)


def note_request(notes: Notes, http: HttpRequest) -> None:
    """Note the gateway's id of a request, its trace, and the size of its body without base64."""
    notes.correlation_id = http.context.get("requestId")
    notes.trace_id = observability.trace_id(http.headers.get("traceparent"))
    if http.is_base64:
        notes.request_bytes = len(http.body) * 3 // 4  # four characters of base64 are three bytes
    else:
        notes.request_bytes = observability.size(http.body)


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
    outcome = observability.FAILED if error.is_server_fault else "refused"
    notes.conclude(outcome, error.reason)
    notes.code = error.code
    notes.misconfigured = isinstance(error, Misconfigured)


def note_crash(notes: Notes, error: BaseException) -> None:
    """Note an unexpected exception, without its text."""
    notes.crash(error)
    notes.code = InternalError.code
