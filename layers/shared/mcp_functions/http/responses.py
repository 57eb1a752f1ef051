"""Results and errors as the HTTP responses that API Gateway expects.

    a result                            200, application/json
    a result with notifications         200, text/event-stream, if the client accepts it
    an error                            the status of the error, application/json
    a response of another function      as it is

Lambda limits a response to 6 MB, so `check_size` measures each one as Lambda will write it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import Crash, InternalError, ResultTooLarge
from mcp_functions.protocol.json_writer import dumps, dumps_with_member, escape_in_chunks
from mcp_functions.protocol.messages import ForwardedResponse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.protocol.errors import McpError
    from mcp_functions.protocol.event_types import Response
    from mcp_functions.protocol.messages import AnyResult, Result
    from mcp_functions.protocol.wire_types import RequestId

MAX_MEGABYTES = 6  # Lambda's limit for the response of a function
MAX_ESCAPED_CHARS = MAX_MEGABYTES * 1024 * 1024 - 64 * 1024  # the rest is for headers
# Lambda writes the body as a JSON string in ASCII. One byte of a body needs at most three characters there: "é" has two
# bytes and becomes the six characters of an escape (\u00e9). The only control characters of a body are the line ends of
# an event stream, and each of those becomes two characters.
MAX_CHARS_PER_BYTE = 3
# A result or a state may be private, so nothing may store it. No response is a page.
SECURITY_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "strict-transport-security": "max-age=31536000",
    "x-content-type-options": "nosniff",
}
JSON_HEADERS = {**SECURITY_HEADERS, "content-type": "application/json"}
STREAM_HEADERS = {**SECURITY_HEADERS, "content-type": "text/event-stream", "x-accel-buffering": "no"}


def response(status: int, headers: Mapping[str, str], body: str) -> Response:
    """Make a response in the form that API Gateway expects of a Lambda function."""
    return {"statusCode": status, "headers": dict(headers), "body": body, "isBase64Encoded": False}


def empty(status: int, headers: Mapping[str, str] | None = None) -> Response:
    """Make a response without a body."""
    return response(status, {**SECURITY_HEADERS, **(headers or {})}, "")


def json(status: int, value: object, headers: Mapping[str, str] | None = None) -> Response:
    """Make a response whose body is JSON."""
    return response(status, {**JSON_HEADERS, **(headers or {})}, dumps(value))


def success(http: HttpRequest, result: AnyResult, id_: RequestId) -> Response:
    """Make the response of a request that has a result; raise as `check_size` does."""
    if isinstance(result, ForwardedResponse):
        return dict(result.response)
    if result.body:  # a dialect has written the whole body
        headers = STREAM_HEADERS if result.body.is_stream else JSON_HEADERS
        return check_size(response(200, headers, result.body.text))
    if result.notifications and accepts_event_stream(http):
        return check_size(response(200, STREAM_HEADERS, _event_stream(result, id_)))
    return check_size(response(200, JSON_HEADERS, _message(result, id_)))


def accepts_event_stream(http: HttpRequest) -> bool:
    """Check whether the client accepts an event stream.

    "A request without any Accept header field implies that the user agent will accept any media type in response";
    "Media ranges can be overridden by more specific media ranges … the most specific reference has precedence" (RFC
    9110, section 12.5.1).
    """
    accept = http.headers.get("accept")
    if accept is None:
        return True
    is_accepted: dict[str, bool] = {}  # by media range
    for part in accept.lower().split(","):
        media_range, *parameters = (piece.strip() for piece in part.split(";"))
        is_accepted[media_range] = is_accepted.get(media_range, False) or not _refuses(parameters)
    for media_range in ("text/event-stream", "text/*", "*/*"):  # the most specific first
        if media_range in is_accepted:
            return is_accepted[media_range]
    return False


def _refuses(parameters: Sequence[str]) -> bool:
    """Tell whether a media range has a quality of 0, which means "not acceptable" (RFC 9110, section 12.4.2).

    A quality that is no number from 0 to 1 counts as 0.
    """
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                quality = float(parameter.removeprefix("q="))
            except ValueError:
                return True
            return not 0 < quality <= 1
    return False


def failure(error: McpError, id_: RequestId | None) -> Response:
    """Make the response of a request that failed; `id_` is None if the id of the request could not be read."""
    if id_ is not None:
        return json(error.status, {"jsonrpc": "2.0", "id": id_, "error": error.to_json()}, error.headers)
    # A crash has the status 200, because the client reads the error in the body. Without an id the client cannot match
    # that error to its request, so the status has to tell it.
    status = 500 if isinstance(error, Crash) else error.status
    return json(status, {"jsonrpc": "2.0", "error": error.to_json()}, error.headers)


def check_size(http_response: Response) -> Response:
    """Return the response, if Lambda can return it. Otherwise API Gateway would tell the client only "502".

    Raises:
        InternalError: Lambda cannot encode the body.
        ResultTooLarge: the body is over Lambda's limit.
    """
    body: str = http_response["body"]
    try:
        size = len(body) if body.isascii() else len(body.encode())
    except UnicodeEncodeError:  # `from None` hides its text, which quotes the body
        raise InternalError(reason="the function returned half of a surrogate pair") from None
    may_be_too_large = size * MAX_CHARS_PER_BYTE > MAX_ESCAPED_CHARS
    # The exact size takes time, so small bodies are not measured.
    if may_be_too_large and sum(map(len, escape_in_chunks(body))) > MAX_ESCAPED_CHARS:
        raise ResultTooLarge
    return http_response


def _message(result: Result, id_: RequestId) -> str:
    """Write a result as a JSON-RPC response."""
    if result.text:  # the result is JSON already
        return dumps_with_member({"jsonrpc": "2.0", "id": id_}, "result", result.text)
    return dumps({"jsonrpc": "2.0", "id": id_, "result": result.result})


def _event_stream(result: Result, id_: RequestId) -> str:
    """Write the notifications and the result as one event stream, which Lambda returns whole (basic/transports)."""
    messages = [*map(dumps, result.notifications), _message(result, id_)]
    return "".join(f"event: message\ndata: {message}\n\n" for message in messages)
