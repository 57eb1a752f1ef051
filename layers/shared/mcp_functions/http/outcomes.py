"""How a request came in and how it ended, in the notes for its log line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions import observability
from mcp_functions.protocol.errors import Crash, InternalError, Misconfigured

if TYPE_CHECKING:
    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.lambda_types import Response
    from mcp_functions.observability import Notes
    from mcp_functions.protocol.errors import McpError

BAD_REQUEST = 400


def note_request(notes: Notes, http: HttpRequest) -> None:
    """Note the gateway's id of a request, its trace, and the size of its body without base64."""
    notes.correlation_id = http.context.get("requestId")
    notes.trace_id = observability.trace_id(http.headers.get("traceparent"))
    notes.request_bytes = len(http.body) * 3 // 4 if http.is_base64 else observability.size(http.body)


def note_response(notes: Notes, response: Response) -> None:
    """Note status and size of a response, and the outcome if no other code has noted one."""
    notes.status = response["statusCode"]
    notes.response_bytes = observability.size(response["body"])
    if not notes.outcome:
        notes.outcome = "refused" if notes.status >= BAD_REQUEST else "complete"


def note_error(notes: Notes, error: McpError) -> None:
    """Note why a request was refused, or has failed."""
    if isinstance(error, Crash):
        note_crash(notes, error.cause)
        return
    notes.conclude("failed" if error.ours else "refused", error.reason)
    notes.code = error.code
    notes.misconfigured = isinstance(error, Misconfigured)


def note_crash(notes: Notes, error: BaseException) -> None:
    """Note an unexpected exception, without its text."""
    notes.crash(error)
    notes.code = InternalError.code
