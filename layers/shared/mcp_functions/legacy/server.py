"""Answers the HTTP requests of clients of 2025: an HTTP request comes in, an HTTP response goes out.

    POST   a message: read the body, the caller and the session, compare the headers, then answer
    GET    a client returns for the rest of an event stream (`Last-Event-ID`)

A body is of one kind (`revisions.message_kind`): a request, a notification, a response to a question of this server, or
a batch of these. What is not of 2025 returns None, and the path of 2026-07-28 (the modern path) answers or refuses it.

No server remembers a client. Its session id holds the session, sealed (encrypted and authenticated). The mailbox is the
table with the messages that a client has not fetched yet.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.handlers import lookup
from mcp_functions.http import events
from mcp_functions.http.exchange import note_method
from mcp_functions.http.responses import empty
from mcp_functions.legacy import batches, conversations, replies, responses, revisions, streams
from mcp_functions.legacy.exchange import Deployment, read_exchange
from mcp_functions.legacy.mailbox import Mailbox
from mcp_functions.legacy.revisions import VERSION_HEADER
from mcp_functions.legacy.sealed_ids import make_seals
from mcp_functions.legacy.sessions import SESSION_HEADER
from mcp_functions.protocol import header_parameters, headers, json_reader
from mcp_functions.protocol.errors import McpError, Misconfigured, TemporarilyUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.dispatch.seal_factory import SealFactory
    from mcp_functions.http.events import HttpRequest, LambdaContext, Response
    from mcp_functions.legacy.exchange import Exchange
    from mcp_functions.legacy.revisions import Kind
    from mcp_functions.legacy.runner import ModernServer
    from mcp_functions.protocol.wire_types import JSONValue
    from mcp_functions.settings import Settings

EVENT_ID = re.compile(r"[\x21-\x7e]+")  # visible ASCII
# The kinds without a method -> their name in the log, where "response" would mean one that the server sent.
LOG_NAMES = {"batch": "batch", "response": "answer"}


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
        """Connect the parts of a deployment. No request to KMS or to the table is sent before a client needs it.

        Args:
            settings: the settings of the deployment.
            modern: the server of 2026-07-28 that runs the translated requests.
            seal_factory: makes the seals and the table; None without a key, and then clients have no session.
            now: the clock, in unix seconds.
            sleep: waits some seconds between attempts to reach the table.
        """
        self._deployment = Deployment(settings, modern, now)
        if seal_factory:
            seals = make_seals(seal_factory, settings)
            mailbox = Mailbox(settings, seal_factory, seals, now=now, sleep=sleep) if settings.table else None
            self._deployment = Deployment(settings, modern, now, seals.sessions, mailbox)

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
        """Answer a message or a batch; None if it is not of 2025."""
        try:
            body = json_reader.loads(events.read_body(http, self._deployment.settings.max_body_bytes))
        except McpError:
            return None  # the modern path refuses the body, with its reason
        kind = revisions.message_kind(body, http.headers.get(VERSION_HEADER))
        if kind is None:
            return None
        _note_method(kind, body)
        try:
            return self._answer_caller(http, event, context, kind, body)
        except McpError as error:
            if kind == "request":
                error.id = body["id"]  # an error response must have the id of its request
            raise

    def _answer_caller(
        self, http: HttpRequest, event: Mapping[str, Any], context: LambdaContext, kind: Kind, body: JSONValue
    ) -> Response | None:
        """Read the caller and the session, and answer a message; None if the caller's revision has no such message."""
        events.check_media_type(http)
        session_id = http.headers.get(SESSION_HEADER)
        if kind == "request" and body["method"] == "initialize":
            session_id = None  # it starts another session
        try:
            exchange = read_exchange(self._deployment, http, event, context, session_id)
        except (TemporarilyUnavailable, Misconfigured) as error:
            # These clients read the error of a request only with status 200. Other messages have no JSON-RPC response.
            if kind != "request":
                raise
            return responses.reply_response(http, replies.error_reply(body["id"], error), body["id"])
        if kind == "batch" and not revisions.supports(exchange.revision, "batches"):
            return None  # to the modern path an array is no message
        _check_headers(exchange, kind, body)
        observability.current().revision = exchange.revision
        return _answer_by_kind(exchange, kind, body)

    def _resume(self, http: HttpRequest, event: Mapping[str, Any], context: LambdaContext) -> Response | None:
        """Resume a stream; None if this server offers no stream.

        2025-11-25, basic/transports, "Listening for Messages from the Server": "or else return HTTP 405".
        """
        mailbox = self._deployment.mailbox
        session_id = http.headers.get(SESSION_HEADER)
        event_id = http.headers.get("last-event-id", "")
        if mailbox is None or session_id is None or not EVENT_ID.fullmatch(event_id):
            return None
        notes = observability.current()
        notes.method = "resume"
        try:
            exchange = read_exchange(self._deployment, http, event, context, session_id)
            notes.revision = exchange.revision
            stream = streams.resume(exchange, mailbox, event_id)
        except TemporarilyUnavailable as error:
            notes.add_error(error)
            # The client returns with the same event id.
            stream = (responses.StreamEvent(None, event_id, streams.LONGEST_PAUSE),)
        return None if stream is None else responses.stream_response(stream, {})


def _note_method(kind: Kind, body: JSONValue) -> None:
    notes = observability.current()
    if kind in LOG_NAMES:
        notes.method = LOG_NAMES[kind]
    else:
        note_method(notes, body["method"])


def _check_headers(exchange: Exchange, kind: Kind, body: JSONValue) -> None:
    """Refuse headers that contradict the body: legacy clients need not send them, but a router may read them."""
    received = exchange.http.headers
    for message in body if kind == "batch" else [body]:
        headers.check_no_contradiction(message, received)
        params = message.get("params")
        if message.get("method") == "tools/call" and isinstance(params, dict):
            declared = lookup.header_arguments(exchange.deployment.modern.catalog, params.get("name"))
            sent = params.get("arguments")
            header_parameters.check_sent(declared, sent if isinstance(sent, dict) else {}, received)


def _answer_by_kind(exchange: Exchange, kind: Kind, body: JSONValue) -> Response:
    if kind == "batch":
        return batches.respond(exchange, body)
    if kind == "request":
        return responses.reply_response(exchange.http, replies.reply(exchange, body), body["id"])
    if kind == "response":
        conversations.receive_answer(exchange, body)
    else:
        conversations.receive_notification(exchange, body)
    return empty(202)
