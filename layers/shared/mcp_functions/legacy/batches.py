"""Batches: an array of messages in one HTTP request, which only 2025-03-26 has.

The messages are handled one after the other, in the time of one request. A client is asked nothing in a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.http import events
from mcp_functions.http.responses import check_size, empty, json
from mcp_functions.legacy import conversations, replies
from mcp_functions.legacy.responses import StreamEvent, error_message, stream_response
from mcp_functions.legacy.runner import SPARE_SECONDS
from mcp_functions.protocol.errors import Busy, McpError, MethodNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.http.events import HttpRequest, Response
    from mcp_functions.legacy.request import LegacyRequest
    from mcp_functions.legacy.responses import Reply


def respond(request: LegacyRequest, batch: Sequence[Mapping[str, Any]]) -> Response:
    """Return the HTTP response to a batch, in its order; 202 if the batch has no request.

    Raises:
        McpError: the batch has no request, and one of its responses cannot be accepted.
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
            headers |= reply.headers
            sent += _fitting_messages(request.http, sent, reply)
    if not has_requests:
        return empty(202)
    return check_size(_response(request.http, sent, headers))


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


def _fitting_messages(http: HttpRequest, sent: Sequence[Mapping[str, Any]], reply: Reply) -> list[Mapping[str, Any]]:
    """Return the messages of a reply, or only an error if Lambda could not return them after the earlier ones."""
    response = reply.response or {}
    messages = [*reply.notifications, response]
    try:
        check_size(_response(http, [*sent, *messages], {}))
    except McpError as error:
        return [error_message(response["id"], error.to_json())]
    return messages


def _response(http: HttpRequest, sent: Sequence[Mapping[str, Any]], headers: Mapping[str, str]) -> Response:
    """Return a stream if there are notifications and the client accepts one; otherwise the responses as an array."""
    only_responses = [message for message in sent if "method" not in message]
    has_notifications = len(only_responses) < len(sent)
    if has_notifications and events.accepts_event_stream(http):
        return stream_response([StreamEvent(message) for message in sent], headers)
    return json(200, only_responses, headers)
