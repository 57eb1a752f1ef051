"""One round: one request of a call that may ask its user.

The call takes several requests. The author's function runs from its first line in each of them:

    def book(city: str, *, elicit: Elicit, step: Step) -> str:
        flight = step("reserve", reserve, city)           runs in round 1; round 2 gets the recorded result
        seat = elicit("seat", "Which seat?", Seat)        ends round 1; round 2 gets the answer
        return f"{flight}, {seat}"                        the result of the call, in round 2

The record has the results of steps and the answers. It reaches the next round in a sealed (encrypted) state that the
client carries; for a task, a table has it. The caller of the function uses a round in this order:

    1. Round(request, record, asked)    reads the record, and adds the client's responses to it
    2. ask, end_if_step_must_wait       the function asks and runs steps, maybe in several threads or asyncio tasks
    3. close                            the function is done: it may not ask or run steps any more
    4. requests, next_record            if the round ended: the questions for the client, and the next round's record

A round ends by the exception InputRequired, which leaves the author's function. The function may catch it, or an error
of the round. So the round itself keeps that it has ended (`has_ended`), and its first error (`error`).
"""

from __future__ import annotations

import math
import time
from contextvars import ContextVar
from threading import TIMEOUT_MAX, Condition
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from mcp_functions.protocol.errors import DeveloperError, InputRequired, ToolError
from mcp_functions.rounds.questions import Questions
from mcp_functions.rounds.record import EMPTY, Record
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.messages import Principal
    from mcp_functions.protocol.wire_types import JSONObject
    from mcp_functions.rounds.questions import WireQuestion

# From the end of the last step to the deadline: the time to seal the state and to answer. It also allows for a
# difference between the clock of this machine and the clock of the gateway, which sets the deadline.
MARGIN_SECONDS = 2.0


class RunningStep(NamedTuple):
    """A step whose function runs."""

    round: Round
    key: str
    arguments_digest: str


# The step that runs the calling code. Tasks and threads that a step started keep this value after the step has ended.
step_of_context: ContextVar[RunningStep | None] = ContextVar("step_of_context", default=None)


class RoundRequest(NamedTuple):
    """The input of a round: the client's request, its caller, the time, and the options of the handler."""

    responses: Mapping[str, JSONObject] = EMPTY  # `inputResponses` as the client sent them
    capabilities: Mapping[str, Any] = EMPTY  # the ClientCapabilities that the request declares
    meta: Mapping[str, Any] = EMPTY  # `_meta`: the progress token and the log level
    principal: Principal | None = None  # the caller; None without authentication
    scopes: frozenset[str] = frozenset()  # the scopes of the caller's token
    flow: str = ""  # the conversation's id, the same in all its rounds; "" if nothing can seal a state
    number: int = 1  # the number of the round in its conversation
    deadline: float = math.inf  # when the client stops waiting, in unix seconds
    now: Callable[[], float] = time.time  # the clock, in unix seconds
    camel_case: bool = False  # True if forms use camelCase on the wire
    # A "shed" is a round that ends without a question, because its time is up: the client repeats its request, and the
    # next round continues. After this number of sheds in a row the call fails, because clients limit repetitions.
    max_sheds: int = 2
    # True if each round may run only once. A repeated request is recognized by its state, and the first request has
    # none. So the first round ends before its first step, and the client gets a state.
    single_use: bool = False
    # True if the client itself shows no forms, but its host shows MCP Apps: then an app asks the questions.
    has_app: bool = False


DEFAULT_REQUEST = RoundRequest()


class TaskLease(Protocol):
    """The right of one worker to run a task, for a limited time (`tasks.lease`)."""

    def renew_before_step(self, round_: Round) -> bool:
        """Renew the lease; return False if the round must end before the step."""

    def save_step(self, round_: Round) -> bool:
        """Save the round's record after a step; return False if another worker has the task."""


