"""Results and errors as the HTTP responses that API Gateway expects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions.http.events import accepts_event_stream
from mcp_functions.protocol.errors import Crash, InternalError, ResultTooLarge
from mcp_functions.protocol.json_writer import chunks, dumps, dumps_ascii, dumps_with_member
from mcp_functions.protocol.messages import ForwardedResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.http.events import HttpRequest, Response
    from mcp_functions.protocol.errors import McpError
    from mcp_functions.protocol.messages import AnyResult, Result
    from mcp_functions.protocol.wire_types import RequestId

MAX_MEGABYTES = 6  # the limit of a function's whole response
MAX_BODY = MAX_MEGABYTES * 1024 * 1024 - 64 * 1024  # bytes; 64 KiB remain for the headers
# The most ASCII characters that JSON needs for one byte of a body, because a body has no control characters.
MAX_ESCAPE = 3
# A result or a state may be private, so no cache may store it. No response is a page, so nothing in it may run.
SECURITY_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "strict-transport-security": "max-age=31536000",
    "x-content-type-options": "nosniff",
}
JSON_HEADERS = {**SECURITY_HEADERS, "content-type": "application/json"}
STREAM_HEADERS = {**SECURITY_HEADERS, "content-type": "text/event-stream", "x-accel-buffering": "no"}


def response(status: int, headers: Mapping[str, str], body: str) -> Response:
    """Make a response."""
    return {"statusCode": status, "headers": dict(headers), "body": body, "isBase64Encoded": False}


def empty(status: int, headers: Mapping[str, str] | None = None) -> Response:
    """Make a response without a body."""
    return response(status, {**SECURITY_HEADERS, **(headers or {})}, "")


def json(status: int, value: object, headers: Mapping[str, str] | None = None) -> Response:
    """Make a response whose body is JSON."""
    return response(status, {**JSON_HEADERS, **(headers or {})}, dumps(value))


def success(http: HttpRequest, result: AnyResult, id_: RequestId) -> Response:
    """Make the response of a request that has a result.

    Raises:
        InternalError: Lambda cannot return it: it is too large, or not whole Unicode.
    """
    if isinstance(result, ForwardedResponse):
        return dict(result.response)
    if result.body:
        made = response(200, STREAM_HEADERS if result.body.is_stream else JSON_HEADERS, result.body.text)
    elif result.notifications and accepts_event_stream(http):
        made = response(200, STREAM_HEADERS, _event_stream(result, id_))
    else:
        made = response(200, JSON_HEADERS, _message(result, id_))
    return check_size(made)


def failure(error: McpError, id_: RequestId | None) -> Response:
    """Make the response of a request that failed; None is the id of a request that could not be read."""
    identified = {} if id_ is None else {"id": id_}
    # Without an id the client cannot tell which request failed. So after a crash the HTTP status is an error, too.
    status = 500 if id_ is None and isinstance(error, Crash) else error.status
    return json(status, {"jsonrpc": "2.0", **identified, "error": error.to_json()}, error.headers)


def check_size(made: Response) -> Response:
    """Return a response that Lambda can return.

    Raises:
        InternalError: Lambda cannot encode the body.
        ResultTooLarge: the body is over Lambda's limit. The client should learn this, and not only see a 502.
    """
    body: str = made["body"]
    try:
        size = len(body) if body.isascii() else len(body.encode())
    except UnicodeEncodeError:
        raise InternalError(reason="the function returned half of a surrogate pair") from None
    if size * MAX_ESCAPE > MAX_BODY and _escaped_size(body) > MAX_BODY:
        raise ResultTooLarge(MAX_MEGABYTES)
    return made


def _message(result: Result, id_: RequestId) -> str:
    if result.text:
        return dumps_with_member({"jsonrpc": "2.0", "id": id_}, "result", result.text)
    return dumps({"jsonrpc": "2.0", "id": id_, "result": result.result})


def _event_stream(result: Result, id_: RequestId) -> str:
    """Write the notifications and the result as one event stream, which Lambda returns whole (basic/transports)."""
    messages = [*map(dumps, result.notifications), _message(result, id_)]
    return "".join(f"event: message\ndata: {message}\n\n" for message in messages)


def _escaped_size(text: str) -> int:
    """Count the characters of a text as a JSON string in ASCII. A copy of the whole text may not fit in memory."""
    return sum(len(dumps_ascii(chunk)) - 2 for chunk in chunks(text))
