"""Questions to clients that expect to be asked while they wait, with nobody waiting.

The call's stream ends with the question. The answer comes as a request of its own, is claimed in the mailbox, and the
next round runs there; what it came to waits until the client resumes its stream, as clients do since 2025-11-25.
Questions of one round are asked one after the other: what was answered rides in the next one's id.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from mcp_functions import observability
from mcp_functions.legacy import finals, projecting, tickets, writing
from mcp_functions.legacy.codes import NothingAsked, ResultLost, SessionNotFound, WaitedInVain
from mcp_functions.legacy.mailbox import Letter
from mcp_functions.legacy.sealing import KEPT_SECONDS
from mcp_functions.legacy.tickets import Place, Question, Stream
from mcp_functions.legacy.writing import Event, Reply
from mcp_functions.protocol.errors import (
    InternalError,
    InvalidRequest,
    InvalidRequestState,
    McpError,
    Misconfigured,
    OutcomeUnknown,
    StateTooLarge,
    TemporarilyUnavailable,
)
from mcp_functions.rounds.input_requests import in_words
from mcp_functions.store import ItemTooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.legacy.mailbox import Found, Mailbox
    from mcp_functions.legacy.running import Call, Exchange, Outcome, Runner
    from mcp_functions.legacy.sealing import Seals
    from mcp_functions.legacy.words import Why
    from mcp_functions.protocol.wire_types import InputRequest, RequestId

SOON_MS, LATEST_MS, GROWTH = 500, 5000, 1.4  # after which a client comes back: soon at first, then less often
MOST_POLLS = 7  # that count: after these it is LATEST_MS, however often a client comes
MAX_QUESTIONS = 32  # in one round
TOLD = ("asked", "over")  # phases in which there is something to tell a client; in the others it comes again
TWO = "A response holds a result or an error, and not both"
HALF = "the function returned half of a surrogate pair"


class Conversations:
    """Asks clients of 2025, and hears them."""

    def __init__(  # noqa: PLR0913 - what a conversation needs
        self,
        seals: Seals,
        mailbox: Callable[[], Mailbox],
        runner: Runner,
        *,
        question_seconds: int,
        now: Callable[[], float],
        rand: Callable[[int], bytes],
    ) -> None:
        """Remember what is needed; the mailbox is made when somebody asks."""
        self._seals, self._mailbox, self._runner = seals, mailbox, runner
        self._question_seconds, self._now, self._rand = question_seconds, now, rand

    def begin(self, exchange: Exchange, call: Call, outcome: Outcome) -> Reply:
        """Ask what a call asks, or have the client come back for what is not done yet.

        A user is asked nothing that cannot be heard: if the mailbox does not take the question, the call ends in words.
        """
        stream = tickets.begun(exchange, call.id, ends=self._ends(), rand=self._rand)
        why: Why = "trouble"
        try:
            letter = self._letter(exchange, stream, 0, call, outcome)
            if letter.phase == "over":
                return Reply(tuple(letter.messages))
            told = self._events(Place(stream, 0), letter)
            self._mailbox().open(stream, letter)
        except StateTooLarge as error:  # for the mailbox, or the client's own id for its event's
            why, reason = "size", error.reason
        except McpError as error:
            reason = error.reason
            observability.current().misconfigured = isinstance(error, Misconfigured)
        else:
            return Reply(events=told)
        observability.current().reason = reason
        return Reply((*outcome.notifications, finals.unasked(call, outcome, why)))

    def heard(self, exchange: Exchange, message: Mapping[str, Any]) -> None:
        """Take a client's answer, and run what it was needed for. An answer that comes too late, or again, is in vain.

        Raises:
            NothingAsked: this client was never asked that.
            InvalidRequest: it says two things.
            TemporarilyUnavailable, Misconfigured: the answer cannot be kept, and nothing was run.

        """
        notes = observability.current()
        # (basic, "Responses") "Either a `result` or an `error` MUST be set. A response MUST NOT set both."
        if message.get("result") is not None and message.get("error") is not None:
            raise InvalidRequest(TWO)
        try:
            question = tickets.question_of(message["id"], self._seals.questions, exchange.payer)
        except InvalidRequestState as error:
            raise NothingAsked(reason=f"question_{error.reason}") from None
        stream, mailbox = question.stream, self._mailbox()
        if not stream.belongs_to(exchange):
            reason = "question_session"
            raise NothingAsked(reason=reason)
        notes.conclude("complete")
        found: Found | None = mailbox.patiently(lambda: mailbox.find(stream), exchange.deadline)
        if found is None or (found.letter.step, found.letter.phase) != (question.step, "asked"):
            notes.reason = "answered_before" if found else "answered_late"
            return
        if self._now() >= stream.ends:
            notes.reason = "answered_late"
            return
        self._go_on(exchange, question, found, message)

    def _go_on(self, exchange: Exchange, question: Question, found: Found, message: Mapping[str, Any]) -> None:
        mailbox, stream, call = self._mailbox(), question.stream, question.call
        stream, said = stream._replace(ends=self._ends()), _answer(message)
        if said is None:
            observability.current().reason = "client_error"
            asked = cast("InputRequest", found.letter.messages[-1])
            last = finals.refused(call, asked, message.get("error"))
            letter = Letter(stream.nonce, question.step + 1, "over", [last])
        elif question.rest:
            answers = {**question.answers, question.key: said}
            ask = partial(self._asking, exchange, stream, question.step, call, question.rest, answers, ())
            letter = mailbox.patiently(ask, exchange.deadline)
        else:
            by = tickets.nonce(self._rand)
            claimed = mailbox.patiently(lambda: mailbox.claim(found, exchange.ends, by=by), exchange.deadline)
            if claimed:
                self._run(exchange, stream, claimed, call, {**question.answers, question.key: said})
            else:
                observability.current().reason = "answered_before"
            return
        if not mailbox.patiently(lambda: mailbox.replace(found, letter), exchange.deadline):
            observability.current().reason = "answered_before"

    def resume(self, exchange: Exchange, last_event_id: str) -> Sequence[Event] | None:
        """Give a client what came after an event; None if nothing can come.

        Raises:
            SessionNotFound: it is no event of this client's.

        """
        try:
            place = tickets.place_of(last_event_id, self._seals.events, exchange.payer)
        except InvalidRequestState as error:
            raise SessionNotFound(reason=f"event_{error.reason}") from None
        if not place.stream.belongs_to(exchange):
            reason = "event_session"
            raise SessionNotFound(reason=reason)
        if place.last:
            return None
        notes = observability.current()
        notes.conclude("complete")
        try:
            found = self._mailbox().find(place.stream)
        except TemporarilyUnavailable as error:
            notes.reason = error.reason
            return self._later(place, LATEST_MS)
        except McpError as error:
            notes.reason, notes.misconfigured = error.reason, True
            return _ended(place.stream.request, error)
        return self._since(exchange, place, found)

    def _since(  # noqa: PLR0911 - one for each phase
        self, exchange: Exchange, place: Place, found: Found | None
    ) -> Sequence[Event]:
        stream, now = place.stream, self._now()
        if found is None:
            observability.current().reason = "nothing_waits"
            return _ended(stream.request, WaitedInVain())
        letter = found.letter
        if letter.step > place.step and letter.phase in TOLD:
            return self._events(place, letter)
        if letter.phase == "asked" and now < letter.until:
            return self._later(place, min(LATEST_MS, int(SOON_MS * GROWTH**place.polls)))
        if letter.phase == "running" and now < letter.until:
            return self._later(place, SOON_MS)
        if letter.phase == "running":  # "past its deadline": nobody knows how far it came
            observability.current().reason = "runner_died"
            return _ended(stream.request, OutcomeUnknown())
        if letter.phase == "working" and letter.call:
            return self._work(exchange, place, found, letter.call)
        observability.current().reason = "not_answered"
        return _ended(stream.request, WaitedInVain())

    def _work(self, exchange: Exchange, place: Place, found: Found, call: Call) -> Sequence[Event]:
        """Go on with a call that ended its round without a question: the client has come, so there is time again."""
        stream = place.stream._replace(ends=self._ends())
        try:
            claimed = self._mailbox().claim(found, exchange.ends, by=tickets.nonce(self._rand))
        except McpError as error:
            observability.current().reason = error.reason
            claimed = None
        if claimed is None:
            return self._later(place, SOON_MS)
        letter = self._run(exchange, stream, claimed, call, None, found.letter.messages)
        return self._events(place, letter) if letter else self._later(place, SOON_MS)

    def cancel(self, exchange: Exchange, request: object) -> None:
        """Let nobody answer any more what a call asked."""
        if exchange.session and type(request) in (str, int):
            name = tickets.item_of(exchange.session.id, cast("RequestId", request))
            with suppress(McpError):
                self._mailbox().forget(name, exchange.principal)

    def _run(  # noqa: PLR0913, PLR0917 - a round, and where it stands
        self,
        exchange: Exchange,
        stream: Stream,
        claimed: Found,
        call: Call,
        answers: Mapping[str, Any] | None,
        said: Sequence[Mapping[str, Any]] = (),
    ) -> Letter | None:
        """Run what was claimed, and leave it for the client; None if nobody may hear of it any more."""
        mailbox, step = self._mailbox(), claimed.letter.step
        declared = exchange.session.capabilities if exchange.session else {}
        call, outcome = self._runner.call(exchange, call, declared, answers)
        outcome = outcome._replace(notifications=(*said, *outcome.notifications))
        try:
            # the round has run: neither KMS nor the table may lose what came of it at the first trouble
            letter = mailbox.patiently(lambda: self._letter(exchange, stream, step, call, outcome), exchange.ends)
            kept = mailbox.patiently(lambda: mailbox.replace(claimed, letter), exchange.ends)
        except ItemTooLarge:
            lost = [writing.refusal(call.id, ResultLost())]
            letter = Letter(stream.nonce, step + 1, "over", lost)
            kept = mailbox.patiently(lambda: mailbox.replace(claimed, letter), exchange.ends)
        except McpError as error:  # the lease will end, and the client hears that nobody knows
            observability.current().reason = error.reason
            return None
        if not kept:
            observability.current().reason = "cancelled"
        return letter if kept else None

    def _letter(self, exchange: Exchange, stream: Stream, step: int, call: Call, outcome: Outcome) -> Letter:
        """Say what a round leaves for the client."""
        if outcome.sheds:
            return Letter(stream.nonce, step, "working", list(outcome.notifications), call)
        if outcome.asks:
            return self._asking(exchange, stream, step, call, outcome.asks, {}, outcome.notifications)
        last = finals.response(exchange, call, outcome, "mailbox")
        return Letter(stream.nonce, step + 1, "over", [*outcome.notifications, last])

    def _asking(  # noqa: PLR0913, PLR0917 - a question, and where it stands
        self,
        exchange: Exchange,
        stream: Stream,
        step: int,
        call: Call,
        asks: Mapping[str, Any],
        answers: Mapping[str, Any],
        before: Sequence[Mapping[str, Any]],
    ) -> Letter:
        """Write the first of some questions, with the others in its id."""
        step += 1
        said = {
            key: projecting.question(each, exchange.revision, f"{stream.nonce}-{step}") for key, each in asks.items()
        }
        key = next(iter(asks))
        rest = {other: each for other, each in asks.items() if other != key}
        why: Why = "words"
        if None not in said.values() and len(asks) <= MAX_QUESTIONS:
            try:
                question = Question(stream, step, key, asks[key]["method"], call, answers, rest)
                id_ = tickets.question_id(question, self._seals.questions)
            except Misconfigured as error:  # it is too large, or KMS refuses
                observability.current().reason, why = error.reason, "size"
            else:
                message = {"jsonrpc": "2.0", "id": id_, **cast("dict[str, Any]", said[key])}
                return Letter(stream.nonce, step, "asked", [*before, message], until=stream.ends)
        last = finals.unanswered(call, map(in_words, asks.values()), why)
        return Letter(stream.nonce, step, "over", [*before, last])

    def _events(self, place: Place, letter: Letter) -> tuple[Event, ...]:
        """Write what follows an event: where the client stands, the messages, and where it stands then."""
        if letter.phase not in TOLD:
            return self._later(place, SOON_MS)
        if not writing.is_whole(letter.messages):  # Lambda would crash on it
            observability.current().reason = HALF
            return _ended(place.stream.request, InternalError())
        first = Event(None, self._place_id(place._replace(polls=0)), SOON_MS)
        *before, last = letter.messages
        reached = Place(place.stream, letter.step, last=letter.phase == "over")
        return (first, *map(Event, before), Event(last, self._place_id(reached)))

    def _later(self, place: Place, milliseconds: int) -> tuple[Event, ...]:
        """Have the client come again: "an event ID and an empty data field", and a `retry`."""
        return (Event(None, self._place_id(place._replace(polls=min(place.polls + 1, MOST_POLLS))), milliseconds),)

    def _place_id(self, place: Place) -> str:
        return tickets.place_id(place, self._seals.events)

    def _ends(self) -> int:
        return int(self._now()) + self._question_seconds


def kept_seconds(question_seconds: int) -> int:
    """Say how long a letter must be kept: as long as an answer may take, and then some."""
    return question_seconds + KEPT_SECONDS


def _ended(request: RequestId, error: McpError) -> tuple[Event, ...]:
    # without an id: nothing is to be fetched after it
    return (Event(writing.refusal(request, error)),)


def _answer(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Read what a client answered; None for an error, or for a result that is no object."""
    result = message.get("result")
    return {name: value for name, value in result.items() if name != "_meta"} if isinstance(result, dict) else None
