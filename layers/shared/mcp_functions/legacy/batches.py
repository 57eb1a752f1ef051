"""Batches: an array of messages in one HTTP request, which only 2025-03-26 has.

The messages are handled one after the other, in the time of one request. A client is asked nothing in a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.http import events
from mcp_functions.http.responses import check_size, empty, json
from mcp_functions.legacy import conversations, replies
from mcp_functions.legacy.responses import Reply, StreamEvent, error_message, stream_response
from mcp_functions.legacy.runner import SPARE_SECONDS
from mcp_functions.protocol.errors import Busy, McpError, MethodNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.http.events import HttpRequest, Response
    from mcp_functions.legacy.request import LegacyRequest


def respond(request: LegacyRequest, batch: Sequence[Mapping[str, Any]]) -> Response:
    """Return the HTTP response to a batch, in its order; 202 if the batch has no request.

    Raises:
        McpError: the batch has no request, and one of its responses cannot be accepted.
    """
    request = request._replace(in_batch=True)
    has_requests = any("method" in message and "id" in message for message in batch)
    answered: list[Reply] = []
    for message in batch:
        if "method" not in message:
            _receive_answer(request, message, has_requests=has_requests)
        elif "id" not in message:
            conversations.receive_notification(request, message)
        else:
            answered.append(_reply(request, message))
    if not has_requests:
        return empty(202)
    try:
        return _response(request.http, answered)
    except McpError:  # the messages are too large for one response, or one is not Unicode
        return _response(request.http, _fitting(request.http, answered))


def _receive_answer(request: LegacyRequest, message: Mapping[str, Any], *, has_requests: bool) -> None:
    try:
        if _is_late(request):
            raise Busy(reason="batch_deadline")
        conversations.receive_answer(request, message)
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


def _fitting(http: HttpRequest, all_replies: Sequence[Reply]) -> list[Reply]:
    """Return the replies; an error replaces each one that Lambda could not return after those before it."""
    fitting: list[Reply] = []
    for reply in all_replies:
        try:
            _response(http, [*fitting, reply])
            fitting.append(reply)
        except McpError as error:
            id_ = (reply.response or {})["id"]
            fitting.append(Reply(error_message(id_, error.to_json()), headers=reply.headers))
    return fitting


def _response(http: HttpRequest, all_replies: Sequence[Reply]) -> Response:
    """Return a stream if there are notifications and the client accepts one; otherwise the responses as an array.

    Raises:
        McpError: Lambda could not return the response.
    """
    headers: dict[str, str] = {}
    for reply in all_replies:
        headers |= reply.headers
    if any(reply.notifications for reply in all_replies) and events.accepts_event_stream(http):
        messages = [message for reply in all_replies for message in (*reply.notifications, reply.response)]
        return check_size(stream_response([StreamEvent(message) for message in messages], headers))
    return check_size(json(200, [reply.response for reply in all_replies], headers))
