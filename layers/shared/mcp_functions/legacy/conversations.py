"""Asks clients of 2025 questions without a Lambda that waits for the answer.

The call's stream ends with the question. The answer arrives as a separate request, which claims the call in the mailbox
and runs its next round. The outcome stays there until the client resumes its stream, as clients do since 2025-11-25.
The questions of one round are asked one after the other: the next question's id holds the earlier answers.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from mcp_functions import observability
from mcp_functions.legacy import final_messages, stream_ids
from mcp_functions.legacy.answer_receiver import AnswerReceiver
from mcp_functions.legacy.responses import Reply
from mcp_functions.legacy.round_records import RoundRecorder, WaitingCall
from mcp_functions.legacy.stream_events import StreamEvents
from mcp_functions.legacy.stream_ids import StreamPosition
from mcp_functions.legacy.stream_resumer import StreamResumer
from mcp_functions.protocol.errors import McpError, Misconfigured, StateTooLarge

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.legacy.exchange import Exchange
    from mcp_functions.legacy.final_messages import Why
    from mcp_functions.legacy.mailbox import Mailbox
    from mcp_functions.legacy.runner import Call, Outcome, Runner
    from mcp_functions.legacy.token_seals import TokenSeals


class Conversations:
    """The calls that ask: `begin` and `cancel` one; `receive` takes an answer, `resume` a client's poll."""

    def __init__(
        self,
        seals: TokenSeals,
        mailbox: Callable[[], Mailbox],
        runner: Runner,
        *,
        question_seconds: int,
        now: Callable[[], float],
    ) -> None:
        """Use the parts of a deployment.

        Args:
            seals: of event ids and question ids.
            mailbox: returns the mailbox; called at the first question.
            runner: runs rounds.
            question_seconds: how long a question may be answered.
            now: unix seconds.

        """
        self._mailbox, self._events = mailbox, StreamEvents(seals.events)
        self._recorder = RoundRecorder(runner, seals.questions, question_seconds, now)
        self.receive = AnswerReceiver(seals.questions, mailbox, self._recorder, now).receive
        self.resume = StreamResumer(seals.events, mailbox, self._recorder, now).resume

    def begin(self, exchange: Exchange, call: Call, outcome: Outcome) -> Reply:
        """Ask the questions of a call's first round, or let the client return for its next round.

        The question is stored before the client sees it. If that fails, the call ends with an explanation, so that
        no user answers a question in vain.
        """
        stream = stream_ids.new_stream(exchange, call.id, ends=self._recorder.next_deadline())
        why: Why = "trouble"
        try:
            record = self._recorder.record(WaitingCall(exchange, stream, 0, call), outcome)
            if record.phase == "over":
                return Reply(tuple(record.messages))
            events = self._events.of_record(StreamPosition(stream, 0), record)
            self._mailbox().create(stream, record)
        except StateTooLarge as error:  # the record for its item, or the client's request id for an event id
            why, reason = "size", error.reason
        except McpError as error:
            reason = error.reason
            observability.current().misconfigured = isinstance(error, Misconfigured)
        else:
            return Reply(events=events)
        observability.current().reason = reason
        return Reply((*outcome.notifications, final_messages.not_asked_message(call, outcome, why)))

    def cancel(self, exchange: Exchange, request: object) -> None:
        """Cancel a waiting call: a later answer has no effect."""
        if exchange.session and isinstance(request, str | int) and not isinstance(request, bool):
            name = stream_ids.item_name(exchange.session.id, request)
            with suppress(McpError):
                self._mailbox().delete(name, exchange.principal)
