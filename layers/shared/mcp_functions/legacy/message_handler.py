"""Handles the messages of one HTTP request: a request, a notification, a response, or a batch of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.http import outcomes
from mcp_functions.http.responses import empty
from mcp_functions.legacy import responses
from mcp_functions.legacy.errors import UnknownQuestion
from mcp_functions.legacy.request_handler import error_reply
from mcp_functions.legacy.runner import SPARE_SECONDS
from mcp_functions.protocol.errors import Busy, McpError, MethodNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.http.events import Response
    from mcp_functions.legacy.conversations import Conversations
    from mcp_functions.legacy.exchange import Exchange
    from mcp_functions.legacy.request_handler import RequestHandler
    from mcp_functions.legacy.responses import Reply
    from mcp_functions.legacy.revisions import Kind
    from mcp_functions.protocol.wire_types import JSONValue

BATCH_DEADLINE = "batch_deadline"  # the reason in the log
NO_INITIALIZE = "initialize must not be part of a batch"


class MessageHandler:
    """Handles messages and writes the HTTP response."""

    def __init__(self, requests: RequestHandler, conversations: Conversations | None, now: Callable[[], float]) -> None:
        """Use a handler of requests, the conversations that receive answers, and a clock (unix seconds)."""
        self._requests = requests
        self._conversations = conversations
        self._now = now

    def response(self, exchange: Exchange, kind: Kind, body: JSONValue) -> Response:
        """Return the HTTP response to a body of this kind."""
        http = exchange.http
        if kind == "batch":
            return responses.batch_response(http, self._batch(exchange, body))
        if kind == "request":
            return responses.reply_response(http, self._requests.reply(exchange, body), body["id"])
        if kind == "response":
            self._answer(exchange, body)
        else:
            self._notification(exchange, body)
        return empty(202)

    def _batch(self, exchange: Exchange, messages: Sequence[Mapping[str, Any]]) -> list[Reply]:
        has_requests = any("method" in each and "id" in each for each in messages)
        replies: list[Reply] = []
        for message in messages:
            if "method" not in message:
                self._answer_in_batch(exchange, message, has_requests=has_requests)
            elif "id" not in message:
                self._notification(exchange, message)
            else:
                replies.append(self._request_in_batch(exchange, message))
        return replies

    def _answer_in_batch(self, exchange: Exchange, message: Mapping[str, Any], *, has_requests: bool) -> None:
        try:
            if self._is_late(exchange):
                raise Busy(BATCH_DEADLINE)
            self._answer(exchange, message)
        except McpError as error:
            # 2025-03-26, basic/transports: "If the server cannot accept the input, it MUST return an HTTP error status
            # code". The requests of the same batch still get their responses.
            if not has_requests:
                raise
            outcomes.note_error(observability.current(), error)

    def _request_in_batch(self, exchange: Exchange, message: Mapping[str, Any]) -> Reply:
        if self._is_late(exchange):
            return error_reply(message["id"], Busy(BATCH_DEADLINE))
        # 2025-03-26, basic/lifecycle: "The initialize request MUST NOT be part of a JSON-RPC batch"
        if message["method"] == "initialize":
            return error_reply(message["id"], MethodNotFound(NO_INITIALIZE))
        return self._requests.reply(exchange._replace(in_batch=True), message)

    def _is_late(self, exchange: Exchange) -> bool:
        """Return whether the rest of a batch must not run: its client would not receive the results.

        A batch may be fifty calls, which share the time of one request. The client may send the rest again.
        """
        return self._now() > exchange.deadline - SPARE_SECONDS

    def _answer(self, exchange: Exchange, message: Mapping[str, Any]) -> None:
        if self._conversations is None or exchange.session is None:
            raise UnknownQuestion
        self._conversations.receive(exchange, message)

    def _notification(self, exchange: Exchange, message: Mapping[str, Any]) -> None:
        observability.current().conclude("complete")
        # Other notifications ask for nothing that this server does.
        if message["method"] != "notifications/cancelled" or self._conversations is None:
            return
        params = message.get("params")
        if isinstance(params, dict):
            self._conversations.cancel(exchange, params.get("requestId"))
