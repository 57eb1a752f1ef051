"""One round of a multi round-trip request, by replay.

A handler runs from its first line in every round. A question returns its answer if an earlier round received it;
otherwise the round ends with the question. The same holds for steps. The round does not know who carries the record to
the next round: the client in a sealed state, or the table in a task.
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from contextvars import ContextVar
from threading import TIMEOUT_MAX
from typing import TYPE_CHECKING, Any, NoReturn

from mcp_functions.protocol.errors import DeveloperError, InputRequired, ToolError
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.rounds.questions import Questions, check_text, message_of
from mcp_functions.rounds.record import EMPTY, Record, write_state
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable, Iterator, Mapping

    from mcp_functions.protocol.messages import Principal
    from mcp_functions.protocol.wire_types import InputRequest, JSONObject
    from mcp_functions.rounds.low_level import InputRequiredResult
    from mcp_functions.rounds.questions import WireQuestion
    from mcp_functions.rounds.step_call import StepCall

MARGIN_SECONDS = 2.0  # between the end of a step and the deadline: to seal, to answer, and for clocks that differ


class RoundRequest(NamedTuple):
    """The request of a round, with the limits of its deployment."""

    responses: Mapping[str, JSONObject] = EMPTY  # `inputResponses` as the client sent them
    capabilities: Mapping[str, Any] = EMPTY  # of the client
    meta: Mapping[str, Any] = EMPTY  # `_meta`: the progress token and the log level
    principal: Principal | None = None  # the caller; None without authentication
    scopes: frozenset[str] = frozenset()  # of the caller's token
    flow: str = ""  # the conversation's id, the same in all its rounds; "" if nothing can seal a state
    number: int = 1  # of the round in its conversation
    deadline: float = math.inf  # when the client stops waiting, in unix seconds
    now: Callable[[], float] = time.time  # in unix seconds
    camel_case: bool = False  # whether forms use camelCase on the wire
    max_sheds: int = 2  # rounds in a row that may end without a question
    single_use: bool = False  # whether the first round has to end before its first step
    has_app: bool = False  # whether the client's host shows a form for questions that the client cannot


DEFAULT_REQUEST = RoundRequest()


running_step: ContextVar[StepCall | None] = ContextVar("running_step", default=None)


class AuditRecord(NamedTuple):
    """The questions that one round asked, and how the questions of the round before were answered.

    If a client repeats a round, its record comes again with the same `flow` and `round`: use them as the key.

    Attributes:
        flow: the id of the conversation.
        round: counts its rounds from 1.
        handler: the name of the tool, prompt or resource.
        principal: digest of the caller, as in the state's claims; None without authentication.
        asked: key of each open question, to the message that the user sees (or the request's method).
        answered: key of each question that this request answered, to "accept", "decline" or "cancel"; "answer" if the
            client's model or the client itself answered; "invalid" if the answer did not fit and the question is asked
            again. It never holds the content of an answer.
        answered_by: "client" where an elicitation of the client was answered; "app" for a form that the host showed,
            which proves possession of the state and not a person; "model" for answers that the model relayed.
    """

    flow: str
    round: int
    handler: str
    principal: str | None
    asked: Mapping[str, str]
    answered: Mapping[str, str]
    answered_by: str = "client"


class Round:
    """One round: it combines the request with the record, and ends with a result or with questions."""

    ended = False  # InputRequired was raised; the author's code cannot undo that
    closed = False  # the handler has returned, and nothing more may happen
    developer_error: DeveloperError | None = None  # the first rule that the author's function broke
    error_for_model: str | None = None  # why the conversation cannot continue
    new_steps = 0
    handler_returned = False  # of an async handler: its tasks start no more steps
    progress_message = ""  # the last one of Progress
    on_step_recorded: Callable[[], object] | None = None  # a task sets it, to write the record at once
    must_stop: Callable[[], bool] | None = None  # a task sets it, to end the round before a step

    def __init__(
        self,
        request: RoundRequest = DEFAULT_REQUEST,
        record: Mapping[str, Any] = EMPTY,
        asked: Mapping[str, str] = EMPTY,
    ) -> None:
        """Read the record that the previous round left, and add the responses of the request.

        `asked` has the fingerprints of the previous round's questions by key, as the sealed state proves them.
        """
        self.request = request
        self.record = Record(record, asked)
        self.questions = Questions(self.record, request.responses)
        self.notifications: list[dict[str, Any]] = []  # for the client, before the result
        self.running_futures: set[Future[None]] = set()  # one for each step that an async handler waits for
        self.running_steps: set[str] = set()  # keys

    @property
    def requests(self) -> dict[str, InputRequest]:
        """The open questions, by key."""
        return self.questions.open_requests()

    @property
    def seconds_left(self) -> float:
        """Seconds in which the handler has to end, so that the answer arrives before the deadline."""
        return self.request.deadline - MARGIN_SECONDS - self.request.now()

    @property
    def unproven_responses(self) -> dict[str, JSONObject]:
        """Responses to questions that the sealed state does not contain."""
        answered = self.record.answered_keys()
        return {key: copy_json(response) for key, response in self.request.responses.items() if key not in answered}

    @property
    def started_at(self) -> int:
        """When the conversation began, in unix milliseconds: the recorded time, or now."""
        recorded = self.record.started_at
        return int(self.request.now() * 1000) if recorded is None else recorded

    def record_start(self) -> None:
        """Record when the conversation began, so that later rounds know it."""
        self.record.started_at = self.started_at

    @property
    def enclosing_step(self) -> str | None:
        """The key of the step whose function calls; None outside of steps."""
        step = running_step.get()
        # A task or thread that a step started keeps its context variables after the step has ended.
        if step is None or step.round is not self or step.step_key not in self.running_steps:
            return None
        return step.step_key

    @contextmanager
    def noting_errors(self) -> Iterator[None]:
        """Note a rule that the block breaks, so that the author's code cannot hide it."""
        try:
            yield
        except DeveloperError as error:
            self.developer_error = self.developer_error or error
            raise

    def fail(self, rule: str, **values: object) -> NoReturn:
        """Note and raise the DeveloperError of a rule: a constant text, and the values for each `{name}` in it."""
        with self.noting_errors():
            raise DeveloperError(rule, **values)

    def ask(self, *questions: WireQuestion) -> list[Any]:
        """Return the answers to some questions, or end the round with those that have none yet.

        Raises:
            InputRequired: an answer is missing.
            DeveloperError: a question breaks a rule.
            Exception: the outcome of a question, as its `read` raised it, once all questions have answers.
        """
        self.check_can_continue()
        step = self.enclosing_step
        if questions and step is not None:
            rule = "{question!r} is asked inside step {step!r}, which would run again: ask before it"
            self.fail(rule, question=questions[0].key, step=step)
        with self.noting_errors():
            outcomes = [self.questions.outcome(question) for question in questions]
        if any(outcome.is_open for outcome in outcomes):
            self.end()
        for outcome in outcomes:
            if outcome.error:
                raise outcome.error
        return [outcome.answer for outcome in outcomes]

    def require(self, result: InputRequiredResult) -> NoReturn:
        """End the round with what a low-level function returned.

        "servers MUST include at least one of inputRequests or requestState" (basic/patterns/mrtr).
        """
        if not result.input_requests and result.request_state is None:
            self.fail("an InputRequiredResult needs input_requests or a request_state")
        with self.noting_errors():
            for key, request in result.input_requests.items():
                check_text(key, "a question's key is text, and not of type {type}")
                self.questions.open_low_level(key, request.wire(key, camel_case=self.request.camel_case))
            if result.request_state is not None:
                self.record.next_state = write_state(result.request_state)
        self.end()

    def check_time_left(self, takes: float | None) -> None:
        """End the round if a step would not end in time. The first new step of a round always runs.

        `takes` is in seconds; None expects as many as the longest step so far.
        """
        needed = self.record.longest_step() if takes is None else takes
        if self.new_steps and needed > self.seconds_left:
            self.shed()

    def shed(self) -> NoReturn:
        """End the round without a question: the client repeats the request, and the next round continues the work.

        Raises:
            InputRequired: always, unless one of these applies.
            DeveloperError: this round recorded no step, so the next round would only repeat it.
            ToolError: too many rounds in a row ended like this. Clients limit such rounds.
        """
        self.check_can_continue()
        if not self.new_steps:
            self.fail("a round that ends without a question must have recorded a step, or it would only repeat itself")
        if self.record.sheds >= self.request.max_sheds:
            self.error_for_model = (
                f"This call takes longer than {self.request.max_sheds + 1} rounds without a question. "
                "(The server's author can raise max_sheds.)"
            )
            raise ToolError(self.error_for_model)
        self.end()

    def require_state(self) -> None:
        """End a round that came without a state, so that the client gets one with the conversation's id.

        A repeated first request begins another conversation, because it carries no state.

        Raises:
            InputRequired: the request has no state, so this is the first round.
        """
        if self.record.is_new and self.request.max_sheds:
            self.end()

    def end(self) -> NoReturn:
        """End the round. It stays ended, even if the author's code catches the exception."""
        self.ended = True
        raise InputRequired

    def close(self) -> None:
        """Let nothing more happen in this round, after the function has ended.

        If the round asks, steps in other threads may finish until the deadline, so that the record has them.
        Otherwise the next round would run them again.
        """
        with self.record.lock:
            if self.ended:
                timeout = min(max(0.0, self.seconds_left), TIMEOUT_MAX)
                self.record.lock.wait_for(lambda: not self.running_steps, timeout)
            self.closed = True
            self.questions.close()
        if self.ended:
            try:
                self.questions.check_keys()
            except DeveloperError as error:
                self.developer_error = self.developer_error or error

    def next_record(self) -> dict[str, Any]:
        """Return the record for the next round, as JSON."""
        return self.record.to_json(
            has_questions=bool(self.requests), renamed_key=self.questions.renamed_key is not None
        )

    def audit(self, handler: str, principal: str | None, *, sent: bool, answered_by: str = "client") -> AuditRecord:
        """Return the audit record of this round; without `sent`, the client does not get its questions."""
        asked = {key: message_of(request) for key, request in self.requests.items()} if sent else {}
        answered = dict(self.questions.actions)
        return AuditRecord(self.request.flow, self.request.number, handler, principal, asked, answered, answered_by)

    def check_can_continue(self) -> None:
        """Raise again what has stopped this round, because the author's code may have caught it."""
        if self.developer_error:
            raise self.developer_error
        if self.error_for_model:
            raise ToolError(self.error_for_model)

    def check_may_run(self, takes: float | None) -> None:
        """End the round before a step if the task, `single_use` or the deadline requires it.

        Raises:
            InputRequired: one of them does.
        """
        if self.must_stop and self.must_stop():
            self.end()
        if self.request.single_use:
            self.require_state()
        self.check_time_left(takes)

    async def wait_for_steps(self) -> None:
        """Wait for the steps that the tasks of an async handler have started, so that the record has them."""
        import asyncio  # noqa: PLC0415 - its caller runs in it

        self.handler_returned = True
        while self.running_futures:
            await asyncio.wait(self.running_futures)
