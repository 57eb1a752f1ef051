"""The door for clients of 2025: what they send goes through the modern core, and comes back in their own words."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.handlers import catalog
from mcp_functions.http import events, gateway, identity, requests
from mcp_functions.legacy import eras, finals, lifting, projecting, revisions, sealing, sessions, writing
from mcp_functions.legacy.codes import NothingAsked, SessionNotFound
from mcp_functions.legacy.conversations import LATEST_MS, Conversations, kept_seconds
from mcp_functions.legacy.mailbox import Mailbox
from mcp_functions.legacy.running import SPARE_SECONDS, Call, Exchange, Outcome, Runner
from mcp_functions.legacy.writing import Reply
from mcp_functions.protocol import headers, json_reader
from mcp_functions.protocol.constants import CALLS, LISTS, LOG_LEVELS, META_SERVER_INFO, METHODS
from mcp_functions.protocol.errors import (
    Busy,
    HeaderMismatch,
    InsufficientScope,
    InvalidParams,
    McpError,
    MethodNotFound,
    TemporarilyUnavailable,
    Unauthorized,
)
from mcp_functions.seal.request_state import payer, principal_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.dispatch.vault import Vault
    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.lambda_types import Response
    from mcp_functions.legacy.eras import Kind
    from mcp_functions.legacy.sessions import Session
    from mcp_functions.legacy.words import Why
    from mcp_functions.protocol.messages import ForwardedResponse, Request, Result
    from mcp_functions.protocol.wire_types import RequestId
    from mcp_functions.settings import Settings

TOKEN = re.compile(r"[\x21-\x7e]+")
SESSION_HEADER = "mcp-session-id"
RESUME, ANSWER, BATCH = "resume", "answer", "batch"  # what the line says in the place of a method
LATE = "batch_deadline"
NO_BATCH = "initialize must not be part of a batch"
PLAIN = (Unauthorized, InsufficientScope, SessionNotFound)  # errors whose HTTP status tells a client what to do


class Legacy:
    """Answers what clients of 2025 send; None for what is not theirs."""

    def __init__(  # noqa: PLR0913 - what one deployment consists of
        self,
        settings: Settings,
        answer: Callable[[Request], Result | ForwardedResponse],
        offered: Mapping[str, Any],
        vault: Vault | None,
        *,
        now: Callable[[], float] = time.time,
        rand: Callable[[int], bytes] = os.urandom,
        sleep: Callable[[float], object] = time.sleep,
        forwards: bool = True,
    ) -> None:
        """Remember the core; nothing is asked for before a client comes.

        Args:
            settings: of the deployment.
            answer: the core: answers a modern request.
            offered: the catalog.
            vault: seals sessions and questions; None where there is no key, and so neither.
            now: unix seconds, wall clock.
            rand: `n` random bytes.
            sleep: waits for a table that has trouble, seconds.
            forwards: whether the core hands events on to other functions, and so needs one for each request.

        """
        self._settings, self._offered, self._now, self._rand = settings, offered, now, rand
        self._runner = Runner(answer, offered, now, forwards=forwards)
        self._lists: dict[tuple[Any, ...], dict[str, Any]] = {}  # by method, cursor and revision
        self._seals: sealing.Seals | None = None
        if vault:
            seconds = {"session_seconds": settings.session_seconds, "question_seconds": settings.question_seconds}
            self._seals = sealing.seals(vault, **seconds, max_body=settings.max_body_bytes)
        self._conversations: Conversations | None = None
        if vault and self._seals and settings.table:
            keeps = kept_seconds(settings.question_seconds)

            @gateway.lazy_value
            def mailbox() -> Mailbox:
                return Mailbox(vault.table(keeps), seconds=keeps, now=now, sleep=sleep)

            self._conversations = Conversations(
                self._seals, mailbox, self._runner, question_seconds=settings.question_seconds, now=now, rand=rand
            )

    def __call__(  # noqa: PLR0911 - a row of the table of eras each
        self,
        http: HttpRequest,
        event: Mapping[str, Any],
        context: Any,  # noqa: ANN401 - Lambda's context object
    ) -> Response | None:
        """Answer one HTTP request, or leave it to the modern ladder: None.

        Raises:
            McpError: what HTTP's status has to say: who calls, or a session that is none.

        """
        header = http.headers.get("mcp-protocol-version")
        if header not in revisions.HEADERS:
            return None
        if http.method == "GET":
            return self._resumed(http, event, context)
        if http.method != "POST":
            return None
        try:
            body = json_reader.loads(requests.read_body(http, self._settings.max_body_bytes))
        except McpError:
            return None
        kind = eras.kind(body, header)
        if kind is None:
            return None
        _note(kind, body)
        requests.check_media_type(http)
        try:
            exchange = self._exchange(http, event, context, initializing=_initializes(body))
        except PLAIN:
            raise
        except McpError as error:
            return self._without(http, kind, body, error)
        if kind == "batch" and not revisions.knows(exchange.revision, "batches"):
            return None
        self._check_headers(http, kind, body)
        observability.current().revision = exchange.revision
        return self._answered(exchange, kind, body)

    def _check_headers(self, http: HttpRequest, kind: Kind, body: Any) -> None:  # noqa: ANN401 - JSON
        """Refuse headers that contradict a message: these clients need not send them, but a router may believe them.

        Raises:
            HeaderMismatch: one does.

        """
        try:
            for message in body if kind == "batch" else [body]:
                headers.check_repeated(message, http.headers)
                self._check_parameters(message, http.headers)
        except HeaderMismatch as error:
            error.id = body["id"] if kind == "request" else None
            raise

    def _check_parameters(self, message: Mapping[str, Any], received: Mapping[str, str]) -> None:
        params = message.get("params")
        if message.get("method") == "tools/call" and isinstance(params, dict):
            arguments = params.get("arguments")
            declared = catalog.declared(self._offered, params.get("name"))
            headers.check_sent_parameters(declared, arguments if isinstance(arguments, dict) else {}, received)

    def _resumed(self, http: HttpRequest, event: Mapping[str, Any], context: Any) -> Response | None:  # noqa: ANN401 - Lambda's context object
        """Go on with a stream that ended for a client to come back; None: "or else return HTTP 405"."""
        last = http.headers.get("last-event-id", "")
        if not self._conversations or SESSION_HEADER not in http.headers or not TOKEN.fullmatch(last):
            return None
        notes = observability.current()
        notes.method = RESUME
        try:
            exchange = self._exchange(http, event, context, initializing=False)
            notes.revision = exchange.revision
            told = self._conversations.resume(exchange, last)
        except TemporarilyUnavailable as error:  # nothing can be read now, but the client stands where it stood
            gateway.note_error(notes, error)
            told = (writing.Event(None, last, LATEST_MS),)
        return None if told is None else writing.stream(http, told, {})

    def _without(self, http: HttpRequest, kind: Kind, body: Any, error: McpError) -> Response:  # noqa: ANN401 - JSON
        """Answer where not even the session can be read: KMS is away, or the deployment is broken."""
        if kind != "request":
            raise error
        gateway.note_error(observability.current(), error)
        return writing.json(http, writing.refusal(body["id"], error), {})

    def _exchange(self, http: HttpRequest, event: Mapping[str, Any], context: Any, *, initializing: bool) -> Exchange:  # noqa: ANN401 - Lambda's context object
        now, header = self._now(), http.headers.get("mcp-protocol-version")
        # "MCP Servers MUST NOT use sessions for authentication": who calls is known before any session is read
        caller = identity.identify(http, self._settings, now)
        principal = principal_digest(caller.principal)
        token = None if initializing else http.headers.get(SESSION_HEADER)
        pays = observability.current().payer = payer(caller.principal, http.address)
        session = None if token is None else self._opened(token, principal, pays)
        revision = revisions.HEADERS[header] if header or not session else session.revision
        ends = requests.lambda_deadline(context, now)
        return Exchange(
            http, event, caller, principal, revision, session, requests.gateway_deadline(http, ends, now), ends
        )

    def _opened(self, token: str, principal: str | None, pays: str) -> Session:
        if self._seals is None:
            reason = "session_without_keys"
            raise SessionNotFound(reason=reason)
        return sessions.opened(token, self._seals.sessions, principal, caller=pays, now=self._now())

    def _answered(self, exchange: Exchange, kind: Kind, body: Any) -> Response:  # noqa: ANN401 - JSON
        http = exchange.http
        if kind == "batch":
            asks = any("method" in each and "id" in each for each in body)
            replies = [self._of_batch(exchange, each, asks=asks) for each in body]
            return writing.batched(http, [reply for reply in replies if reply])
        if kind == "request":
            return writing.replied(http, self._reply(exchange, body, may_ask=True), body["id"])
        if kind == "response":
            self._heard(exchange, body)
        else:
            self._told(exchange, body)
        return writing.empty(http, 202)

    def _of_batch(self, exchange: Exchange, message: Mapping[str, Any], *, asks: bool) -> Reply | None:
        # One POST may be fifty calls, each of a Lambda ("MUST support receiving JSON-RPC batches"): they have the time
        # of one. Nobody would hear what came of those that are later, so they are not run, and may be sent again.
        late = self._now() > exchange.deadline - SPARE_SECONDS
        if "method" not in message:
            try:
                if late:
                    raise Busy(LATE)
                self._heard(exchange, message)
            except McpError as error:
                if not asks:  # "If the server cannot accept the input, it MUST return an HTTP error status code"
                    raise
                gateway.note_error(observability.current(), error)  # but what else is in the batch has its own answers
            return None
        if "id" not in message:
            self._told(exchange, message)
            return None
        if late:
            return _refused(message["id"], Busy(LATE))
        if message["method"] == "initialize":  # "The initialize request MUST NOT be part of a JSON-RPC batch"
            return _refused(message["id"], MethodNotFound(NO_BATCH))
        return self._reply(exchange, message, may_ask=False)

    def _heard(self, exchange: Exchange, message: Mapping[str, Any]) -> None:
        """Take a response to a question of ours."""
        if self._conversations is None or exchange.session is None:
            raise NothingAsked
        self._conversations.heard(exchange, message)

    def _told(self, exchange: Exchange, message: Mapping[str, Any]) -> None:
        """Take a notification."""
        observability.current().conclude("complete")
        params = message.get("params")
        if message["method"] == "notifications/cancelled" and isinstance(params, dict) and self._conversations:
            self._conversations.cancel(exchange, params.get("requestId"))

    def _reply(self, exchange: Exchange, message: Mapping[str, Any], *, may_ask: bool) -> Reply:
        notes, method = observability.current(), message["method"]
        notes.conclude("complete")
        try:
            params = lifting.params(message.get("params") or {})
            if method in CALLS:
                return self._called(exchange, Call(message["id"], method, params), may_ask=may_ask)
            if method in LISTS:
                return self._listed(exchange, message["id"], method, params)
            if method == "completion/complete":
                outcome = self._runner.run(exchange, message["id"], method, params, {}, challenging=may_ask)
                return self._ended(exchange, Call(message["id"], method, params), outcome)
            result, more = self._handshake(exchange, message["id"], method, params)
            return Reply((writing.answer(message["id"], result),), headers=more)
        except PLAIN:
            raise
        except McpError as error:
            return _refused(message["id"], error)

    def _called(self, exchange: Exchange, call: Call, *, may_ask: bool) -> Reply:
        declared = self._may_be_asked(exchange, may_ask=may_ask)
        # an HTTP status would say nothing about the others of a batch, and these may have been run
        call, outcome = self._runner.call(exchange, call, declared, challenging=may_ask)
        if (
            outcome.passed is None
            and (outcome.asks or outcome.sheds)
            and (talk := self._talks(exchange, may_ask=may_ask))
        ):
            return talk.begin(exchange, call, outcome)
        return self._ended(exchange, call, outcome)

    def _talks(self, exchange: Exchange, *, may_ask: bool) -> Conversations | None:
        """Find who asks this client: it must come back for what follows, as most clients do since 2025-11-25."""
        session, since = exchange.session, self._settings.questions_since
        comes_back = session and session.comes_back and exchange.revision >= since
        return self._conversations if may_ask and comes_back and events.takes_stream(exchange.http) else None

    def _ended(self, exchange: Exchange, call: Call, outcome: Outcome) -> Reply:
        if outcome.passed is not None:
            return Reply(passed=outcome.passed)
        why = self._why(exchange)
        if outcome.asks or outcome.sheds:
            last = finals.unasked(call, outcome, why)
        else:
            last = finals.response(exchange, call, outcome, why)
        return Reply((*outcome.notifications, last))

    def _may_be_asked(self, exchange: Exchange, *, may_ask: bool) -> dict[str, Any]:
        """Say which of the client's capabilities a function may rely on now."""
        session = exchange.session
        if session and self._talks(exchange, may_ask=may_ask):
            return session.capabilities
        # whoever is told of a page by an error can open it without a mailbox (-32042)
        return {"elicitation": {"url": {}}} if session and "u" in session.declared and may_ask else {}

    def _why(self, exchange: Exchange) -> Why:
        if exchange.revision < self._settings.questions_since:
            return "revision"
        return "leaves" if exchange.session and not exchange.session.comes_back else "mailbox"

    def _listed(self, exchange: Exchange, id_: Any, method: str, params: Mapping[str, Any]) -> Reply:  # noqa: ANN401 - a JSON-RPC id
        cursor = params.get("cursor")
        known = (method, cursor, exchange.revision) if isinstance(cursor, str | None) else None
        result = self._lists.get(known) if known else None
        if result is None:
            call = Call(id_, method, params)
            outcome = self._runner.run(exchange, id_, method, params, {})
            if outcome.result is None:
                return self._ended(exchange, call, outcome)
            result = projecting.result(method, outcome.result, exchange.revision)
            if known:
                self._lists[known] = result
        return Reply((writing.answer(id_, result),))

    def _handshake(
        self,
        exchange: Exchange,
        id_: Any,  # noqa: ANN401 - a JSON-RPC id
        method: str,
        params: Mapping[str, Any],
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Answer what 2026-07-28 no longer knows."""
        if method == "initialize":
            return self._initialized(exchange, id_, params)
        # "Servers that emit log message notifications MUST declare the `logging` capability"; and what is not declared
        # is not there: resources/subscribe never is.
        if method == "logging/setLevel" and self._offered["logging"]:
            return {}, self._leveled(exchange, params)
        if method == "ping":
            return {}, {}
        raise MethodNotFound

    def _initialized(
        self,
        exchange: Exchange,
        id_: Any,  # noqa: ANN401 - a JSON-RPC id
        params: Mapping[str, Any],
    ) -> tuple[dict[str, Any], dict[str, str]]:
        revision = observability.current().revision = revisions.negotiated(params.get("protocolVersion"))
        found = self._runner.run(exchange, id_, "server/discover", {"_meta": {}}, {}).result or {}
        result: dict[str, Any] = {
            "protocolVersion": revision,
            "capabilities": projecting.capabilities(found),
            "serverInfo": found["_meta"][META_SERVER_INFO],
            **({"instructions": found["instructions"]} if "instructions" in found else {}),
        }
        ends = int(self._now()) + self._settings.session_seconds
        session = sessions.begun(params, revision, exchange.principal, ends=ends, rand=self._rand)
        return result, self._header(session)

    def _leveled(self, exchange: Exchange, params: Mapping[str, Any]) -> dict[str, str]:
        if params.get("level") not in LOG_LEVELS:
            text = f"params.level must be one of {', '.join(LOG_LEVELS)}"
            raise InvalidParams(text)
        if exchange.session is None:
            return {}
        # No server remembers it, so the session says it from now on. Not every client takes up a session's new id.
        return self._header(exchange.session._replace(level=params["level"]))

    def _header(self, session: Session) -> dict[str, str]:
        """Write the header that carries a session; "MAY assign a session ID": where there is no key, there is none."""
        if self._seals is None:
            return {}
        try:
            return {SESSION_HEADER: sessions.sealed(session, self._seals.sessions)}
        except McpError as error:
            notes = observability.current()
            gateway.note_error(notes, error)
            notes.outcome = "complete"
            return {}


def _refused(id_: RequestId, error: McpError) -> Reply:
    gateway.note_error(observability.current(), error)
    return Reply((writing.refusal(id_, error),))


def _initializes(body: Any) -> bool:  # noqa: ANN401 - JSON
    return isinstance(body, dict) and body.get("method") == "initialize"


def _note(kind: Kind, body: Any) -> None:  # noqa: ANN401 - JSON
    notes = observability.current()
    if kind in {"batch", "response"}:
        notes.method = BATCH if kind == "batch" else ANSWER
        return
    method = body["method"]
    notes.method = method if method in METHODS else observability.UNKNOWN
    if method in CALLS or method == "completion/complete":
        notes.handler = observability.UNKNOWN
