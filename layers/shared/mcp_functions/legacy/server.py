"""Answers the HTTP requests of clients of 2025: an HTTP request comes in, an HTTP response goes out.

    POST   messages: read the body, the caller and the session, compare the headers, then `MessageHandler` answers
    GET    a client returns for the rest of an event stream (`Last-Event-ID`)

A request that is not of 2025 returns None, and the path of 2026-07-28 (the modern path) answers or refuses it.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.handlers import lookup
from mcp_functions.http import events, identity, outcomes
from mcp_functions.http.exchange import note_method
from mcp_functions.http.lazy_values import lazy_value
from mcp_functions.http.responses import json
from mcp_functions.legacy import responses, revisions
from mcp_functions.legacy.conversations import Conversations
from mcp_functions.legacy.errors import SessionNotFound
from mcp_functions.legacy.exchange import SESSION_HEADER, Exchange, open_session
from mcp_functions.legacy.mailbox import Mailbox
from mcp_functions.legacy.message_handler import MessageHandler
from mcp_functions.legacy.request_handler import HTTP_ERRORS, RequestHandler
from mcp_functions.legacy.runner import Runner
from mcp_functions.legacy.sealed_ids import FETCH_SECONDS, make_seals
from mcp_functions.legacy.streams import MAX_POLL_MS
from mcp_functions.protocol import header_parameters, headers, json_reader
from mcp_functions.protocol.errors import HeaderMismatch, McpError, TemporarilyUnavailable
from mcp_functions.seal.binding import caller_id, principal_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.dispatch.seal_factory import SealFactory
    from mcp_functions.http.events import HttpRequest, LambdaContext, Response
    from mcp_functions.legacy.exchange import Session
    from mcp_functions.legacy.revisions import Kind
    from mcp_functions.legacy.runner import ModernServer
    from mcp_functions.legacy.sealed_ids import IdSeal
    from mcp_functions.protocol.wire_types import JSONValue
    from mcp_functions.settings import Settings

VERSION_HEADER = "mcp-protocol-version"
EVENT_ID = re.compile(r"[\x21-\x7e]+")  # visible ASCII
LOGGED_METHODS = {"batch": "batch", "response": "answer"}  # the kinds without a method -> the log's name for them


class LegacyServer:
    """Answers the HTTP requests of clients of 2025, and leaves all others to the modern path."""

    def __init__(
        self,
        settings: Settings,
        modern: ModernServer,
        seal_factory: SealFactory | None,
        *,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """Connect the parts of a deployment; KMS and the table are not used before a client needs them."""
        self._settings = settings
        self._catalog = modern.catalog
        self._now = now
        runner = Runner(modern, now)
        self._session_seal: IdSeal | None = None
        self._conversations: Conversations | None = None
        if seal_factory:
            seals = make_seals(seal_factory, settings)
            self._session_seal = seals.sessions
            if settings.table:
                seconds = settings.question_seconds + FETCH_SECONDS
                mailbox = lazy_value(
                    lambda: Mailbox(seal_factory.table(seconds), seconds=seconds, now=now, sleep=sleep)
                )
                self._conversations = Conversations(
                    seals, mailbox, runner, question_seconds=settings.question_seconds, now=now
                )
        handler = RequestHandler(settings, runner, self._session_seal, self._conversations, now)
        self._messages = MessageHandler(handler, self._conversations, now)

    def __call__(self, http: HttpRequest, event: Mapping[str, Any], context: LambdaContext) -> Response | None:
        """Answer one HTTP request; None if the modern path must answer or refuse it.

        Raises:
            McpError: the HTTP status must show the problem: the access token, the session or a header is invalid.
        """
        if http.headers.get(VERSION_HEADER) not in revisions.REVISION_OF_HEADER:
            return None
        if http.method == "GET":
            return self._resume(http, event, context)
        if http.method == "POST":
            return self._post(http, event, context)
        return None

    def _post(self, http: HttpRequest, event: Mapping[str, Any], context: LambdaContext) -> Response | None:
        try:
            body = json_reader.loads(events.read_body(http, self._settings.max_body_bytes))
        except McpError:
            return None  # the modern path refuses the body, with its reason
        kind = revisions.message_kind(body, http.headers.get(VERSION_HEADER))
        if kind is None:
            return None
        notes = observability.current()
        if kind in LOGGED_METHODS:
            notes.method = LOGGED_METHODS[kind]
        else:
            note_method(notes, body["method"])
        events.check_media_type(http)
        session_id = http.headers.get(SESSION_HEADER)
        if kind == "request" and body["method"] == "initialize":
            session_id = None  # it starts another session
        try:
            exchange = self._exchange(http, event, context, session_id)
        except HTTP_ERRORS:
            raise
        except McpError as error:
            if kind != "request":
                raise
            outcomes.note_error(notes, error)
            return json(200, responses.error_message(body["id"], error))
        if kind == "batch" and not revisions.supports(exchange.revision, "batches"):
            return None
        self._check_headers(http, kind, body)
        notes.revision = exchange.revision
        return self._messages.response(exchange, kind, body)

    def _resume(self, http: HttpRequest, event: Mapping[str, Any], context: LambdaContext) -> Response | None:
        """Resume a stream; None if this server offers no stream.

        2025-11-25, basic/transports, "Listening for Messages from the Server": "or else return HTTP 405".
        """
        event_id = http.headers.get("last-event-id", "")
        if not self._conversations or SESSION_HEADER not in http.headers:
            return None
        if not EVENT_ID.fullmatch(event_id):
            return None
        notes = observability.current()
        notes.method = "resume"
        try:
            exchange = self._exchange(http, event, context, http.headers[SESSION_HEADER])
            notes.revision = exchange.revision
            stream = self._conversations.resume(exchange, event_id)
        except TemporarilyUnavailable as error:
            outcomes.note_error(notes, error)
            stream = (responses.StreamEvent(None, event_id, MAX_POLL_MS),)  # the client returns with the same event id
        return None if stream is None else responses.stream_response(stream, {})

    def _exchange(
        self, http: HttpRequest, event: Mapping[str, Any], context: LambdaContext, session_id: str | None
    ) -> Exchange:
        """Read the caller and the session of a request.

        Raises:
            Unauthorized: the access token is invalid.
            SessionNotFound: the session id is invalid.
        """
        now = self._now()
        # 2025-11-25, basic/security_best_practices: "MCP Servers MUST NOT use sessions for authentication". So the
        # caller is known before the session is read.
        caller = identity.identify(http, self._settings, now)
        principal = principal_digest(caller.principal)
        caller_key = caller_id(caller.principal, http.address)
        observability.current().caller_id = caller_key
        session: Session | None = None
        if session_id is not None:
            if self._session_seal is None:
                raise SessionNotFound(reason="session_without_keys")
            session = open_session(session_id, self._session_seal, principal, caller_id=caller_key, now=now)
        header = http.headers.get(VERSION_HEADER)
        ends = events.lambda_deadline(context, now)
        return Exchange(
            http=http,
            event=event,
            caller=caller,
            principal=principal,
            revision=session.revision if session and not header else revisions.REVISION_OF_HEADER[header],
            session=session,
            deadline=events.gateway_deadline(http, ends, now),
            ends=ends,
            caller_id=caller_key,
        )

    def _check_headers(self, http: HttpRequest, kind: Kind, body: JSONValue) -> None:
        """Refuse headers that contradict the body: legacy clients need not send them, but a router may read them."""
        try:
            for message in body if kind == "batch" else [body]:
                headers.check_no_contradiction(message, http.headers)
                params = message.get("params")
                if message.get("method") == "tools/call" and isinstance(params, dict):
                    declared = lookup.header_arguments(self._catalog, params.get("name"))
                    sent = params.get("arguments")
                    arguments = sent if isinstance(sent, dict) else {}
                    header_parameters.check_sent(declared, arguments, http.headers)
        except HeaderMismatch as error:
            error.id = body["id"] if kind == "request" else None
            raise
