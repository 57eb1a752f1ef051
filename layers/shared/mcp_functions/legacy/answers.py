"""Answers of clients of 2025 to the questions of their calls, and their notifications."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, cast

from mcp_functions import observability
from mcp_functions.legacy import explanations
from mcp_functions.legacy.call_store import Phase
from mcp_functions.legacy.errors import UnknownQuestion
from mcp_functions.legacy.waiting_calls import WaitingCall
from mcp_functions.protocol.errors import InvalidRequest, McpError
from mcp_functions.protocol.messages import value_at
from mcp_functions.store import Conflict

if TYPE_CHECKING:
    from mcp_functions.legacy.call_ids import PendingQuestion
    from mcp_functions.legacy.call_store import CallStore
    from mcp_functions.legacy.request import LegacyRequest
    from mcp_functions.protocol.wire_types import InputRequest, InputResponse, JSONRPCMessage


def receive_answer(request: LegacyRequest, response: JSONRPCMessage) -> None:
    """Receive one response of a client. A late or repeated answer has no effect.

    Raises:
        UnknownQuestion: this server did not ask this client.
        InvalidRequest: the response has a result and an error.
        AccessDenied: the access token does not suffice for the next round; the question is still open.
        TemporarilyUnavailable, Misconfigured: the answer cannot be stored, and the call did not continue.
    """
    store = request.deployment.call_store
    if store is None or request.session is None:
        raise UnknownQuestion
    # 2025-11-25, basic, "Responses": "Either a `result` or an `error` MUST be set. A response MUST NOT set both."
    # `revisions.message_kind` has refused a message that sets neither.
    if response.get("result") is not None and response.get("error") is not None:
        raise InvalidRequest(message="A response holds a result or an error, and not both")
    question = store.ids.read_question(response["id"], request.owner)
    notes = observability.current()
    notes.conclude("complete")
    try:
        # No attempt is repeated after its round has run: `WaitingCall.run_next_round` then raises no error.
        store.retry(lambda: _continue_call(request, store, question, response), request.http.gateway_deadline)
    except Conflict:  # the same answer, sent twice at the same time, has continued the call
        notes.reason = "answered_before"


def _continue_call(
    request: LegacyRequest, store: CallStore, question: PendingQuestion, response: JSONRPCMessage
) -> None:
    """Continue a call with its answer; Conflict if another request continues it at the same time."""
    notes = observability.current()
    stored = store.find(question.stream)
    if stored is None:
        notes.reason = "answered_late"
        return
    if stored.record.phase != Phase.ASKED or stored.record.step != question.step:
        notes.reason = "answered_before"
        return
    if request.deployment.now() >= question.stream.ends:
        notes.reason = "answered_late"
        return
    waiting = WaitingCall(request, store, question.stream, question.call, question.step)
    result = response.get("result")
    if not isinstance(result, dict):  # the client could not ask its user
        notes.reason = "client_error"
        asked = cast("InputRequest", stored.record.messages[-1])
        last = explanations.client_error(question.call, asked, response.get("error"))
        store.replace(stored.item, waiting.end_record(last))
        return
    answer = cast("InputResponse", {name: value for name, value in result.items() if name != "_meta"})
    answers = {**question.answers, question.key: answer}
    if question.rest:
        store.replace(stored.item, waiting.question_record(question.rest, answers))
    else:
        waiting.run_next_round(stored, answers)


def receive_notification(request: LegacyRequest, notification: JSONRPCMessage) -> None:
    """Cancel the waiting call that a client names: a later answer has no effect. Other notifications need no action."""
    observability.current().conclude("complete")
    store = request.deployment.call_store
    request_id = value_at(notification, "params", "requestId")
    if notification["method"] != "notifications/cancelled" or type(request_id) not in (str, int):
        return
    if store and request.session:
        # A notification has no response. If the table is unavailable, the call ends at its deadline.
        with suppress(McpError):
            store.delete(request.session.id, request_id, request.owner.principal)
