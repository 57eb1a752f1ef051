"""Runs the rounds of calls that ask, and writes the outcome of each as the record that the mailbox stores.

A round runs the handler of a call once more, with the answers so far. Its outcome becomes a `CallRecord`:

    the round asks            "asked", with the first question; the question's sealed id holds the call and the others
    the round ran out of time "working", with the call
    the call has ended        "over", with its result or an error
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions import observability
from mcp_functions.apps.channels import describe_request
from mcp_functions.legacy import final_messages, responses, translation
from mcp_functions.legacy.errors import ResultLost
from mcp_functions.legacy.final_messages import Obstacle
from mcp_functions.legacy.mailbox import CallRecord
from mcp_functions.legacy.runner import run_call
from mcp_functions.legacy.sealed_ids import PendingQuestion
from mcp_functions.protocol.errors import McpError, Misconfigured
from mcp_functions.store import ItemTooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.legacy.exchange import Exchange
    from mcp_functions.legacy.mailbox import Mailbox, StoredRecord
    from mcp_functions.legacy.runner import Call, Outcome
    from mcp_functions.legacy.sealed_ids import CallStream

MAX_QUESTIONS = 32  # the most questions that one round may ask


class WaitingCall(NamedTuple):
    """A call between two rounds, and the request in which it continues."""

    exchange: Exchange  # the HTTP request of the client
    mailbox: Mailbox  # has the record of the call
    stream: CallStream  # the event streams that bring its messages
    step: int  # the number of the last delivery to the client; 0 if there was none
    call: Call
    unseen: Sequence[Mapping[str, Any]] = ()  # notifications that the client has not received


def run_round(waiting: WaitingCall, claim: StoredRecord, answers: Mapping[str, Any] | None) -> CallRecord | None:
    """Run the next round of a call and store its record; None if the record could not be stored.

    Args:
        waiting: the call.
        claim: the call's record, which this function has reserved.
        answers: the answers of the round, by key; None if the last round asked nothing.
    """
    notes = observability.current()
    exchange = waiting.exchange
    mailbox = waiting.mailbox
    capabilities = exchange.session.capabilities if exchange.session else {}
    outcome = run_call(exchange, waiting.call, capabilities, answers)
    try:
        # The round may have had effects, so its outcome must survive a short outage of KMS or the table.
        record = mailbox.retry(lambda: record_outcome(waiting, outcome), exchange.ends)
        stored = mailbox.replace(claim, record, exchange.ends)
    except ItemTooLarge:
        record = over(waiting, [responses.error_message(waiting.call.id, ResultLost().to_json())])
        stored = mailbox.replace(claim, record, exchange.ends)
    except McpError as error:
        # Nothing is stored. The lease of the claim ends, and the client's next poll gets OutcomeUnknown.
        notes.reason = error.reason
        return None
    if stored is None:
        notes.reason = "cancelled"
        return None
    return record


def record_outcome(waiting: WaitingCall, outcome: Outcome) -> CallRecord:
    """Return the record of a round's outcome."""
    call = waiting.call._replace(state=outcome.state)
    unseen = (*waiting.unseen, *outcome.notifications)
    if outcome.needs_time:
        return CallRecord(waiting.stream.nonce, waiting.step, "working", unseen, call)
    if outcome.questions:
        return ask(waiting._replace(call=call, unseen=unseen), outcome.questions, answers={})
    # The round could use every declared capability, so one that is missing was not declared.
    last = final_messages.final_message(waiting.exchange, call, outcome, Obstacle.NOT_DECLARED)
    return over(waiting, [*unseen, last])


def ask(waiting: WaitingCall, questions: Mapping[str, Any], answers: Mapping[str, Any]) -> CallRecord:
    """Return the record that asks the first of a round's questions; its sealed id holds the others and the answers."""
    revision = waiting.exchange.revision
    stream = waiting.stream._replace(ends=answer_deadline(waiting.exchange))
    step = waiting.step + 1
    elicitation_id = f"{stream.nonce}-{step}"
    # All questions are translated now, so that no user answers the first one when a later one cannot be asked.
    requests = [translation.legacy_question(each, revision, elicitation_id) for each in questions.values()]
    first_request = requests[0]
    if first_request is None or None in requests or len(requests) > MAX_QUESTIONS:
        return _cannot_ask(waiting, questions, Obstacle.NOT_IN_REVISION)
    (key, question), *others = questions.items()
    pending = PendingQuestion(
        stream=stream,
        step=step,
        key=key,
        method=question["method"],
        call=waiting.call,
        answers=answers,
        rest=dict(others),
    )
    try:
        id_ = waiting.mailbox.seals.questions.seal(pending._asdict())
    except Misconfigured as error:  # the id would be too large, or KMS refuses
        observability.current().reason = error.reason
        return _cannot_ask(waiting, questions, Obstacle.TOO_LARGE)
    messages = [*waiting.unseen, {"jsonrpc": "2.0", "id": id_, **first_request}]
    return CallRecord(stream.nonce, step, "asked", messages, until=stream.ends)


def answer_deadline(exchange: Exchange) -> int:
    """Return when a question that is asked now expires, in unix seconds."""
    deployment = exchange.deployment
    return int(deployment.now()) + deployment.settings.question_seconds


def _cannot_ask(waiting: WaitingCall, questions: Mapping[str, Any], obstacle: Obstacle) -> CallRecord:
    """Return the record of a call that ends, with its questions in words, because its client cannot be asked."""
    described = map(describe_request, questions.values())
    last = final_messages.explanation_message(waiting.call, described, obstacle)
    return over(waiting, [*waiting.unseen, last])


def over(waiting: WaitingCall, messages: Sequence[Mapping[str, Any]]) -> CallRecord:
    """Return the record of a call that has ended; the last message is its response."""
    return CallRecord(waiting.stream.nonce, waiting.step + 1, "over", messages)
