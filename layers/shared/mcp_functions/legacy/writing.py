"""What goes out to a legacy client: one JSON object, an array, or an event stream that is already over.

"JSON-RPC errors of a request go out with HTTP 200": these clients take another status for a broken connection, and one
of them ends its whole session over it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.http import events, responses
from mcp_functions.http.responses import JSON_HEADERS, SECURITY_HEADERS, STREAM_HEADERS, check_size
from mcp_functions.protocol import json_writer
from mcp_functions.protocol.errors import McpError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.lambda_types import Response
    from mcp_functions.protocol.wire_types import RequestId


class Event(NamedTuple):
    """One event of a stream.

    Attributes:
        message: JSON-RPC; None primes a client to come back with the id ("an event ID and an empty `data` field").
        id: of the event; "" if nobody has to come back for what follows it.
        retry: milliseconds after which the client comes back; 0 does not say.

    """

    message: Mapping[str, Any] | None
    id: str = ""
    retry: int = 0

    def text(self) -> str:
        """Write it."""
        id_ = f"id: {self.id}\n" if self.id else ""
        retry = f"retry: {self.retry}\n" if self.retry else ""
        data = "" if self.message is None else json_writer.dumps(self.message)
        return f"{id_}{retry}event: message\ndata: {data}\n\n"


class Reply(NamedTuple):
    """What becomes of one request: messages that end with its response, or events of which more will come.

    Attributes:
        messages: notifications, and the response at the end.
        events: in their place, if the client has to come back.
        headers: of the HTTP response.
        passed: another function's HTTP response, to be passed on as it is.

    """

    messages: tuple[Mapping[str, Any], ...] = ()
    events: tuple[Event, ...] = ()
    headers: Mapping[str, str] = {}
    passed: Mapping[str, Any] | None = None


def answer(id_: RequestId, result: Mapping[str, Any]) -> dict[str, Any]:
    """Write a response that has a result."""
    return {"jsonrpc": "2.0", "id": id_, "result": dict(result)}


def refusal(id_: RequestId, error: McpError) -> dict[str, Any]:
    """Write a response that has an error."""
    return failure(id_, {"code": error.code, "message": error.message, "data": error.data})


def failure(id_: RequestId, error: Mapping[str, Any]) -> dict[str, Any]:
    """Write it from the error's parts."""
    told = {name: error[name] for name in ("code", "message", "data") if error.get(name) is not None}
    return {"jsonrpc": "2.0", "id": id_, "error": told}


def replied(http: HttpRequest, reply: Reply, id_: RequestId) -> Response:
    """Write the reply to one request."""
    if reply.passed is not None:
        return dict(reply.passed)
    if reply.events:
        return stream(http, reply.events, reply.headers)
    if len(reply.messages) > 1 and events.takes_stream(http):
        written = stream(http, [Event(message) for message in reply.messages], reply.headers)
    else:
        written = json(http, reply.messages[-1], reply.headers)
    try:
        return check_size(written)
    except McpError as error:  # too large, or not text: the client hears which of its requests that was
        return json(http, refusal(id_, error), reply.headers)


def batched(http: HttpRequest, replies: Sequence[Reply]) -> Response:
    """Write the replies to a batch, in its order; nothing but 202 if none of it was a request."""
    messages = [message for reply in replies for message in reply.messages]
    if not messages:
        return empty(http, 202)
    more = {name: value for reply in replies for name, value in reply.headers.items()}
    try:
        return check_size(_batch(http, messages, more))
    except McpError as error:  # too large, or not text: what else was done has its answers
        refused = error
    left = dict(enumerate(messages))
    for at in sorted(left, key=lambda at: _trouble(left[at]), reverse=True):
        if "id" in left[at]:
            left[at] = refusal(left[at]["id"], refused)
        else:
            del left[at]
        try:
            return check_size(_batch(http, list(left.values()), more))
        except McpError as error:
            refused = error
    raise refused


def _batch(http: HttpRequest, messages: Sequence[Mapping[str, Any]], more: Mapping[str, str]) -> Response:
    if any("method" in message for message in messages) and events.takes_stream(http):
        return stream(http, [Event(message) for message in messages], more)
    return json(http, [message for message in messages if "method" not in message], more)


def _trouble(message: Mapping[str, Any]) -> tuple[bool, int]:
    return not is_whole([message]), len(json_writer.dumps(message))


def stream(http: HttpRequest, told: Sequence[Event], more: Mapping[str, str]) -> Response:
    """Write events."""
    return responses.response(http, 200, {**STREAM_HEADERS, **more}, "".join(event.text() for event in told))


def json(http: HttpRequest, message: object, more: Mapping[str, str]) -> Response:
    """Write one JSON value."""
    return responses.response(http, 200, {**JSON_HEADERS, **more}, json_writer.dumps(message))


def empty(http: HttpRequest, status: int) -> Response:
    """Write nothing but a status."""
    return responses.response(http, status, SECURITY_HEADERS, "")


def is_whole(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether messages are whole Unicode: what a function says may hold half of a surrogate pair."""
    try:
        json_writer.dumps(list(messages)).encode()
    except UnicodeEncodeError:
        return False
    return True
