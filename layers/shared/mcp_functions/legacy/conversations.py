"""Asks clients of 2025 questions without a Lambda that waits for the answer.

    the client sends          the server, a new process each time
    POST tools/call           runs round 1, which asks; stores the phase "asked"; the stream ends with the question
    GET  Last-Event-ID        finds no answer: the client must return later (`streams.resume`)
    POST the answer           claims the call (phase "running"), runs round 2, stores its result (phase "over"); 202
    GET  Last-Event-ID        responds with the result

    round    one run of the handler of a call, with the answers so far
    phase    what the mailbox says about the call: "asked", "running", "working" or "over"
    step     how many times the call has stopped for its client; an answer counts only for the step of its question
    claim    the write that changes "asked" to "running": the table accepts one, so a repeated answer runs nothing

The questions of one round are asked one after the other: the JSON-RPC id of the next question is sealed (encrypted and
authenticated), and holds the earlier answers.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.http import events
from mcp_functions.legacy import final_messages, sealed_ids, streams
from mcp_functions.legacy.errors import UnknownQuestion
from mcp_functions.legacy.final_messages import Obstacle
from mcp_functions.legacy.mailbox import CallRecord
from mcp_functions.legacy.responses import Reply
from mcp_functions.legacy.round_records import WaitingCall, answer_deadline, ask, record_outcome, run_round
from mcp_functions.legacy.sealed_ids import CallStream, StreamPosition
from mcp_functions.protocol.errors import InvalidRequest, McpError, Misconfigured, StateTooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.legacy.exchange import Exchange
    from mcp_functions.legacy.mailbox import Mailbox, StoredRecord
    from mcp_functions.legacy.runner import Call, Outcome
    from mcp_functions.legacy.sealed_ids import PendingQuestion

RESULT_AND_ERROR = "A response holds a result or an error, and not both"


def obstacle_to_asking(exchange: Exchange) -> Obstacle | None:
    """Return what keeps this server from asking this client now; None if it can be asked."""
    session = exchange.session
    if session is None:
        return Obstacle.NOT_DECLARED
    if exchange.revision < exchange.deployment.settings.questions_since:
        return Obstacle.REVISION_TOO_EARLY
    if not session.resumes_streams:
        return Obstacle.NEVER_RESUMES
    if exchange.in_batch or not events.accepts_event_stream(exchange.http):
        return Obstacle.NO_EVENT_STREAM
    if exchange.deployment.mailbox is None:
        return Obstacle.NO_TABLE
    return None


def begin(exchange: Exchange, mailbox: Mailbox, call: Call, outcome: Outcome) -> Reply:
    """Ask the questions of a call's first round, or let the client return for its next round.

    The question is stored before the client sees it. If that fails, the call ends with an explanation, so that no user
    answers a question in vain.
    """
    stream = CallStream(
        session=exchange.session.id if exchange.session else "",
        request=call.id,
        nonce=sealed_ids.new_nonce(),
        principal=exchange.principal,
        ends=answer_deadline(exchange),
    )
    try:
        record = record_outcome(exchange, mailbox, WaitingCall(stream, 0, call), outcome)
        if record.phase == "over":
            return Reply(tuple(record.messages))
        first_events = streams.events_after(mailbox, StreamPosition(stream, 0), record)
        mailbox.create(stream, record)
    except StateTooLarge as error:
        # The record does not fit into an item of the table, or the client's request id into an event id.
        return _not_asked(call, outcome, Obstacle.TOO_LARGE, error)
    except McpError as error:
        observability.current().misconfigured = isinstance(error, Misconfigured)
        return _not_asked(call, outcome, Obstacle.TABLE_UNAVAILABLE, error)
    return Reply(events=first_events)


def receive_answer(exchange: Exchange, message: Mapping[str, Any]) -> None:
    """Receive one response of a client. A late or repeated answer has no effect.

    Raises:
        UnknownQuestion: this server did not ask this client.
        InvalidRequest: the response has a result and an error.
        TemporarilyUnavailable, Misconfigured: the answer cannot be stored, and the call did not continue.
    """
    mailbox = exchange.deployment.mailbox
    if mailbox is None or exchange.session is None:
        raise UnknownQuestion
    # 2025-11-25, basic, "Responses": "Either a `result` or an `error` MUST be set. A response MUST NOT set both." A
    # message with neither is no response to `revisions.message_kind`.
    if message.get("result") is not None and message.get("error") is not None:
        raise InvalidRequest(RESULT_AND_ERROR)
    question = sealed_ids.open_question_id(message["id"], mailbox.seals.questions, exchange)
    notes = observability.current()
    notes.conclude("complete")
    stored = mailbox.retry(lambda: mailbox.find(question.stream), exchange.deadline)
    if stored is None:
        notes.reason = "answered_late"
    elif stored.record.step != question.step or stored.record.phase != "asked":
        notes.reason = "answered_before"
    elif exchange.deployment.now() >= question.stream.ends:
        notes.reason = "answered_late"
    else:
        is_first = _continue_call(exchange, mailbox, question, stored, message)
        if not is_first:
            notes.reason = "answered_before"


def receive_notification(exchange: Exchange, message: Mapping[str, Any]) -> None:
    """Cancel the waiting call that a client names: a later answer has no effect. Other notifications need no action."""
    observability.current().conclude("complete")
    mailbox = exchange.deployment.mailbox
    params = message.get("params")
    if message["method"] != "notifications/cancelled" or not isinstance(params, dict):
        return
    request = params.get("requestId")
    if not isinstance(request, str | int) or isinstance(request, bool):
        return
    if mailbox and exchange.session:
        # A notification has no response. If the table is unavailable, the call ends at its deadline.
        with suppress(McpError):
            mailbox.delete(exchange.session.id, request, exchange.principal)


def _continue_call(
    exchange: Exchange, mailbox: Mailbox, question: PendingQuestion, stored: StoredRecord, message: Mapping[str, Any]
) -> bool:
    """Continue a call with its answer; False if another delivery of the answer was faster."""
    result = message.get("result")
    if not isinstance(result, dict):  # the client could not ask its user
        observability.current().reason = "client_error"
        request = dict(stored.record.messages[-1])
        last = final_messages.client_error_message(question.call, request, message.get("error"))
        ended = CallRecord(question.stream.nonce, question.step + 1, "over", [last])
        return mailbox.replace(stored, ended, exchange.deadline) is not None
    waiting = WaitingCall(question.stream, question.step, question.call)
    answer = {name: value for name, value in result.items() if name != "_meta"}
    answers = {**question.answers, question.key: answer}
    if question.rest:
        following = mailbox.retry(lambda: ask(exchange, mailbox, waiting, question.rest, answers), exchange.deadline)
        return mailbox.replace(stored, following, exchange.deadline) is not None
    # The last answer of the round: only the delivery that claims the call runs it.
    claim = mailbox.claim(stored, exchange.ends, exchange.deadline)
    if claim is None:
        return False
    run_round(exchange, mailbox, waiting, claim, answers)
    return True


def _not_asked(call: Call, outcome: Outcome, obstacle: Obstacle, error: McpError) -> Reply:
    """Return the reply that ends a call, because its question cannot be stored."""
    observability.current().reason = error.reason
    last = final_messages.not_asked_message(call, outcome, obstacle)
    return Reply((*outcome.notifications, last))
