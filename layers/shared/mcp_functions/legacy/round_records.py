"""Runs the rounds of calls that ask, and writes the outcome of each as the record that the mailbox stores.

A round runs the handler of a call once more, with the answers so far. Its outcome becomes a `CallRecord`:

    the round asks            "asked", with the first question; the question's sealed id holds the call and the others
    the round ran out of time "working", with the call
    the call has ended        "over", with its result or an error
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions import observability
from mcp_functions.legacy import final_messages, responses, translation
from mcp_functions.legacy.errors import ResultLost
from mcp_functions.legacy.mailbox import CallRecord
from mcp_functions.legacy.sealed_ids import PendingQuestion
from mcp_functions.protocol.errors import McpError, Misconfigured
from mcp_functions.rounds.input_requests import describe_request
from mcp_functions.store import ItemTooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.legacy.exchange import Exchange
    from mcp_functions.legacy.final_messages import Why
    from mcp_functions.legacy.mailbox import Mailbox, StoredRecord
    from mcp_functions.legacy.runner import Call, Outcome, Runner
    from mcp_functions.legacy.sealed_ids import CallStream, IdSeal

MAX_QUESTIONS = 32  # the most questions that one round may ask


class WaitingCall(NamedTuple):
    """A call that waits for its client, or continues."""

    exchange: Exchange  # the HTTP request in which it continues
    stream: CallStream  # the event streams that bring its messages
    step: int  # how many times it has stopped for the client
    call: Call


class RoundRecorder:
    """Runs rounds and writes their records."""

    def __init__(self, runner: Runner, seal: IdSeal, question_seconds: int, now: Callable[[], float]) -> None:
        """Use a runner, the seal of question ids, the time to answer a question, and a clock (unix seconds)."""
        self._runner = runner
        self._question_seal = seal
        self._question_seconds = question_seconds
        self._now = now

    def next_deadline(self) -> int:
        """Return when a question that is asked now expires, in unix seconds."""
        return int(self._now()) + self._question_seconds

    def run(
        self,
        waiting: WaitingCall,
        mailbox: Mailbox,
        claim: StoredRecord,
        answers: Mapping[str, Any] | None,
        notifications: Sequence[Mapping[str, Any]] = (),
    ) -> CallRecord | None:
        """Run the next round of a claimed call and store its record; None if the record could not be stored.

        Args:
            waiting: the call.
            mailbox: the mailbox that has the call's record.
            claim: the record, which this function has reserved.
            answers: the answers of the round, by key; None if the round asked nothing.
            notifications: messages of earlier rounds, which the client has not seen.
        """
        exchange = waiting.exchange
        capabilities = exchange.session.capabilities if exchange.session else {}
        call, outcome = self._runner.call(exchange, waiting.call, capabilities, answers)
        waiting = waiting._replace(call=call)
        outcome = outcome._replace(notifications=(*notifications, *outcome.notifications))
        try:
            # The round may have had effects, so its outcome must survive a short outage of KMS or the table.
            record = mailbox.retry(lambda: self.record(waiting, outcome), exchange.ends)
            is_stored = mailbox.replace(claim, record, exchange.ends)
        except ItemTooLarge:
            record = _over(waiting, [responses.error_message(call.id, ResultLost())])
            is_stored = mailbox.replace(claim, record, exchange.ends)
        except McpError as error:
            # Nothing is stored. The lease of the claim ends, and the client's next poll gets OutcomeUnknown.
            observability.current().reason = error.reason
            return None
        if not is_stored:
            observability.current().reason = "cancelled"
            return None
        return record

    def record(self, waiting: WaitingCall, outcome: Outcome) -> CallRecord:
        """Return the record of a round's outcome."""
        if outcome.needs_time:
            return CallRecord(waiting.stream.nonce, waiting.step, "working", outcome.notifications, waiting.call)
        if outcome.questions:
            return self.ask(waiting, outcome.questions, {}, outcome.notifications)
        last = final_messages.final_message(waiting.exchange, waiting.call, outcome, "mailbox")
        return _over(waiting, [*outcome.notifications, last])

    def ask(
        self,
        waiting: WaitingCall,
        questions: Mapping[str, Any],
        answers: Mapping[str, Any],
        notifications: Sequence[Mapping[str, Any]] = (),
    ) -> CallRecord:
        """Return the record that asks the first of a round's questions; the question's id holds the others."""
        revision = waiting.exchange.revision
        stream = waiting.stream._replace(ends=self.next_deadline())
        step = waiting.step + 1
        elicitation_id = f"{stream.nonce}-{step}"
        requests = [translation.legacy_question(each, revision, elicitation_id) for each in questions.values()]
        first_request = requests[0]
        why: Why = "words"  # the client's revision cannot express one of the questions
        if first_request is not None and None not in requests and len(requests) <= MAX_QUESTIONS:
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
                id_ = self._question_seal.seal(pending._asdict())
            except Misconfigured as error:  # the id would be too large, or KMS refuses
                observability.current().reason = error.reason
                why = "size"
            else:
                messages = [*notifications, {"jsonrpc": "2.0", "id": id_, **first_request}]
                return CallRecord(stream.nonce, step, "asked", messages, until=stream.ends)
        last = final_messages.explanation_message(waiting.call, map(describe_request, questions.values()), why)
        return _over(waiting, [*notifications, last])


def _over(waiting: WaitingCall, messages: Sequence[Mapping[str, Any]]) -> CallRecord:
    """Return the record of a call that has ended."""
    return CallRecord(waiting.stream.nonce, waiting.step + 1, "over", messages)
