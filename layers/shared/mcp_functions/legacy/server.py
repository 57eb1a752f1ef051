"""Answers the HTTP requests of clients of 2025."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.handlers import lookup
from mcp_functions.http import events, outcomes
from mcp_functions.http.exchange import note_method
from mcp_functions.http.lazy_values import lazy_value
from mcp_functions.http.responses import json
from mcp_functions.legacy import responses, revisions
from mcp_functions.legacy.conversations import Conversations
from mcp_functions.legacy.exchange import SESSION_HEADER, VERSION_HEADER, ExchangeReader
from mcp_functions.legacy.handshake import Handshake
from mcp_functions.legacy.mailbox import Mailbox
from mcp_functions.legacy.message_handler import MessageHandler
from mcp_functions.legacy.message_kinds import message_kind
from mcp_functions.legacy.request_handler import HTTP_ERRORS, RequestHandler
from mcp_functions.legacy.runner import Runner
from mcp_functions.legacy.stream_resumer import MAX_POLL_MS
from mcp_functions.legacy.token_seals import FETCH_SECONDS, make_token_seals
from mcp_functions.protocol import header_parameters, headers, json_reader
from mcp_functions.protocol.errors import HeaderMismatch, McpError, TemporarilyUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.dispatch.seal_factory import SealFactory
    from mcp_functions.http.events import HttpRequest, LambdaContext, Response
    from mcp_functions.legacy.message_kinds import Kind
    from mcp_functions.legacy.runner import ModernServer
    from mcp_functions.protocol.wire_types import JSONValue
    from mcp_functions.settings import Settings

EVENT_ID = re.compile(r"[\x21-\x7e]+")
RESUME, ANSWER, BATCH = "resume", "answer", "batch"  # logged as the method of requests that have none


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
        self._settings, self._catalog = settings, modern.catalog
        runner, seals = Runner(modern, now), make_token_seals(seal_factory, settings) if seal_factory else None
        self._exchanges = ExchangeReader(settings, seals, now)
        self._conversations: Conversations | None = None
        if seal_factory and seals and settings.table:
            mailbox = _mailbox(settings, seal_factory, now, sleep)
            self._conversations = Conversations(
                seals, mailbox, runner, question_seconds=settings.question_seconds, now=now
            )
        handshake = Handshake(
            runner,
            seals.sessions if seals else None,
            logging=bool(modern.catalog["logging"]),
            session_seconds=settings.session_seconds,
            now=now,
        )
        handler = RequestHandler(runner, handshake, self._conversations, settings.questions_since)
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
        except McpError:  # the modern path refuses it
            return None
        kind = message_kind(body, http.headers.get(VERSION_HEADER))
        if kind is None:
            return None
        _note_method(kind, body)
        events.check_media_type(http)
        initializing = kind == "request" and body["method"] == "initialize"
        try:
            exchange = self._exchanges.read(http, event, context, initializing=initializing)
        except HTTP_ERRORS:
            raise
        except McpError as error:
            if kind != "request":
                raise
            outcomes.note_error(observability.current(), error)
            return json(200, responses.error_message(body["id"], error))
        if kind == "batch" and not revisions.supports(exchange.revision, "batches"):
            return None
        self._check_headers(http, kind, body)
        observability.current().revision = exchange.revision
        return self._messages.response(exchange, kind, body)

    def _resume(self, http: HttpRequest, event: Mapping[str, Any], context: LambdaContext) -> Response | None:
        """Resume a stream; None if this server offers no stream.

        2025-11-25, basic/transports, "Listening for Messages from the Server": "or else return HTTP 405".
        """
        event_id = http.headers.get("last-event-id", "")
        if not self._conversations or SESSION_HEADER not in http.headers or not EVENT_ID.fullmatch(event_id):
            return None
        notes = observability.current()
        notes.method = RESUME
        try:
            exchange = self._exchanges.read(http, event, context, initializing=False)
            notes.revision = exchange.revision
            stream = self._conversations.resume(exchange, event_id)
        except TemporarilyUnavailable as error:  # the client returns with the same event id
            outcomes.note_error(notes, error)
            stream = (responses.StreamEvent(None, event_id, MAX_POLL_MS),)
        return None if stream is None else responses.stream_response(stream, {})

    def _check_headers(self, http: HttpRequest, kind: Kind, body: JSONValue) -> None:
        """Refuse headers that contradict the body: legacy clients need not send them, but a router may read them."""
        try:
            for message in body if kind == "batch" else [body]:
                headers.check_no_contradiction(message, http.headers)
                self._check_parameters(message, http.headers)
        except HeaderMismatch as error:
            error.id = body["id"] if kind == "request" else None
            raise

    def _check_parameters(self, message: Mapping[str, Any], received: Mapping[str, str]) -> None:
        params = message.get("params")
        if message.get("method") == "tools/call" and isinstance(params, dict):
            arguments = params.get("arguments")
            declared = lookup.header_arguments(self._catalog, params.get("name"))
            header_parameters.check_sent(declared, arguments if isinstance(arguments, dict) else {}, received)


def _mailbox(
    settings: Settings, seal_factory: SealFactory, now: Callable[[], float], sleep: Callable[[float], object]
) -> Callable[[], Mailbox]:
    """Return a function that makes the mailbox when it is first needed."""
    seconds = settings.question_seconds + FETCH_SECONDS
    return lazy_value(lambda: Mailbox(seal_factory.table(seconds), seconds=seconds, now=now, sleep=sleep))


def _note_method(kind: Kind, body: JSONValue) -> None:
    notes = observability.current()
    if kind == "batch":
        notes.method = BATCH
    elif kind == "response":
        notes.method = ANSWER
    else:
        note_method(notes, body["method"])
