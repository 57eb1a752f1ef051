"""Runs the rounds of a call that asks its user, and records the outcome of each in the mailbox.

A round is one run of the call's handler, with the answers so far. Its outcome becomes a `CallRecord` in a phase:

    the round asks             ASKED: the first question goes to the client; its id holds the call and the others
    the time was up            OUT_OF_TIME: a later request of the client runs the next round
    the call has ended         OVER: the response goes to the client
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions import observability
from mcp_functions.apps.unasked import describe_request
from mcp_functions.legacy import final_messages, responses, translation
from mcp_functions.legacy.call_ids import PendingQuestion
from mcp_functions.legacy.errors import ResultLost
from mcp_functions.legacy.mailbox import CallRecord, Phase
from mcp_functions.legacy.obstacles import Obstacle
from mcp_functions.legacy.runner import run_rounds
from mcp_functions.protocol.errors import McpError, Misconfigured, StateTooLarge
from mcp_functions.store import Conflict, ItemTooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.legacy.call_ids import CallStream
    from mcp_functions.legacy.exchange import Exchange
    from mcp_functions.legacy.mailbox import Mailbox, StoredRecord
    from mcp_functions.legacy.modern_requests import Call
    from mcp_functions.legacy.runner import Outcome


class WaitingCall(NamedTuple):
    """A call between two rounds, and the request in which it continues."""

    exchange: Exchange  # the HTTP request of the client
    mailbox: Mailbox  # keeps the record of the call
    stream: CallStream  # identifies the call
    step: int  # the last step of the call (`call_ids`); 0 for none
    call: Call  # the call, with the state of its last round
    unseen: Sequence[Mapping[str, Any]] = ()  # notifications that the client has not received


def run_next_round(waiting: WaitingCall, claim: StoredRecord, answers: Mapping[str, Any] | None) -> CallRecord:
    """Run the next round of a call, store its record and return it; return the claim if it could not be stored.

    Args:
        waiting: the call.
        claim: the call's record in the phase RUNNING, from `Mailbox.claim`: no other function runs this round.
        answers: the answers to the questions of the last round, by key; None if it asked nothing.
    """
    session = waiting.exchange.session
    outcome = run_rounds(waiting.exchange, waiting.call, session.capabilities if session else {}, answers)
    try:
        return _store_outcome(waiting, claim, outcome)
    except Conflict:  # the client has cancelled the call, so its item is gone
        observability.current().reason = "cancelled"
    except McpError as error:
        # Nothing is stored. After `CallRecord.until`, the client's next poll gets OutcomeUnknown.
        observability.current().reason = error.reason
    return claim.record


def _store_outcome(waiting: WaitingCall, claim: StoredRecord, outcome: Outcome) -> CallRecord:
    """Store the record of a round's outcome, and return it."""
    mailbox = waiting.mailbox
    deadline = waiting.exchange.lambda_deadline
    # The round may have had effects, so its outcome must survive a short outage of KMS or the table.
    record = mailbox.retry(lambda: outcome_record(waiting, outcome), deadline)
    try:
        mailbox.replace(claim, record, deadline)
    except ItemTooLarge:
        record = end_record(waiting, [responses.error_message(waiting.call.id, ResultLost().to_json())])
        mailbox.replace(claim, record, deadline)
    return record


def outcome_record(waiting: WaitingCall, outcome: Outcome) -> CallRecord:
    """Return the record of a round's outcome."""
    call = waiting.call._replace(state=outcome.state)
    unseen = (*waiting.unseen, *outcome.notifications)
    if outcome.needs_time:
        return CallRecord(waiting.stream.nonce, waiting.step, Phase.OUT_OF_TIME, unseen, call)
    if outcome.questions:
        return question_record(waiting._replace(call=call, unseen=unseen), outcome.questions, answers={})
    last = final_messages.final_message(waiting.exchange, call, outcome)
    return end_record(waiting, [*unseen, last])


MAX_QUESTIONS = 32  # the most questions that one round may ask


def question_record(waiting: WaitingCall, questions: Mapping[str, Any], answers: Mapping[str, Any]) -> CallRecord:
    """Return the record that asks the first of these questions. If one cannot be asked, the record ends the call.

    Args:
        waiting: the call.
        questions: the remaining questions of the round, by key.
        answers: the answers to earlier questions of the round, by key.
    """
    if len(questions) > MAX_QUESTIONS:
        return _not_asked_record(waiting, questions, Obstacle.TOO_MANY_QUESTIONS)
    revision = waiting.exchange.revision
    stream = waiting.stream._replace(ends=answer_deadline(waiting.exchange))
    step = waiting.step + 1
    elicitation_id = f"{stream.nonce}-{step}"
    try:
        # All questions are translated now, so that no user answers the first one when a later one cannot be asked.
        requests = [translation.legacy_question(each, revision, elicitation_id) for each in questions.values()]
    except translation.NotInRevision:
        return _not_asked_record(waiting, questions, Obstacle.NOT_IN_REVISION)
    (key, question), *others = questions.items()
    method = question["method"]
    pending = PendingQuestion(stream, step, key, method, call=waiting.call, answers=answers, rest=dict(others))
    try:
        id_ = waiting.mailbox.ids.write_question(pending)
    except Misconfigured as error:
        observability.current().reason = error.reason
        obstacle = Obstacle.TOO_LARGE if isinstance(error, StateTooLarge) else Obstacle.NO_KEY
        return _not_asked_record(waiting, questions, obstacle)
    messages = [*waiting.unseen, {"jsonrpc": "2.0", "id": id_, **requests[0]}]
    return CallRecord(stream.nonce, step, Phase.ASKED, messages, until=stream.ends)


def end_record(waiting: WaitingCall, messages: Sequence[Mapping[str, Any]]) -> CallRecord:
    """Return the record of a call that has ended; the last message is its response."""
    return CallRecord(waiting.stream.nonce, waiting.step + 1, Phase.OVER, messages)


def answer_deadline(exchange: Exchange) -> int:
    """Return when a question that is asked now expires, in unix seconds."""
    deployment = exchange.deployment
    return int(deployment.now()) + deployment.settings.question_seconds


def _not_asked_record(waiting: WaitingCall, questions: Mapping[str, Any], obstacle: Obstacle) -> CallRecord:
    """Return the record of a call that ends because its client cannot be asked; the response has the questions."""
    described = map(describe_request, questions.values())
    last = final_messages.explanation_message(waiting.call, described, obstacle)
    return end_record(waiting, [*waiting.unseen, last])
