"""Runs the rounds of calls that ask, and writes the outcome of each as the record that the mailbox stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from mcp_functions import observability
from mcp_functions.legacy import final_messages, response_translation, responses, stream_ids
from mcp_functions.legacy.errors import ResultLost
from mcp_functions.legacy.mailbox import CallRecord
from mcp_functions.protocol.errors import McpError, Misconfigured
from mcp_functions.rounds.input_requests import describe_request
from mcp_functions.store import ItemTooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.legacy.exchange import Exchange
    from mcp_functions.legacy.final_messages import Why
    from mcp_functions.legacy.mailbox import Mailbox, StoredRecord
    from mcp_functions.legacy.runner import Call, Outcome, Runner
    from mcp_functions.legacy.stream_ids import CallStream
    from mcp_functions.legacy.token_seals import TokenSeal

MAX_QUESTIONS = 32  # in one round


class WaitingCall(NamedTuple):
    """A call, the exchange in which it continues, and how many times (`step`) it has stopped for the client."""

    exchange: Exchange
    stream: CallStream
    step: int
    call: Call


class RoundRecorder:
    """Runs rounds and writes their records."""

    def __init__(self, runner: Runner, seal: TokenSeal, question_seconds: int, now: Callable[[], float]) -> None:
        """Use a runner, the seal of question ids, the time to answer a question, and a clock (unix seconds)."""
        self._runner, self._seal = runner, seal
        self._question_seconds, self._now = question_seconds, now

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
        """Run the next round of a claimed call and store its record; None if the record could not be stored."""
        exchange = waiting.exchange
        capabilities = exchange.session.capabilities if exchange.session else {}
        call, outcome = self._runner.call(exchange, waiting.call, capabilities, answers)
        outcome = outcome._replace(notifications=(*notifications, *outcome.notifications))
        try:
            # The round may have had effects, so its outcome must survive a short outage of KMS or the table.
            record = mailbox.retry(lambda: self.record(waiting._replace(call=call), outcome), exchange.ends)
            stored = mailbox.retry(lambda: mailbox.replace(claim, record), exchange.ends)
        except ItemTooLarge:
            record = _over(waiting, [responses.error_message(call.id, ResultLost())])
            stored = mailbox.retry(lambda: mailbox.replace(claim, record), exchange.ends)
        except McpError as error:  # the lease ends, and the client then gets OutcomeUnknown
            observability.current().reason = error.reason
            return None
        if not stored:
            observability.current().reason = "cancelled"
            return None
        return record

    def record(self, waiting: WaitingCall, outcome: Outcome) -> CallRecord:
        """Return the record of a round's outcome."""
        if outcome.needs_time:
            notifications = list(outcome.notifications)
            return CallRecord(waiting.stream.nonce, waiting.step, "working", notifications, waiting.call)
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
        step, stream = waiting.step + 1, waiting.stream
        revision, elicitation_id = waiting.exchange.revision, f"{stream.nonce}-{step}"
        translated = [
            response_translation.legacy_question(each, revision, elicitation_id) for each in questions.values()
        ]
        why: Why = "words"
        if None not in translated and len(questions) <= MAX_QUESTIONS:
            try:
                id_ = self._question_id(waiting, questions, answers)
            except Misconfigured as error:  # the id would be too large, or KMS refuses
                observability.current().reason, why = error.reason, "size"
            else:
                message = {"jsonrpc": "2.0", "id": id_, **cast("dict[str, Any]", translated[0])}
                return CallRecord(stream.nonce, step, "asked", [*notifications, message], until=stream.ends)
        last = final_messages.explanation_message(waiting.call, map(describe_request, questions.values()), why)
        return _over(waiting, [*notifications, last])

    def _question_id(self, waiting: WaitingCall, questions: Mapping[str, Any], answers: Mapping[str, Any]) -> str:
        key, *others = questions
        question = stream_ids.PendingQuestion(
            stream=waiting.stream,
            step=waiting.step + 1,
            key=key,
            method=questions[key]["method"],
            call=waiting.call,
            answers=answers,
            rest={other: questions[other] for other in others},
        )
        return stream_ids.seal_question_id(question, self._seal)


def _over(waiting: WaitingCall, messages: Sequence[Mapping[str, Any]]) -> CallRecord:
    return CallRecord(waiting.stream.nonce, waiting.step + 1, "over", messages)
