"""Answers the HTTP requests of clients of 2025.

Clients of 2026-07-28 use the same address. `LegacyServer` returns None for a request that the code for 2026-07-28 must
answer or refuse. It checks a request in this order:

    1. the header MCP-Protocol-Version    None if it names a revision that is not of 2025
    2. GET                                the rest of an event stream (`Last-Event-ID`); None if there is none
    3. the body of a POST                 None if it is no message of 2025 (`revisions.message_kind`)
    4. the caller and the session         an error if one of them is invalid
    5. the other headers                  an error if they contradict the body
    6. the kind of the message            a request, a notification, or an answer to a question
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from mcp_functions import observability
from mcp_functions.handlers import lookup
from mcp_functions.http import events
from mcp_functions.http.request_log import note_method
from mcp_functions.http.responses import empty
from mcp_functions.legacy import answers, replies, responses, revisions, sessions, streams
from mcp_functions.legacy.call_store import CallStore
from mcp_functions.legacy.errors import AccessDenied
from mcp_functions.legacy.request import Deployment, read_request
from mcp_functions.protocol import headers, json_reader
from mcp_functions.protocol.errors import McpError, Misconfigured, TemporarilyUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.dispatch.seal_factory import SealFactory
    from mcp_functions.http.events import HttpRequest
    from mcp_functions.legacy.request import LegacyRequest
    from mcp_functions.legacy.revisions import MessageKind
    from mcp_functions.protocol.catalog_types import Catalog
    from mcp_functions.protocol.event_types import Response
    from mcp_functions.protocol.messages import AnyResult, Request
    from mcp_functions.protocol.wire_types import JSONRPCMessage, JSONValue
    from mcp_functions.settings import Settings

EVENT_ID = re.compile(r"[\x21-\x7e]+")  # visible ASCII


class LegacyServer:
    """Answers the HTTP requests of clients of 2025, and no others."""

    def __init__(
        self,
        settings: Settings,
        answer_current: Callable[[Request], AnyResult],
        catalog: Catalog,
        seal_factory: SealFactory | None,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Connect the parts of a deployment. No request to KMS or to the table is sent before a client needs it.

        Without a key (`seal_factory` is None), clients have no session.
        """
        tokens = sessions.SessionTokens(seal_factory, settings) if seal_factory else None
        calls = CallStore(settings, seal_factory, now) if seal_factory and settings.table else None
        self._deployment = Deployment(settings, answer_current, catalog, now, session_tokens=tokens, call_store=calls)

    def respond(self, http: HttpRequest) -> Response | None:
        """Answer one HTTP request; None if it is not of a client of 2025, McpError if the HTTP status must tell why."""
        try:
            return self._respond(http)
        except AccessDenied as denied:
            return denied.response

    def _respond(self, http: HttpRequest) -> Response | None:
        version = http.headers.get(revisions.VERSION_HEADER)
        if version not in revisions.REVISION_OF_HEADER:
            return None
        if http.method == "GET":
            return self._resume(http)
        if http.method != "POST":
            return None
        body = self._read_body(http)
        kind = revisions.message_kind(body, version)
        if kind is None:
            return None
        return self._respond_to_message(http, kind, body)

    def _respond_to_message(self, http: HttpRequest, kind: MessageKind, message: JSONRPCMessage) -> Response:
        """Answer a message, and note what it is; the error of a request has the request's id."""
        notes = observability.current()
        if kind == "answer":
            notes.method = kind  # an answer has no method, so the log line names its kind
        else:
            note_method(notes, message["method"])
        try:
            return self._answer(http, kind, message)
        except McpError as error:
            if kind != "request":
                raise
            if isinstance(error, TemporarilyUnavailable | Misconfigured):
                # These clients read the error of a request only with status 200.
                return replies.error_reply(http, message["id"], error)
            error.id = message["id"]
            raise

    def _resume(self, http: HttpRequest) -> Response | None:
        """Resume a stream; None if this server offers no stream.

        2025-11-25, basic/transports, "Listening for Messages from the Server": "or else return HTTP 405".
        """
        store = self._deployment.call_store
        session_token = http.headers.get(sessions.HEADER)
        event_id = http.headers.get("last-event-id", "")
        if store is None or session_token is None or not EVENT_ID.fullmatch(event_id):
            return None
        notes = observability.current()
        notes.method = "resume"
        try:
            request = read_request(self._deployment, http, session_token)
            notes.revision = request.revision
            stream = streams.resume(request, store, event_id)
        except TemporarilyUnavailable as error:
            notes.add_error(error)
            # After a pause, the client returns with the same event id.
            stream = (responses.StreamEvent(None, event_id, streams.LONGEST_PAUSE),)
        return None if stream is None else responses.stream_response(stream)

    def _read_body(self, http: HttpRequest) -> JSONValue:
        """Return the JSON value of a body; None if it is too large or not JSON."""
        try:
            return json_reader.loads(events.read_body(http, self._deployment.settings.max_body_bytes))
        except McpError:
            return None

    def _answer(self, http: HttpRequest, kind: MessageKind, message: JSONRPCMessage) -> Response:
        """Check the caller, the session and the headers, and answer a message by its kind."""
        events.check_media_type(http)
        session_token = http.headers.get(sessions.HEADER)
        if kind == "request" and message["method"] == "initialize":
            session_token = None  # it starts another session
        request = read_request(self._deployment, http, session_token)
        _check_headers(request, message)
        observability.current().revision = request.revision
        if kind == "request":
            return replies.reply_to(request, message)
        if kind == "answer":
            answers.receive_answer(request, message)
        else:
            answers.receive_notification(request, message)
        return empty(202)


def _check_headers(request: LegacyRequest, message: JSONRPCMessage) -> None:
    """Refuse headers that contradict a message: these clients need not send them, but a router may read them."""
    received = request.http.headers
    headers.check_no_contradiction(message, received)
    params = message.get("params")  # an answer may have any
    if message.get("method") == "tools/call" and isinstance(params, dict):
        declared = lookup.header_arguments(request.catalog, params.get("name"))
        received_arguments = {name: parameter for name, parameter in declared.items() if name in received}
        lookup.check_headers(received_arguments, params, received)
