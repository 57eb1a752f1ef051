"""A call that waits for its client between two rounds. A round runs the call's handler with the answers so far.

A table keeps a record of the call. How a round ended decides the phase of the record:

    the handler asks           ASKED: the first question goes to the client; its id holds the call and the others
    the time was up            OUT_OF_TIME: a later request of the client runs the next round
    the call has ended         OVER: the response goes to the client
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions import observability
from mcp_functions.apps.unfinished import describe_request
from mcp_functions.legacy import final_messages, responses, translation
from mcp_functions.legacy.call_ids import PendingQuestion
from mcp_functions.legacy.call_store import CallRecord, Phase
from mcp_functions.legacy.errors import ResultLost
from mcp_functions.legacy.final_messages import Obstacle
from mcp_functions.legacy.runner import run_rounds
from mcp_functions.protocol.errors import McpError, Misconfigured, StateTooLarge
from mcp_functions.store import Conflict, ItemTooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.legacy.call import Call
    from mcp_functions.legacy.call_ids import CallStream
    from mcp_functions.legacy.call_store import CallStore, StoredRecord
    from mcp_functions.legacy.request import LegacyRequest
    from mcp_functions.legacy.runner import Outcome

MAX_QUESTIONS = 32  # the most questions that one round may ask


class WaitingCall(NamedTuple):
    """A call between two rounds, and the HTTP request in which it continues."""

    request: LegacyRequest  # the HTTP request of the client
    store: CallStore  # the table with the record of the call
    stream: CallStream  # distinguishes the call from all others
    call: Call  # the method and params of the call, and the state of its last round
    step: int = 0  # how many questions the call has asked the client
    notifications: Sequence[Mapping[str, Any]] = ()  # progress and log messages that the client has not received

    def run_next_round(self, stored: StoredRecord, answers: Mapping[str, Any] | None) -> CallRecord | None:
        """Run the next round of the call and return its record; None if the table could not keep the record.

        Then a later poll of the client gets an error: OutcomeUnknown, or QuestionExpired if it has cancelled the call.
        The log has the reason.

        Args:
            stored: the record of the call so far. It becomes RUNNING, so that no other request runs the same round.
            answers: the answers to the questions of the last round, by key; None if it asked nothing.

        Raises:
            Conflict: another request runs the round.
            McpError: the record could not become RUNNING, so the round did not run.
        """
        running = self.store.claim(stored, self.request.lambda_deadline, self.request.gateway_deadline)
        session = self.request.session
        outcome = run_rounds(self.request, self.call, session.capabilities if session else {}, answers)
        try:
            return self._store_outcome(running, outcome)
        except Conflict:  # the client has cancelled the call, so its item is gone
            observability.current().reason = "cancelled"
        except McpError as error:
            observability.current().reason = error.reason
        return None

    def _store_outcome(self, running: StoredRecord, outcome: Outcome) -> CallRecord:
        """Store the record of a round's outcome, and return it."""
        deadline = self.request.lambda_deadline
        # The round may have had effects, so its outcome must survive a short outage of KMS or the table.
        record = self.store.retry(lambda: self.outcome_record(outcome), deadline)
        try:
            self.store.replace(running, record, deadline)
        except ItemTooLarge:
            lost = responses.error_message(self.call.id, ResultLost().to_json())
            record = self._replace(notifications=()).end_record(lost)
            self.store.replace(running, record, deadline)
        return record

    def outcome_record(self, outcome: Outcome) -> CallRecord:
        """Return the record of a round's outcome."""
        call = self.call._replace(state=outcome.state)
        notifications = (*self.notifications, *outcome.notifications)
        after = self._replace(call=call, notifications=notifications)
        if outcome.needs_time:
            return CallRecord(
                nonce=self.stream.nonce, step=self.step, phase=Phase.OUT_OF_TIME, messages=notifications, call=call
            )
        if outcome.questions:
            return after.question_record(outcome.questions, answers={})
        return after.end_record(final_messages.final_message(self.request, call, outcome))

    def question_record(self, questions: Mapping[str, Any], answers: Mapping[str, Any]) -> CallRecord:
        """Return the record that asks the first of these questions. If one cannot be asked, the record ends the call.

        Args:
            questions: the remaining questions of the round, by key.
            answers: the answers to earlier questions of the round, by key.
        """
        if len(questions) > MAX_QUESTIONS:
            return self._not_asked_record(questions, Obstacle.TOO_MANY_QUESTIONS)
        step = self.step + 1
        try:
            # All questions are translated now, so that no user answers the first when a later one cannot be asked.
            requests = [
                translation.legacy_question(question, self.request.revision, f"{self.stream.nonce}-{step}")
                for question in questions.values()
            ]
        except translation.NotInRevision:
            return self._not_asked_record(questions, Obstacle.NOT_IN_REVISION)
        (key, question), *others = questions.items()
        stream = self.stream._replace(ends=self.request.answer_deadline)
        pending = PendingQuestion(
            stream=stream,
            step=step,
            key=key,
            method=question["method"],
            call=self.call,
            answers=answers,
            rest=dict(others),
        )
        try:
            id_ = self.store.ids.write_question(pending)
        except Misconfigured as error:
            observability.current().reason = error.reason
            is_too_large = isinstance(error, StateTooLarge)
            return self._not_asked_record(questions, Obstacle.TOO_LARGE if is_too_large else Obstacle.NO_KEY)
        messages = [*self.notifications, {"jsonrpc": "2.0", "id": id_, **requests[0]}]
        return CallRecord(nonce=stream.nonce, step=step, phase=Phase.ASKED, messages=messages, until=stream.ends)

    def end_record(self, response: Mapping[str, Any]) -> CallRecord:
        """Return the record of a call that has ended with this response."""
        messages = [*self.notifications, response]
        return CallRecord(nonce=self.stream.nonce, step=self.step + 1, phase=Phase.OVER, messages=messages)

    def _not_asked_record(self, questions: Mapping[str, Any], obstacle: Obstacle) -> CallRecord:
        """Return the record of a call that ends because its client cannot be asked; the response has the questions."""
        described = map(describe_request, questions.values())
        return self.end_record(final_messages.explanation_message(self.call, described, obstacle))