class Round:
    """One round of a call: its request, its record, its questions, and how it ended."""

    def __init__(
        self,
        request: RoundRequest = DEFAULT_REQUEST,
        record: Mapping[str, Any] = EMPTY,
        asked: Mapping[str, str] = EMPTY,
        lease: TaskLease | None = None,
    ) -> None:
        """Read the record that the previous round left, and add the responses of the request.

        Args:
            request: the request of this round.
            record: the record of the previous round, as JSON.
            asked: the questions of the previous round, from the sealed state: a digest of each (fingerprint), by key.
            lease: the lease of the worker that runs a task; None if the round does not belong to a task.
        """
        self.request = request
        self.record = Record(record)
        self.questions = Questions(self.record, asked, request.responses)
        self.lease = lease
        self.lock = Condition()  # guards the record, the questions and the running steps: a handler may use threads
        self._has_state = bool(record or asked)
        self._steps_must_end = request.deadline - MARGIN_SECONDS  # in unix seconds

        # The steps of this round.
        self.running_steps: set[str] = set()  # the keys of the steps that run now
        self.step_tasks: set[Task[None]] = set()  # a task for each step for which an async handler waits
        self.has_recorded_step = False

        # What the client gets before the result.
        self.notifications: list[dict[str, Any]] = []
        self.progress_message = ""  # the last message that the function reported; a task shows it

        # How the round ended. Each of these stays as it is, even if the author's code catches the exception.
        self.has_ended = False  # True once InputRequired was raised: no step begins, but other threads may still ask
        self.handler_returned = False  # True once the function is done: no step begins, and no question is asked
        self.error: DeveloperError | ToolError | None = None  # the first error, with which the call ends

    @property
    def requests(self) -> dict[str, JSONObject]:
        """The questions that the client has to answer, by key."""
        return self.questions.open_requests()

    @property
    def began(self) -> int:
        """When the conversation began, in unix milliseconds: as recorded, or else now."""
        if self.record.began is not None:
            return self.record.began
        return int(self.request.now() * 1000)

    def keep_error(self, error: DeveloperError | ToolError) -> None:
        """Keep the first error of the round, with which the call ends even if the author's code catches the error."""
        if self.error is None:
            self.error = error

    def fail(self, rule: str, **values: object) -> NoReturn:
        """Keep and raise the DeveloperError of a rule. `values` replace each `{name}` in the rule's text."""
        error = DeveloperError(rule, **values)
        self.keep_error(error)
        raise error

    def raise_kept_error(self) -> None:
        """Raise the error of this round again, because the author's code may have caught it."""
        if self.error:
            raise self.error

    def ask(self, *questions: WireQuestion) -> list[Any]:
        """Return the answers to some questions. If an answer is missing, end the round with the open questions.

        Raises:
            InputRequired: an answer is missing.
            DeveloperError: a question breaks a rule.
            Exception: all questions have a response, and one of them is an exception for the function (`Declined`).
        """
        self.raise_kept_error()
        step = self.current_step()
        if questions and step:
            rule = "{question!r} is asked inside step {step!r}, which would run again: ask before it"
            self.fail(rule, question=questions[0].key, step=step.key)
        with self.lock:
            if self.handler_returned:
                raise InputRequired
            try:
                outcomes = [self.questions.ask(question) for question in questions]
            except DeveloperError as error:
                self.keep_error(error)
                raise
        if any(outcome.is_open for outcome in outcomes):
            self.end()
        for outcome in outcomes:
            if outcome.error is not None:  # an exception of the author's code may be false (`__bool__`)
                raise outcome.error
        return [outcome.answer for outcome in outcomes]

    def end_without_question(self) -> NoReturn:
        """End the round: the client repeats the request, and the next round continues after the recorded steps.

        Raises:
            InputRequired: the normal outcome.
            DeveloperError: this round recorded no step, so the next round would only repeat it.
            ToolError: too many rounds in a row ended without a question. Clients limit such rounds.
        """
        self.raise_kept_error()
        if not self.has_recorded_step:
            self.fail("a round that ends without a question must have recorded a step, or it would only repeat itself")
        if self.record.sheds >= self.request.max_sheds:
            error = ToolError(
                f"This call takes longer than {self.request.max_sheds + 1} rounds without a question. "
                "(The server's author can raise max_sheds.)"
            )
            self.keep_error(error)
            raise error
        self.end()

    def require_state(self) -> None:
        """End the round if its request has no state, so that the client gets one, and repeats the request with it.

        The state has the conversation's id, which recognizes a repeated request. Without a state, each repetition would
        begin another conversation.

        Raises:
            InputRequired: the request has no state.
        """
        may_end = self.request.max_sheds > 0  # with 0, no round may end without a question
        if may_end and not self._has_state:
            self.end()

    def end(self) -> NoReturn:
        """End the round by raising InputRequired. The author's code may catch it, but cannot undo the end."""
        self.has_ended = True
        raise InputRequired

    def current_step(self) -> RunningStep | None:
        """Return the step of this round in which the calling code runs; None outside of steps."""
        step = step_of_context.get()
        if step and step.round is self and step.key in self.running_steps:
            return step
        return None

    def end_if_step_must_wait(self, max_seconds: float | None) -> None:
        """End the round if the next step cannot run in it.

        The step waits if its task was cancelled, if the round first needs a state (`single_use`), or if too little time
        is left.

        Args:
            max_seconds: the longest duration of the step. None: as long as the longest step of the conversation so far.

        Raises:
            InputRequired: the round ends before the step, and the next round runs it.
        """
        if self.lease and not self.lease.renew_before_step(self):
            self.end()
        if self.request.single_use:
            self.require_state()
        if not self.has_recorded_step:
            return  # the first step of a round always runs, or no round would make progress
        if max_seconds is None:
            with self.lock:
                max_seconds = max(step.milliseconds for step in self.record.steps.values()) / 1000
        if self.request.now() + max_seconds > self._steps_must_end:
            self.end_without_question()

    async def wait_for_steps(self) -> None:
        """Wait for the steps that an async function has left running, so that the record has their results."""
        import asyncio  # noqa: PLC0415 - its caller runs in it

        if not self.has_ended:
            self.handler_returned = True  # the call has its result, so asyncio tasks that still run start no steps
        while self.step_tasks:
            await asyncio.wait(self.step_tasks)

    def close(self) -> None:
        """Refuse further steps and questions, because the author's function is done.

        A round that has ended waits for the steps in other threads, until the deadline. Otherwise the record would miss
        their results, and they would run again in the next round.
        """
        with self.lock:
            if self.has_ended:
                seconds = max(0.0, self._steps_must_end - self.request.now())  # infinite without a deadline
                self.lock.wait_for(lambda: not self.running_steps, min(seconds, TIMEOUT_MAX))
            self.handler_returned = True
        try:
            self.questions.count_lost_answer()
        except DeveloperError as error:
            self.keep_error(error)

    def next_record(self) -> dict[str, Any]:
        """Return the record for the next round, as JSON."""
        with self.lock:
            sheds = 0 if self.requests else self.record.sheds + 1
            return self.record.to_json(sheds)
