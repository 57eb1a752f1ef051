"""Calls of clients of 2025 that ask their user, without a Lambda that waits for the answer.

    the client sends          the server, a new process each time
    POST tools/call           runs round 1, which asks; stores the phase ASKED; the stream ends with the question
    GET  Last-Event-ID        finds no answer: the client must return later (`streams.resume`)
    POST the answer           stores the phase RUNNING, runs round 2, stores its result in the phase OVER; 202
    GET  Last-Event-ID        responds with the result

A round is one run of the call's handler, with the answers so far. A table has a record for each call, whose phase says
what the call waits for. It changes ASKED to RUNNING only once, so an answer that is sent twice runs one round. How a
round ended decides the next phase:

    the handler asks           ASKED: the first question goes to the client; its id holds the call and the others
    the time was up            OUT_OF_TIME: a later request of the client runs the next round
    the call has ended         OVER: the response goes to the client

A round may ask several questions. The client gets one after the other: the JSON-RPC id of each question holds the
earlier answers and the remaining questions, sealed (encrypted and authenticated).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions import observability
from mcp_functions.legacy import explanations, responses, translation
from mcp_functions.legacy.call_ids import PendingQuestion
from mcp_functions.legacy.call_store import CallRecord, Phase
from mcp_functions.legacy.errors import AccessDenied, OutcomeLost, ResultLost, UnknownQuestion
from mcp_functions.legacy.explanations import Obstacle
from mcp_functions.legacy.runner import run_rounds
from mcp_functions.protocol.errors import InvalidRequest, McpError, Misconfigured, StateTooLarge
from mcp_functions.protocol.messages import value_at
from mcp_functions.rounds.unfinished import describe_request
from mcp_functions.store import Conflict, ItemTooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.legacy.call_ids import Call, CallStream
    from mcp_functions.legacy.call_store import CallStore, StoredRecord
    from mcp_functions.legacy.request import LegacyRequest
    from mcp_functions.legacy.runner import Outcome
    from mcp_functions.store import Item


def receive_answer(request: LegacyRequest, message: Mapping[str, Any]) -> None:
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
    if message.get("result") is not None and message.get("error") is not None:
        raise InvalidRequest(message="A response holds a result or an error, and not both")
    question = store.ids.read_question(message["id"], request.owner)
    notes = observability.current()
    notes.conclude("complete")
    try:
        # No attempt is repeated after its round has run: `WaitingCall.run_next_round` then raises no error.
        store.retry(lambda: _continue_call(request, store, question, message), request.http.gateway_deadline)
    except Conflict:  # the same answer, sent twice at the same time, has continued the call
        notes.reason = "answered_before"


def receive_notification(request: LegacyRequest, message: Mapping[str, Any]) -> None:
    """Cancel the waiting call that a client names: a later answer has no effect. Other notifications need no action."""
    observability.current().conclude("complete")
    store = request.deployment.call_store
    request_id = value_at(message, "params", "requestId")
    if message["method"] != "notifications/cancelled" or type(request_id) not in (str, int):
        return
    if store and request.session:
        # A notification has no response. If the table is unavailable, the call ends at its deadline.
        with suppress(McpError):
            store.delete(request.session.id, request_id, request.owner.principal)


def _continue_call(
    request: LegacyRequest, store: CallStore, question: PendingQuestion, message: Mapping[str, Any]
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
    result = message.get("result")
    if not isinstance(result, dict):  # the client could not ask its user
        notes.reason = "client_error"
        asked = dict(stored.record.messages[-1])
        last = explanations.client_error(question.call, asked, message.get("error"))
        store.replace(stored.item, waiting.end_record(last))
        return
    answer = {name: value for name, value in result.items() if name != "_meta"}
    answers = {**question.answers, question.key: answer}
    if question.rest:
        store.replace(stored.item, waiting.question_record(question.rest, answers))
    else:
        waiting.run_next_round(stored, answers)


class WaitingCall(NamedTuple):
    """A call between two rounds, and the HTTP request in which it continues."""

    request: LegacyRequest  # the HTTP request of the client
    store: CallStore  # the table with the record of the call
    stream: CallStream  # distinguishes the call from all others
    call: Call  # the method and params of the call, and the state of its last round
    step: int = 0  # how many questions the call has asked the client

    def run_next_round(self, stored: StoredRecord, answers: Mapping[str, Any] | None) -> CallRecord | None:
        """Run the next round of the call and return its record; None if the table could not keep any record.

        Then a later poll of the client gets an error: OutcomeUnknown, or QuestionExpired if it has cancelled the call.
        The log has the reason.

        Args:
            stored: the record of the call so far. It becomes RUNNING, so that no other request runs the same round.
            answers: the answers to the questions of the last round, by key; None if it asked nothing.

        Raises:
            Conflict: another request runs the round.
            McpError: the record could not become RUNNING, so the round did not run.
            AccessDenied: the access token of the request does not suffice, so the round did not run.
        """
        request = self.request
        running = self.store.claim(stored, request.http.lambda_deadline)
        capabilities = request.session.capabilities if request.session else {}
        unsent = tuple(stored.record.messages) if stored.record.phase == Phase.OUT_OF_TIME else ()
        outcome = run_rounds(request, self.call, capabilities, answers, unsent)
        if outcome.refusal is not None:
            # The call waits again as before. If that cannot be stored, it ends: a later poll gets OutcomeUnknown.
            with suppress(McpError, Conflict):
                self.store.retry(lambda: self.store.replace(running, stored.record), request.http.lambda_deadline)
            raise AccessDenied(outcome.refusal)
        try:
            # The round may have had effects, so its outcome must survive a short outage of KMS or the table.
            return self.store.retry(lambda: self._store_outcome(running, outcome), request.http.lambda_deadline)
        except Conflict:  # the client has cancelled the call, so its item is gone
            observability.current().reason = "cancelled"
            return None
        except McpError as error:
            observability.current().reason = error.reason
            return self._store_error(running)

    def _store_outcome(self, running: Item, outcome: Outcome) -> CallRecord:
        """Store the record of a round's outcome, and return it."""
        record = self.outcome_record(outcome)
        try:
            self.store.replace(running, record)
        except ItemTooLarge:
            record = self.end_record(responses.error_message(self.call.id, ResultLost().to_json()))
            self.store.replace(running, record)
        return record

    def _store_error(self, running: Item) -> CallRecord | None:
        """End a call whose outcome could not be stored, so that its client does not wait; None if that fails too."""
        record = self.end_record(responses.error_message(self.call.id, OutcomeLost().to_json()))
        with suppress(McpError, Conflict):
            self.store.replace(running, record)
            return record
        return None

    def outcome_record(self, outcome: Outcome) -> CallRecord:
        """Return the record of a round's outcome."""
        call = self.call._replace(state=outcome.state)
        if outcome.needs_time:
            try:
                self.store.check_size(call, {})
            except ItemTooLarge as error:
                observability.current().reason = error.reason
                last = explanations.cannot_continue(call, outcome, Obstacle.TOO_LARGE)
                return self.end_record(last, outcome.notifications)
            return CallRecord(self.stream.nonce, self.step, Phase.OUT_OF_TIME, outcome.notifications, call)
        if outcome.questions:
            return self._replace(call=call).question_record(outcome.questions, {}, outcome.notifications)
        return self.end_record(translation.legacy_response(self.request, call, outcome), outcome.notifications)

    def question_record(
        self, questions: Mapping[str, Any], answers: Mapping[str, Any], unsent: Sequence[Mapping[str, Any]] = ()
    ) -> CallRecord:
        """Return the record that asks the first of these questions. If one cannot be asked, the record ends the call.

        Args:
            questions: the remaining questions of the round, by key.
            answers: the answers to earlier questions of the round, by key.
            unsent: notifications that the client gets before the question.
        """
        notes = observability.current()
        step = self.step + 1
        stream = self.stream._replace(ends=self.request.answer_deadline)
        (key, question), *others = questions.items()
        method = question["method"]
        pending = PendingQuestion(stream, step, key, method, self.call, answers, rest=dict(others))
        try:
            # All questions are translated now, so that no user answers the first when a later one cannot be asked.
            first, *_later = [
                translation.legacy_question(each, self.request.revision, f"{stream.nonce}-{step}")
                for each in questions.values()
            ]
            self.store.check_size(self.call, answers)
            id_ = self.store.ids.write_question(pending)
        except translation.NotInRevision:
            obstacle = Obstacle.NOT_IN_REVISION
        except StateTooLarge as error:
            notes.reason = error.reason
            obstacle = Obstacle.TOO_LARGE
        except Misconfigured as error:
            notes.reason = error.reason
            notes.misconfigured = True
            obstacle = Obstacle.NO_KEY
        else:
            messages = [*unsent, {"jsonrpc": "2.0", "id": id_, **first}]
            return CallRecord(stream.nonce, step, Phase.ASKED, messages, until=stream.ends)
        described = map(describe_request, questions.values())
        return self.end_record(explanations.explanation(self.call, described, obstacle), unsent)

    def end_record(self, response: Mapping[str, Any], unsent: Sequence[Mapping[str, Any]] = ()) -> CallRecord:
        """Return the record of a call that ends with this response, after the unsent notifications."""
        return CallRecord(self.stream.nonce, self.step + 1, Phase.OVER, [*unsent, response])
