"""Asks clients of 2025 questions without a Lambda that waits for the answer.

    begin    a call asks: store its record in the mailbox, and end the event stream with the question
    receive  the answer is a request of its own: claim the record, run the next round of the call, store the outcome
    resume   the client returns for the rest of its stream, as clients do since 2025-11-25, and gets the outcome

A round runs the handler of a call once more, with the answers so far. A claim reserves the record, so that an answer
that arrives twice runs one round. The questions of one round are asked one after the other: the JSON-RPC id of the next
question is sealed, and holds the earlier answers.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from mcp_functions import observability
from mcp_functions.legacy import final_messages, sealed_ids
from mcp_functions.legacy.mailbox import CallRecord
from mcp_functions.legacy.responses import Reply
from mcp_functions.legacy.round_records import RoundRecorder, WaitingCall
from mcp_functions.legacy.sealed_ids import CallStream, StreamPosition
from mcp_functions.legacy.streams import Streams
from mcp_functions.protocol.errors import InvalidRequest, McpError, Misconfigured, StateTooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.legacy.exchange import Exchange
    from mcp_functions.legacy.final_messages import Why
    from mcp_functions.legacy.mailbox import Mailbox, StoredRecord
    from mcp_functions.legacy.runner import Call, Outcome, Runner
    from mcp_functions.legacy.sealed_ids import IdSeals, PendingQuestion
    from mcp_functions.legacy.streams import Events
    from mcp_functions.protocol.wire_types import InputRequest

RESULT_AND_ERROR = "A response holds a result or an error, and not both"


class Conversations:
    """The calls that ask: `begin` and `cancel` one; `receive` takes an answer, `resume` a client's poll."""

    def __init__(
        self,
        seals: IdSeals,
        mailbox: Callable[[], Mailbox],
        runner: Runner,
        *,
        question_seconds: int,
        now: Callable[[], float],
    ) -> None:
        """Use the parts of a deployment.

        Args:
            seals: the seals of the ids that clients carry.
            mailbox: returns the mailbox, which it makes at the first question.
            runner: runs the rounds.
            question_seconds: how long a client may take to answer a question.
            now: the clock, in unix seconds.
        """
        self._question_seal = seals.questions
        self._mailbox = mailbox
        self._now = now
        self._recorder = RoundRecorder(runner, seals.questions, question_seconds, now)
        self._streams = Streams(seals.events, mailbox, self._recorder, now)

    def begin(self, exchange: Exchange, call: Call, outcome: Outcome) -> Reply:
        """Ask the questions of a call's first round, or let the client return for its next round.

        The question is stored before the client sees it. If that fails, the call ends with an explanation, so that
        no user answers a question in vain.
        """
        stream = CallStream(
            session=exchange.session.id if exchange.session else "",
            request=call.id,
            nonce=sealed_ids.new_nonce(),
            principal=exchange.principal,
            ends=self._recorder.next_deadline(),
        )
        try:
            record = self._recorder.record(WaitingCall(exchange, stream, 0, call), outcome)
            if record.phase == "over":
                return Reply(tuple(record.messages))
            events = self._streams.events_after(StreamPosition(stream, 0), record)
            self._mailbox().create(stream, record)
        except StateTooLarge as error:
            # The record does not fit into an item of the table, or the client's request id into an event id.
            return _not_asked(call, outcome, "size", error)
        except McpError as error:
            observability.current().misconfigured = isinstance(error, Misconfigured)
            return _not_asked(call, outcome, "trouble", error)
        return Reply(events=events)

    def resume(self, exchange: Exchange, last_event_id: str) -> Events | None:
        """Return the events after an event; None if no event can follow it."""
        return self._streams.resume(exchange, last_event_id)

    def cancel(self, exchange: Exchange, request: object) -> None:
        """Cancel the waiting call of a request id: a later answer has no effect.

        Errors of the table are ignored. A notification has no response, and the call then ends at its deadline.
        """
        if not isinstance(request, str | int) or isinstance(request, bool):
            return
        if exchange.session:
            with suppress(McpError):
                self._mailbox().delete(exchange.session.id, request, exchange.principal)

    def receive(self, exchange: Exchange, message: Mapping[str, Any]) -> None:
        """Receive one response of a client. A late or repeated answer has no effect.

        Raises:
            UnknownQuestion: this server did not ask this client.
            InvalidRequest: the response has a result and an error.
            TemporarilyUnavailable, Misconfigured: the answer cannot be stored, and the call did not continue.
        """
        # 2025-11-25, basic, "Responses": "Either a `result` or an `error` MUST be set. A response MUST NOT set both."
        if message.get("result") is not None and message.get("error") is not None:
            raise InvalidRequest(RESULT_AND_ERROR)
        question = sealed_ids.open_question_id(message["id"], self._question_seal, exchange)
        notes = observability.current()
        notes.conclude("complete")
        mailbox = self._mailbox()
        stored = mailbox.retry(lambda: mailbox.find(question.stream), exchange.deadline)
        if stored is None:
            notes.reason = "answered_late"
        elif stored.record.step != question.step or stored.record.phase != "asked":
            notes.reason = "answered_before"
        elif self._now() >= question.stream.ends:
            notes.reason = "answered_late"
        else:
            was_first = self._continue(exchange, question, stored, message)
            if not was_first:
                notes.reason = "answered_before"

    def _continue(
        self, exchange: Exchange, question: PendingQuestion, stored: StoredRecord, message: Mapping[str, Any]
    ) -> bool:
        """Continue a call with its answer; False if another delivery of the answer was faster."""
        mailbox = self._mailbox()
        waiting = WaitingCall(exchange, question.stream, question.step, question.call)
        result = message.get("result")
        if not isinstance(result, dict):
            return mailbox.replace(stored, _client_error(question, stored, message), exchange.deadline)
        answer = {name: value for name, value in result.items() if name != "_meta"}
        answers = {**question.answers, question.key: answer}
        if question.rest:
            following = mailbox.retry(lambda: self._recorder.ask(waiting, question.rest, answers), exchange.deadline)
            return mailbox.replace(stored, following, exchange.deadline)
        # The last answer of the round: only the delivery that claims the call runs it.
        claim = mailbox.claim(stored, exchange.ends, exchange.deadline)
        if claim is None:
            return False
        self._recorder.run(waiting, mailbox, claim, answers)
        return True


def _not_asked(call: Call, outcome: Outcome, why: Why, error: McpError) -> Reply:
    """Return the reply that ends a call, because its question cannot be stored."""
    observability.current().reason = error.reason
    last = final_messages.not_asked_message(call, outcome, why)
    return Reply((*outcome.notifications, last))


def _client_error(question: PendingQuestion, stored: StoredRecord, message: Mapping[str, Any]) -> CallRecord:
    """Return the record that ends a call, because its client could not ask its user."""
    observability.current().reason = "client_error"
    request = cast("InputRequest", stored.record.messages[-1])
    last = final_messages.client_error_message(question.call, request, message.get("error"))
    return CallRecord(question.stream.nonce, question.step + 1, "over", [last])
