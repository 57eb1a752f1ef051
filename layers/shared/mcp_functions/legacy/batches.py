"""Batches: an array of messages in one HTTP request, which only 2025-03-26 has.

The messages are handled one after the other, in the time of one request. A client is asked nothing in a batch.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.http import events
from mcp_functions.http.responses import check_size, empty, json
from mcp_functions.legacy import conversations, replies
from mcp_functions.legacy.errors import AccessDenied
from mcp_functions.legacy.responses import StreamEvent, error_message, stream_response
from mcp_functions.legacy.runner import SPARE_SECONDS
from mcp_functions.protocol import json_writer
from mcp_functions.protocol.errors import Busy, McpError, MethodNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.http.events import HttpRequest, Response
    from mcp_functions.legacy.request import LegacyRequest
    from mcp_functions.legacy.responses import Reply


def respond(request: LegacyRequest, batch: Sequence[Mapping[str, Any]]) -> Response:
    """Return the HTTP response to a batch, in its order; 202 if the batch has no request.

    Raises:
        McpError, AccessDenied: the batch has no request, and one of its responses cannot be accepted.
    """
    request = request._replace(in_batch=True)
    has_requests = any("method" in message and "id" in message for message in batch)
    sent: list[Mapping[str, Any]] = []
    headers: dict[str, str] = {}
    for message in batch:
        if "method" not in message:
            _receive_answer(request, message, has_requests=has_requests)
        elif "id" not in message:
            conversations.receive_notification(request, message)
        else:
            reply = _reply(request, message)
            sent += reply.notifications
            if reply.response:
                sent.append(reply.response)
            headers |= reply.headers
    if not has_requests:
        return empty(202)
    return _fitting_response(request.http, sent, headers)


def _receive_answer(request: LegacyRequest, message: Mapping[str, Any], *, has_requests: bool) -> None:
    try:
        if _is_late(request):
            raise Busy(reason="batch_deadline")
        conversations.receive_answer(request, message)
    except AccessDenied:
        if not has_requests:
            raise
    except McpError as error:
        # 2025-03-26, basic/transports: "If the server cannot accept the input, it MUST return an HTTP error status
        # code". The requests of the same batch still get their responses.
        if not has_requests:
            raise
        observability.current().add_error(error)


def _reply(request: LegacyRequest, message: Mapping[str, Any]) -> Reply:
    if _is_late(request):
        return replies.error_reply(message["id"], Busy(reason="batch_deadline"))
    # 2025-03-26, basic/lifecycle: "The initialize request MUST NOT be part of a JSON-RPC batch"
    if message["method"] == "initialize":
        return replies.error_reply(message["id"], MethodNotFound(message="initialize must not be part of a batch"))
    return replies.reply_to(request, message)


def _is_late(request: LegacyRequest) -> bool:
    """Return whether the rest of a batch must not run: its client would not receive the results.

    A batch may be fifty calls, which share the time of one request. The client may send the rest again.
    """
    return request.seconds_left < SPARE_SECONDS


def _fitting_response(http: HttpRequest, sent: Sequence[Mapping[str, Any]], headers: Mapping[str, str]) -> Response:
    """Return a response that Lambda can return: the largest messages become errors, so that the others are not lost.

    Raises:
        McpError: even the errors are too large together.
    """
    kept = list(sent)
    for _ in sent:
        try:
            return _response(http, kept, headers)
        except McpError as error:
            largest = max(kept, key=_size)
            if "id" in largest:
                kept[kept.index(largest)] = error_message(largest["id"], error.to_json())
            else:
                kept.remove(largest)  # a notification
    return _response(http, kept, headers)


def _response(http: HttpRequest, sent: Sequence[Mapping[str, Any]], headers: Mapping[str, str]) -> Response:
    """Return a stream if there are notifications and the client accepts one; otherwise the responses as an array.

    Raises:
        McpError: Lambda could not return the response.
    """
    only_responses = [message for message in sent if "method" not in message]
    has_notifications = len(only_responses) < len(sent)
    if has_notifications and events.accepts_event_stream(http):
        return check_size(stream_response([StreamEvent(message) for message in sent], headers))
    return check_size(json(200, only_responses, headers))


def _size(message: Mapping[str, Any]) -> float:
    """Return the bytes of a message; infinity for half of a surrogate pair, which no response can hold."""
    try:
        return len(json_writer.dumps(message).encode())
    except UnicodeEncodeError:
        return math.inf
