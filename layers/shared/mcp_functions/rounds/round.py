"""One round of a multi round-trip request, by replay.

A handler runs from its first line in every round. A question returns its answer if an earlier round received it;
otherwise the round ends with the question. A step returns its result if an earlier round ran it. The record has these
answers and results. It reaches the next round in a sealed state that the client sends, or for a task in a table.

    1. Round(request, record, asked)    reads the previous round's record, and adds the responses of the request
    2. ask, check_may_run               the handler asks and runs steps, maybe in several threads or tasks
    3. close                            the handler has returned: no question or step is possible any more
    4. requests, next_record            what the client and the next round get, if the round ended before the handler

A round ends before its handler if one of these methods raises InputRequired, which leaves the author's function:

    ask                     a question has no answer yet
    end_without_question    the time is up: the client repeats the request, and the next round continues (a "shed")
    require_state           the request has no state: the client gets one, so that a repeated request is recognized
    end                     any other reason: a low-level function returned its questions, or a task was cancelled

The author's code may catch an exception of a round. So the round keeps the fact that it has ended (`input_required`),
and the first error (`error`); the caller of the handler looks at both.
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
    from mcp_functions.rounds.asking import WireQuestion
    from mcp_functions.rounds.step_call import StepCall

# The time that must remain between the end of a step and the deadline: to seal the state, and to answer. It also allows
# for a difference between the clocks of the gateway and this machine.
MARGIN_SECONDS = 2.0

# The step in which the author's code runs. A task or thread that a step started keeps it, even when the step has ended.
step_of_context: ContextVar[StepCall | None] = ContextVar("step_of_context", default=None)


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
    # A round whose time is up ends without a question (a "shed"). After this number of sheds in a row the call fails,
    # because clients limit how often they repeat a request.
    max_sheds: int = 2
    # True if each round may run only once. A repeated request is recognized by its state, and the first request has
    # none. So the first round ends before its first step, and gives the client a state.
    single_use: bool = False
    # True if the client itself shows no forms, but its host shows MCP Apps: then an app asks the questions.
    has_app: bool = False


DEFAULT_REQUEST = RoundRequest()


class TaskLease(Protocol):
    """What the round of a task needs from its worker: `tasks.lease` implements it."""

    def renew_before_step(self, round_: Round) -> bool:
        """Renew the lease; return False if the round must end before the step."""

    def save_step(self, round_: Round) -> bool:
        """Save the round's record after a step; return False if another worker has the task."""


class Round:
    """One round: it combines the request with the record, and ends with a result or with questions."""

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
            asked: the fingerprints of the previous round's questions by key, as the sealed state proves them.
            lease: the lease of the worker that runs a task; None if the round does not belong to a task.
        """
        self.request = request
        self.record = Record(record)
        self.questions = Questions(self.record, asked, request.responses)
        self.requests = self.questions.open_requests  # the questions that the client has to answer, by key
        self.lease = lease
        self.lock = Condition()  # guards the record, the questions and the running steps: a handler may use threads
        self._has_state = bool(record or asked)
        self._must_end = request.deadline - MARGIN_SECONDS  # when the last step has to end, in unix seconds

        # The steps of this round.
        self.running_steps: set[str] = set()  # the keys of the steps that run now
        self.step_tasks: set[Task[None]] = set()  # a task for each step for which an async handler waits
        self.has_recorded_step = False

        # What the client gets before the result.
        self.notifications: list[dict[str, Any]] = []
        self.progress_message = ""  # the last message that the function reported; a task shows it

        # How the round ended. Each of these stays as it is, even if the author's code catches the exception.
        self.input_required = False  # True once InputRequired was raised: no step begins, but other threads may ask
        self.handler_returned = False  # True once it returned or raised: no step begins, and no question is asked
        self.error: DeveloperError | ToolError | None = None  # the first error, which the call ends with

    @property
    def began(self) -> int:
        """When the conversation began, in unix milliseconds: the recorded time, or now."""
        return int(self.request.now() * 1000) if self.record.began is None else self.record.began

    def keep_error(self, error: DeveloperError | ToolError) -> None:
        """End the call with an error, also if the author's code catches it. The first error counts."""
        self.error = self.error or error

    def fail(self, rule: str, **values: object) -> NoReturn:
        """Raise and keep the DeveloperError of a rule: a constant text, and the values for each `{name}` in it."""
        error = DeveloperError(rule, **values)
        self.keep_error(error)
        raise error

    def raise_kept_error(self) -> None:
        """Raise the error of this round again, because the author's code may have caught it."""
        if self.error:
            raise self.error

    def ask(self, *questions: WireQuestion) -> list[Any]:
        """Return the answers to some questions, or end the round with those that have none yet.

        Raises:
            InputRequired: an answer is missing.
            DeveloperError: a question breaks a rule.
            Exception: the outcome of a question, as its `read` raised it, once all questions have answers.
        """
        self.raise_kept_error()
        step = self.current_step()
        if questions and step:
            rule = "{question!r} is asked inside step {step!r}, which would run again: ask before it"
            self.fail(rule, question=questions[0].key, step=step.step_key)
        with self.lock:
            if self.handler_returned:
                raise InputRequired
            try:
                outcomes = [self.questions.answer(question) for question in questions]
            except DeveloperError as error:
                self.keep_error(error)
                raise
            has_open_question = any(question.key in self.requests for question in questions)
        if has_open_question:
            self.end()
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        return outcomes

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
        begin another conversation. If `max_sheds` is 0, no round may end without a question, so this one continues.
        """
        if not self._has_state and self.request.max_sheds:
            self.end()

    def end(self) -> NoReturn:
        """End the round for good: the author's code may catch the exception, but cannot undo the end."""
        self.input_required = True
        raise InputRequired

    def current_step(self) -> StepCall | None:
        """Return the step of this round in which the calling code runs; None outside of steps."""
        step = step_of_context.get()
        if step and step.round is self and step.step_key in self.running_steps:
            return step
        return None

    def check_may_run(self, max_seconds: float | None) -> None:
        """End the round before a step if the task, `single_use` or the deadline requires it.

        Args:
            max_seconds: the longest duration of the step; None expects the duration of the longest step so far.

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
        if self.request.now() + max_seconds > self._must_end:
            self.end_without_question()

    async def wait_for_steps(self) -> None:
        """Wait for the steps that an async handler has left running, so that the record has them."""
        import asyncio  # noqa: PLC0415 - its caller runs in it

        if not self.input_required:
            self.handler_returned = True  # it has its result, so the tasks that it left start no more steps
        while self.step_tasks:
            await asyncio.wait(self.step_tasks)

    def close(self) -> None:
        """Refuse further steps and questions, because the handler has returned.

        A round that has ended waits for the steps in other threads, until the deadline. Steps that the record misses
        would run again in the next round.
        """
        with self.lock:
            if self.input_required:
                seconds = max(0.0, self._must_end - self.request.now())  # infinite without a deadline
                self.lock.wait_for(lambda: not self.running_steps, min(seconds, TIMEOUT_MAX))
            self.handler_returned = True
        try:
            self.questions.check_keys()
        except DeveloperError as error:
            self.keep_error(error)

    def next_record(self) -> dict[str, Any]:
        """Return the record for the next round, as JSON."""
        with self.lock:
            sheds = 0 if self.requests else self.record.sheds + 1
            return self.record.to_json(sheds)
