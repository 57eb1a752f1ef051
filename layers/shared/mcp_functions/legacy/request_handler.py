"""Handles one JSON-RPC request of a legacy client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.http import events, outcomes
from mcp_functions.legacy import final_messages, request_translation
from mcp_functions.legacy.errors import SessionNotFound
from mcp_functions.legacy.responses import Reply, error_message
from mcp_functions.legacy.runner import Call
from mcp_functions.protocol.constants import CALLS, LISTS
from mcp_functions.protocol.errors import CallerStopped, InsufficientScope, McpError, Unauthorized

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.legacy.conversations import Conversations
    from mcp_functions.legacy.exchange import Exchange
    from mcp_functions.legacy.final_messages import Why
    from mcp_functions.legacy.handshake import Handshake
    from mcp_functions.legacy.runner import Outcome, Runner
    from mcp_functions.protocol.wire_types import RequestId

HTTP_ERRORS = (
    Unauthorized,
    InsufficientScope,
    CallerStopped,
    SessionNotFound,
)  # clients act on the HTTP status of these


class RequestHandler:
    """Handles requests: calls, lists and completion on the modern server, the other methods in the handshake."""

    def __init__(
        self, runner: Runner, handshake: Handshake, conversations: Conversations | None, questions_since: str
    ) -> None:
        """Use the conversations, None without a key or a table, for clients from the revision `questions_since` on."""
        self._runner, self._handshake = runner, handshake
        self._conversations, self._since = conversations, questions_since

    def reply(self, exchange: Exchange, message: Mapping[str, Any], *, in_batch: bool) -> Reply:
        """Reply to a request; an error becomes a JSON-RPC error.

        Raises:
            Unauthorized, InsufficientScope, SessionNotFound: the HTTP status must show the problem.
        """
        observability.current().conclude("complete")
        params = request_translation.modern_params(message.get("params") or {})
        call = Call(message["id"], message["method"], params)
        try:
            return self._reply(exchange, call, in_batch=in_batch)
        except HTTP_ERRORS:
            raise
        except McpError as error:
            return error_reply(call.id, error)

    def _reply(self, exchange: Exchange, call: Call, *, in_batch: bool) -> Reply:
        if call.method in CALLS:
            return self._call(exchange, call, in_batch=in_batch)
        if call.method in LISTS or call.method == "completion/complete":
            capabilities = self._capabilities(exchange, in_batch=in_batch)
            outcome = self._runner.run(exchange, call, capabilities, raise_auth=not in_batch)
            return self._final_reply(exchange, call, outcome)
        return self._handshake.reply(exchange, call)

    def _call(self, exchange: Exchange, call: Call, *, in_batch: bool) -> Reply:
        capabilities = self._capabilities(exchange, in_batch=in_batch)
        # In a batch, an HTTP status would hide the results of the other calls.
        call, outcome = self._runner.call(exchange, call, capabilities, raise_auth=not in_batch)
        conversations = self._conversations_for(exchange, in_batch=in_batch)
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

    def _conversations_for(self, exchange: Exchange, *, in_batch: bool) -> Conversations | None:
        """Return the conversations if this client can be asked now: it must resume the stream after its answer."""
        session = exchange.session
        if in_batch or session is None or not session.resumes_streams:
            return None
        if exchange.revision < self._since or not events.accepts_event_stream(exchange.http):
            return None
        return self._conversations

    def _capabilities(self, exchange: Exchange, *, in_batch: bool) -> dict[str, Any]:
        """Return the client's capabilities that a function may use now."""
        session = exchange.session
        if session is None or in_batch:
            return {}
        if self._conversations_for(exchange, in_batch=in_batch):
            return session.capabilities
        # The error -32042 asks a client to open a page, so that question needs no mailbox.
        pages: dict[str, Any] = {"elicitation": {"url": {}}} if "u" in session.declared else {}
        # A form of the host needs no mailbox either: each of its answers is a call.
        return {**session.apps, **pages}

    def _why_not(self, exchange: Exchange) -> Why:
        """Return why this client, which declared the capability, is not asked."""
        if exchange.revision < self._since:
            return "revision"
        if exchange.session and not exchange.session.resumes_streams:
            return "leaves"
        return "mailbox"


def error_reply(id_: RequestId, error: McpError) -> Reply:
    """Note an error in the log, and return it as a JSON-RPC error."""
    outcomes.note_error(observability.current(), error)
    return Reply((error_message(id_, error),))
