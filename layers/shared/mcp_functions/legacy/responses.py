"""The HTTP responses for clients of 2025: one JSON object, or a complete event stream.

A response is a stream if it has notifications, or if the client must return for the rest of the call. In the second
case the events have ids. A JSON-RPC error has HTTP status 200, because these clients treat another status as a broken
connection. Python's SDK then ends its session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.http import events, responses
from mcp_functions.http.responses import STREAM_HEADERS, check_size
from mcp_functions.protocol import json_writer
from mcp_functions.protocol.errors import McpError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.protocol.event_types import Response
    from mcp_functions.protocol.wire_types import RequestId


class StreamEvent(NamedTuple):
    """One event of a stream."""

    # The JSON-RPC message; None for an event that only has an id. 2025-11-25, basic/transports, "Sending Messages to
    # the Server": "an event ID and an empty `data` field".
    message: Mapping[str, Any] | None
    id: str = ""  # the client resumes the stream from it; "" if no event follows
    retry: int = 0  # the milliseconds after which the client returns; 0 leaves that to the client

    def text(self) -> str:
        """Return the event as a stream carries it."""
        id_ = f"id: {self.id}\n" if self.id else ""
        retry = f"retry: {self.retry}\n" if self.retry else ""
        data = "" if self.message is None else json_writer.dumps(self.message)
        return f"{id_}{retry}event: message\ndata: {data}\n\n"


def result_message(id_: RequestId, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON-RPC response with a result."""
    return {"jsonrpc": "2.0", "id": id_, "result": dict(result)}


def error_message(id_: RequestId, error: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON-RPC response with an error: its `code`, its `message` and perhaps `data`."""
    return {"jsonrpc": "2.0", "id": id_, "error": dict(error)}


def message_response(
    http: HttpRequest,
    message: Mapping[str, Any],
    notifications: Sequence[Mapping[str, Any]] = (),
    headers: Mapping[str, str] = {},
) -> Response:
    """Return the HTTP response to a request that has ended.

    Args:
        http: the request.
        message: the JSON-RPC response.
        notifications: the client gets these before the response, if it accepts a stream.
        headers: further headers of the HTTP response.
    """
    if notifications and events.accepts_event_stream(http):
        response = stream_response([StreamEvent(each) for each in (*notifications, message)], headers)
    else:
        response = responses.json(200, message, headers)
    try:
        return check_size(response)
    except McpError as error:
        # The response is too large or not Unicode. As a JSON-RPC error it tells the client which request caused that.
        return responses.json(200, error_message(message["id"], error.to_json()), headers)


def stream_response(stream: Sequence[StreamEvent], headers: Mapping[str, str] = {}) -> Response:
    """Return an event stream."""
    return responses.response(200, {**STREAM_HEADERS, **headers}, "".join(event.text() for event in stream))
