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
from typing import TYPE_CHECKING, NamedTuple, cast

from mcp_functions import observability
from mcp_functions.legacy import explanations, responses, translation
from mcp_functions.legacy.call_ids import PendingQuestion
from mcp_functions.legacy.call_store import CallRecord, Phase
from mcp_functions.legacy.errors import AccessDenied, OutcomeLost, ResultLost
from mcp_functions.legacy.explanations import Reason
from mcp_functions.legacy.runner import run_rounds
from mcp_functions.protocol.errors import McpError, Misconfigured, StateTooLarge
from mcp_functions.rounds.unfinished import describe_request
from mcp_functions.store import Conflict, ItemTooLarge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_functions.legacy.call_ids import CallStream, LegacyCall
    from mcp_functions.legacy.call_store import CallStore, StoredRecord
    from mcp_functions.legacy.outcomes import RoundOutcome
    from mcp_functions.legacy.request import LegacyRequest
    from mcp_functions.protocol.wire_types import InputRequests, InputResponses, JSONRPCMessage
    from mcp_functions.store import Item


class WaitingCall(NamedTuple):
    """A call between two rounds, and the HTTP request in which it continues."""

    request: LegacyRequest  # the HTTP request of the client
    store: CallStore  # the table with the record of the call
    stream: CallStream  # distinguishes the call from all others
    call: LegacyCall  # the method and params of the call, and the state of its last round
    step: int = 0  # how many questions the call has asked the client

    def run_next_round(self, stored: StoredRecord, answers: InputResponses | None) -> CallRecord | None:
        """Run the next round of the call and return its record; None if the table could not keep any record.

        Then a later poll of the client gets an error: OutcomeUnknown, or QuestionExpired if it has cancelled the call.
        The log has the reason. The stored record becomes RUNNING, so that no other request runs the same round.

        Raises:
            Conflict: another request runs the round.
            McpError: the record could not become RUNNING, so the round did not run.
            AccessDenied: the access token of the request does not suffice, so the round did not run.
        """
        request = self.request
        running = self.store.begin_round(stored, request.http.lambda_deadline)
        capabilities = request.session.capabilities if request.session else {}
        unsent = tuple(stored.record.messages) if stored.record.phase == Phase.OUT_OF_TIME else ()
        outcome = run_rounds(request, self.call, capabilities, answers, unsent)
        if outcome.access_denied is not None:
            # The call waits again as before. If that cannot be stored, it ends: a later poll gets OutcomeUnknown.
            with suppress(McpError, Conflict):
                self.store.retry(lambda: self.store.replace(running, stored.record), request.http.lambda_deadline)
            raise AccessDenied(outcome.access_denied)
        try:
            # The round may have had effects, so its outcome must survive a short outage of KMS or the table.
            return self.store.retry(lambda: self._store_outcome(running, outcome), request.http.lambda_deadline)
        except Conflict:  # the client has cancelled the call, so its item is gone
            observability.current().reason = "cancelled"
            return None
        except McpError as error:
            observability.current().reason = error.reason
            return self._store_error(running)

    def _store_outcome(self, running: Item, outcome: RoundOutcome) -> CallRecord:
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

    def outcome_record(self, outcome: RoundOutcome) -> CallRecord:
        """Return the record of a round's outcome."""
        call = self.call._replace(state=outcome.state)
        if outcome.needs_time:
            return self._out_of_time_record(call, outcome)
        if outcome.questions:
            return self._replace(call=call).question_record(outcome.questions, {}, outcome.notifications)
        return self.end_record(translation.legacy_response(self.request, call, outcome), outcome.notifications)

    def _out_of_time_record(self, call: LegacyCall, outcome: RoundOutcome) -> CallRecord:
        """Return the record of a call that a later request continues. A call that is too large ends."""
        try:
            self.store.check_size(call, {})
        except ItemTooLarge as error:
            observability.current().reason = error.reason
            last = explanations.cannot_continue(call, outcome, Reason.TOO_LARGE)
            return self.end_record(last, outcome.notifications)
        return CallRecord(self.stream.nonce, self.step, Phase.OUT_OF_TIME, outcome.notifications, call)

    def question_record(
        self, questions: InputRequests, answers: InputResponses, unsent: Sequence[JSONRPCMessage] = ()
    ) -> CallRecord:
        """Return the record that asks the first of the remaining questions. If one cannot be asked, it ends the call.

        The client gets the unsent notifications before the question.
        """
        notes = observability.current()
        ends = self.request.answer_deadline
        try:
            question = self._write_question(questions, answers, ends)
        except translation.NotInRevision:
            reason = Reason.NOT_IN_REVISION
        except StateTooLarge as error:
            notes.reason = error.reason
            reason = Reason.TOO_LARGE
        except Misconfigured as error:
            notes.reason = error.reason
            notes.misconfigured = True
            reason = Reason.NO_KEY
        else:
            return CallRecord(self.stream.nonce, self.step + 1, Phase.ASKED, [*unsent, question], until=ends)
        described = map(describe_request, questions.values())
        return self.end_record(explanations.explanation(self.call, described, reason), unsent)

    def _write_question(self, questions: InputRequests, answers: InputResponses, ends: int) -> JSONRPCMessage:
        """Return the first question. Its id holds the call, the earlier answers and the other questions.

        Raises:
            NotInRevision: the client's revision cannot express one of the questions.
            StateTooLarge: the call and its answers do not fit.
            Misconfigured: no key is available.
        """
        step = self.step + 1
        (key, question), *others = questions.items()
        stream = self.stream._replace(ends=ends)
        pending = PendingQuestion(stream, step, key, question["method"], self.call, answers, rest=dict(others))
        # All questions are translated now, so that no user answers the first when a later one cannot be asked.
        first, *_later = [
            translation.legacy_question(each, self.request.revision, f"{stream.nonce}-{step}")
            for each in questions.values()
        ]
        self.store.check_size(self.call, answers)
        id_ = self.store.ids.write_question(pending)
        return cast("JSONRPCMessage", {"jsonrpc": "2.0", "id": id_, **first})

    def end_record(self, response: JSONRPCMessage, unsent: Sequence[JSONRPCMessage] = ()) -> CallRecord:
        """Return the record of a call that ends with this response, after the unsent notifications."""
        return CallRecord(self.stream.nonce, self.step + 1, Phase.OVER, [*unsent, response])
