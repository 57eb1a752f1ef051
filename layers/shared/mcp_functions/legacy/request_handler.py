"""Handles one JSON-RPC request of a legacy client: a request comes in, a `Reply` goes out.

tools/call, prompts/get, resources/read   run as modern calls; a call that asks its user goes to `Conversations`
lists, completion/complete                run as modern requests
initialize, logging/setLevel, ping        answered here, because 2026-07-28 has removed them
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.http import events, outcomes
from mcp_functions.legacy import exchange as exchanges
from mcp_functions.legacy import final_messages, revisions, translation
from mcp_functions.legacy.errors import SessionNotFound
from mcp_functions.legacy.responses import Reply, error_message, result_message
from mcp_functions.legacy.runner import Call
from mcp_functions.protocol.constants import CALLS, LISTS, LOG_LEVELS, META_SERVER_INFO
from mcp_functions.protocol.errors import (
    CallerStopped,
    InsufficientScope,
    InvalidParams,
    McpError,
    MethodNotFound,
    Unauthorized,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.legacy.conversations import Conversations
    from mcp_functions.legacy.exchange import Exchange, Session
    from mcp_functions.legacy.final_messages import Why
    from mcp_functions.legacy.runner import Outcome, Runner
    from mcp_functions.legacy.sealed_ids import IdSeal
    from mcp_functions.protocol.wire_types import RequestId
    from mcp_functions.settings import Settings

# Clients act on the HTTP status of these errors. All others are JSON-RPC errors with status 200.
HTTP_ERRORS = (Unauthorized, InsufficientScope, CallerStopped, SessionNotFound)
CAPABILITIES = ("tools", "prompts", "resources", "completions", "logging")  # the capabilities of earlier revisions


class RequestHandler:
    """Runs calls, lists and completion on the modern server, and answers the methods that 2026-07-28 removed."""

    def __init__(
        self,
        settings: Settings,
        runner: Runner,
        seal: IdSeal | None,
        conversations: Conversations | None,
        now: Callable[[], float],
    ) -> None:
        """Use the parts of a deployment.

        Args:
            settings: the settings of the deployment.
            runner: runs modern requests.
            seal: the seal of session ids; None without a key.
            conversations: the calls that ask their user; None without a key or a table.
            now: the clock, in unix seconds.
        """
        self._settings = settings
        self._runner = runner
        self._session_seal = seal
        self._conversations = conversations
        self._now = now

    def reply(self, exchange: Exchange, message: Mapping[str, Any]) -> Reply:
        """Reply to a request; an error becomes a JSON-RPC error.

        Raises:
            Unauthorized, InsufficientScope, SessionNotFound: the HTTP status must show the problem.
        """
        observability.current().conclude("complete")
        params = translation.modern_params(message.get("params") or {})
        call = Call(message["id"], message["method"], params)
        try:
            return self._reply(exchange, call)
        except HTTP_ERRORS:
            raise
        except McpError as error:
            return error_reply(call.id, error)

    def _reply(self, exchange: Exchange, call: Call) -> Reply:
        if call.method in CALLS:
            return self._call(exchange, call)
        if call.method in LISTS or call.method == "completion/complete":
            capabilities = self._capabilities(exchange)
            outcome = self._runner.run(exchange, call, capabilities, raise_auth=not exchange.in_batch)
            return self._final_reply(exchange, call, outcome)
        if call.method == "initialize":
            return self._initialize(exchange, call)
        # 2025-11-25, server/utilities/logging: "Servers that emit log message notifications MUST declare the `logging`
        # capability". `resources/subscribe` is never declared.
        if call.method == "logging/setLevel" and self._runner.catalog["logging"]:
            return self._set_level(exchange, call)
        if call.method == "ping":
            return Reply((result_message(call.id, {}),))
        raise MethodNotFound

    def _call(self, exchange: Exchange, call: Call) -> Reply:
        capabilities = self._capabilities(exchange)
        # In a batch, an HTTP status would hide the results of the other calls.
        call, outcome = self._runner.call(exchange, call, capabilities, raise_auth=not exchange.in_batch)
        conversations = self._conversations_for(exchange)
        if outcome.is_unfinished and conversations:
            return conversations.begin(exchange, call, outcome)
        return self._final_reply(exchange, call, outcome)

    def _final_reply(self, exchange: Exchange, call: Call, outcome: Outcome) -> Reply:
        if outcome.passed is not None:
            return Reply(passed=outcome.passed)
        why = self._why_not(exchange)
        if outcome.is_unfinished:
            last = final_messages.not_asked_message(call, outcome, why)
        else:
            last = final_messages.final_message(exchange, call, outcome, why)
        return Reply((*outcome.notifications, last))

    def _conversations_for(self, exchange: Exchange) -> Conversations | None:
        """Return the conversations if this client can be asked now: it must resume the stream after its answer."""
        session = exchange.session
        if exchange.in_batch or session is None or not session.resumes_streams:
            return None
        if exchange.revision < self._settings.questions_since or not events.accepts_event_stream(exchange.http):
            return None
        return self._conversations

    def _capabilities(self, exchange: Exchange) -> dict[str, Any]:
        """Return the client's capabilities that a function may use now."""
        session = exchange.session
        if session is None or exchange.in_batch:
            return {}
        if self._conversations_for(exchange):
            return session.capabilities
        # The error -32042 asks a client to open a page, so that question needs no mailbox.
        pages: dict[str, Any] = {"elicitation": {"url": {}}} if "u" in session.declared else {}
        # A form of the host needs no mailbox either: each of its answers is a call.
        return {**session.apps, **pages}

    def _why_not(self, exchange: Exchange) -> Why:
        """Return why this client, which declared the capability, is not asked."""
        if exchange.revision < self._settings.questions_since:
            return "revision"
        if exchange.session and not exchange.session.resumes_streams:
            return "leaves"
        return "mailbox"

    def _initialize(self, exchange: Exchange, call: Call) -> Reply:
        revision = revisions.negotiate(call.params.get("protocolVersion"))
        observability.current().revision = revision
        ends = int(self._now()) + self._settings.session_seconds
        session = exchanges.new_session(call.params, revision, exchange.principal, ends=ends)
        discover = Call(call.id, "server/discover", {"_meta": {}})
        discovered = self._runner.run(exchange, discover, session.capabilities).result or {}
        capabilities = discovered["capabilities"]
        result: dict[str, Any] = {
            "protocolVersion": revision,
            "capabilities": {name: capabilities[name] for name in CAPABILITIES if name in capabilities},
            "serverInfo": discovered["_meta"][META_SERVER_INFO],
        }
        if "instructions" in discovered:
            result["instructions"] = discovered["instructions"]
        return Reply((result_message(call.id, result),), headers=self._session_header(session))

    def _set_level(self, exchange: Exchange, call: Call) -> Reply:
        """Return a new session id that holds the level. Some clients ignore it and keep the old level."""
        level = call.params.get("level")
        if level not in LOG_LEVELS:
            raise InvalidParams(message=f"params.level must be one of {', '.join(LOG_LEVELS)}")
        session = exchange.session
        headers = self._session_header(session._replace(level=level)) if session else {}
        return Reply((result_message(call.id, {}),), headers=headers)

    def _session_header(self, session: Session) -> dict[str, str]:
        """Return the header with the session id.

        The header is optional (2025-11-25, basic/transports, "Session Management": "MAY assign a session ID"), so it is
        left out if no key is available.
        """
        if self._session_seal is None:
            return {}
        try:
            return {exchanges.SESSION_HEADER: self._session_seal.seal({"v": 1, **session._asdict()})}
        except McpError as error:
            notes = observability.current()
            outcomes.note_error(notes, error)
            notes.outcome = "complete"  # the error is in the log, but the request succeeds without a session
            return {}


def error_reply(id_: RequestId, error: McpError) -> Reply:
    """Note an error in the log, and return it as a JSON-RPC error."""
    outcomes.note_error(observability.current(), error)
    return Reply((error_message(id_, error),))
