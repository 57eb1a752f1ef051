"""One round of a multi round-trip request, by replay.

A handler runs from its first line in every round. A question returns its answer if an earlier round received it;
otherwise the round ends with the question. A step returns its result if an earlier round ran it. The record has these
answers and results. It reaches the next round in a sealed state that the client sends, or for a task in a table.

    Round(request, record, asked)    reads the previous round's record, and adds the responses of the request
    ask, check_may_run               the handler asks and runs steps, maybe in several threads or tasks
    close                            the handler has returned: no question or step is possible any more
    requests, next_record            what the client and the next round get, if the round has ended before the handler

A round ends before its handler if one of these methods raises InputRequired, which leaves the author's function:

    ask                     a question has no answer yet
    end_with                a low-level function returned an InputRequiredResult
    end_without_question    the time is up: the client repeats the request, and the next round continues (a "shed")
    require_state           a first round gives the client a state before its first step
    end                     a task was cancelled
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from contextvars import ContextVar
from threading import TIMEOUT_MAX, Condition
from typing import TYPE_CHECKING, Any, NoReturn

from mcp_functions.protocol.errors import DeveloperError, InputRequired, ToolError
from mcp_functions.rounds.input_requests import message_of
from mcp_functions.rounds.questions import CHANGING_KEY, MAX_KEY_CHANGES, Questions
from mcp_functions.rounds.record import EMPTY, Record, write_state
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.messages import Principal
    from mcp_functions.protocol.wire_types import InputRequest, JSONObject
    from mcp_functions.rounds.asking import WireQuestion
    from mcp_functions.rounds.audit import AuditRecord
    from mcp_functions.rounds.low_level import InputRequiredResult
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


class Round:
    """One round: it combines the request with the record, and ends with a result or with questions."""

    def __init__(
        self,
        request: RoundRequest = DEFAULT_REQUEST,
        record: Mapping[str, Any] = EMPTY,
        asked: Mapping[str, str] = EMPTY,
    ) -> None:
        """Read the record that the previous round left, and add the responses of the request.

        Args:
            request: the request of this round.
            record: the record of the previous round, as JSON.
            asked: the fingerprints of the previous round's questions by key, as the sealed state proves them.
        """
        self.request = request
        self.record = Record(record)
        self.questions = Questions(self.record, asked, request.responses)
        self.lock = Condition()  # guards the record, the questions and the running steps: a handler may use threads
        self.running_steps: set[str] = set()  # the keys of the steps that run now
        self.steps_recorded = 0  # the number of steps that ran in this round
        self.step_tasks: set[Task[None]] = set()  # a task for each step for which an async handler waits
        self.notifications: list[dict[str, Any]] = []  # messages that the client gets before the result
        self.progress_message = ""  # the last message that the function reported
        self.ended = False  # True once InputRequired was raised, even if the author's code caught it
        self.closed = False  # True once the handler has returned: no step or question is possible any more
        self.error: DeveloperError | ToolError | None = None  # what `stop` raised first
        self.on_step_recorded: Callable[[], object] | None = None  # a task's hook, which writes the record
        self.must_stop: Callable[[], bool] | None = None  # a task's hook, which ends the round before a step
        self._has_state = bool(record or asked)
        self._has_renamed_key = False  # True if the handler asked an answered question under another key

    @property
    def requests(self) -> dict[str, InputRequest]:
        """The open questions, by key."""
        return self.questions.open_requests

    @property
    def seconds_left(self) -> float:
        """Seconds in which the handler has to end, so that the answer arrives before the deadline."""
        return self.request.deadline - MARGIN_SECONDS - self.request.now()

    @property
    def began(self) -> int:
        """When the conversation began, in unix milliseconds: the recorded time, or now."""
        return int(self.request.now() * 1000) if self.record.began is None else self.record.began

    def stop(self, error: DeveloperError | ToolError) -> NoReturn:
        """Raise an error and note it, so that the author's code cannot hide it by catching it."""
        self.error = self.error or error
        raise error

    def fail(self, rule: str, **values: object) -> NoReturn:
        """Stop with the DeveloperError of a rule: a constant text, and the values for each `{name}` in it."""
        self.stop(DeveloperError(rule, **values))

    def check_can_continue(self) -> None:
        """Raise again what has stopped this round, because the author's code may have caught it."""
        if self.error:
            raise self.error

    def ask(self, *questions: WireQuestion) -> list[Any]:
        """Return the answers to some questions, or end the round with those that have none yet.

        Raises:
            InputRequired: an answer is missing.
            DeveloperError: a question breaks a rule.
            Exception: the outcome of a question, as its `read` raised it, once all questions have answers.
        """
        self.check_can_continue()
        step = self.current_step()
        if questions and step:
            rule = "{question!r} is asked inside step {step!r}, which would run again: ask before it"
            self.fail(rule, question=questions[0].key, step=step.step_key)
        with self.lock:
            if self.closed:
                raise InputRequired
            try:
                outcomes = [self.questions.answer(question) for question in questions]
            except DeveloperError as error:
                self.stop(error)
            has_open_question = any(question.key in self.requests for question in questions)
        if has_open_question:
            self.end()
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        return outcomes

    def end_with(self, result: InputRequiredResult) -> NoReturn:
        """End the round with the questions and the state that a low-level function returned.

        "servers MUST include at least one of inputRequests or requestState" (basic/patterns/mrtr).
        """
        if not result.input_requests and result.request_state is None:
            self.fail("an InputRequiredResult needs input_requests or a request_state")
        try:
            for key, request in result.input_requests.items():
                self.questions.open_low_level(key, request.wire(key, camel_case=self.request.camel_case))
            self.record.state = None if result.request_state is None else write_state(result.request_state)
        except DeveloperError as error:
            self.stop(error)
        self.end()

    def end_without_question(self) -> NoReturn:
        """End the round: the client repeats the request, and the next round continues after the recorded steps.

        Raises:
            InputRequired: the normal outcome.
            DeveloperError: this round recorded no step, so the next round would only repeat it.
            ToolError: too many rounds in a row ended without a question. Clients limit such rounds.
        """
        self.check_can_continue()
        if not self.steps_recorded:
            self.fail("a round that ends without a question must have recorded a step, or it would only repeat itself")
        if self.record.sheds >= self.request.max_sheds:
            text = (
                f"This call takes longer than {self.request.max_sheds + 1} rounds without a question. "
                "(The server's author can raise max_sheds.)"
            )
            self.stop(ToolError(text))
        self.end()

    def require_state(self) -> None:
        """End the round if its request has no state, so that the client gets one with the conversation's id.

        Without a state, a repeated request would begin another conversation.
        """
        if not self._has_state and self.request.max_sheds:
            self.end()

    def end(self) -> NoReturn:
        """End the round for good: the author's code may catch the exception, but cannot undo the end."""
        self.ended = True
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
        if self.must_stop and self.must_stop():
            self.end()
        if self.request.single_use:
            self.require_state()
        if self.steps_recorded == 0:
            return  # the first step of a round always runs, or no round would make progress
        if max_seconds is None:
            with self.lock:
                max_seconds = max(step.milliseconds for step in self.record.steps.values()) / 1000
        if max_seconds > self.seconds_left:
            self.end_without_question()

    async def wait_for_steps(self) -> None:
        """Wait for the steps that an async handler has left running, so that the record has them."""
        import asyncio  # noqa: PLC0415 - its caller runs in it

        if not self.ended:
            self.closed = True  # the handler has its result, so its tasks start no more steps
        while self.step_tasks:
            await asyncio.wait(self.step_tasks)

    def close(self) -> None:
        """Refuse further steps and questions, because the handler has returned.

        A round that has ended waits for the steps in other threads, until the deadline. Steps that the record misses
        would run again in the next round.
        """
        with self.lock:
            if self.ended:
                timeout = min(max(0.0, self.seconds_left), TIMEOUT_MAX)
                self.lock.wait_for(lambda: not self.running_steps, timeout)
            self.closed = True
        if self.ended:
            self._check_keys()

    def next_record(self) -> dict[str, Any]:
        """Return the record for the next round, as JSON."""
        with self.lock:
            sheds = 0 if self.requests else self.record.sheds + 1
            lost_answers = self.record.lost_answers + 1 if self._has_renamed_key else 0
            return self.record.to_json(sheds=sheds, lost_answers=lost_answers)

    def audit(self, handler: str, principal: str | None, *, sent: bool, answered_by: str = "client") -> AuditRecord:
        """Return the audit record of this round; `sent` is False if the client does not get its questions."""
        from mcp_functions.rounds.audit import AuditRecord  # noqa: PLC0415 - only for serve(audit=…)

        requests = self.requests if sent else {}
        return AuditRecord(
            flow=self.request.flow,
            round=self.request.number,
            handler=handler,
            principal=principal,
            asked={key: message_of(request) for key, request in requests.items()},
            answered=dict(self.questions.actions),
            answered_by=answered_by,
        )

    def _check_keys(self) -> None:
        """Stop a conversation whose keys change in every round, because no round would ever read an answer."""
        renamed = self.questions.find_renamed_key()
        if renamed is None:
            return
        self._has_renamed_key = True
        if self.record.lost_answers >= MAX_KEY_CHANGES:
            old, new = renamed
            with suppress(DeveloperError):
                self.fail(CHANGING_KEY, old=old, new=new)  # raised, because the log has the place of the exception
