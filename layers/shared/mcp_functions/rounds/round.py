"""One round: one request of a call that may ask its user.

The call takes several requests. The author's function runs from its first line in each of them:

    def book(city: str, *, elicit: Elicit, step: Step) -> str:
        flight = step("reserve", reserve, city)           runs in round 1; round 2 gets the recorded result
        seat = elicit("seat", "Which seat?", Seat)        ends round 1; round 2 gets the answer
        return f"{flight}, {seat}"                        the result of the call, in round 2

The record has the results of steps and the answers. It reaches the next round in a sealed (encrypted) state that the
client carries; for a task, a table has it. A round ends in one of these ways:

    the function returns     the client gets its result
    InputRequired            the client gets the open questions and a state, and sends the next request of the call
    an error                 the client gets the error: the function broke a rule, or needs too many rounds

A round sheds its further work if its time is up: it raises InputRequired without a question, and the client only sends
the next request. The author's function may catch these exceptions and go on, but the round has ended all the same.
"""

from __future__ import annotations

import math
import time
from contextvars import ContextVar
from threading import Condition
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast

from mcp_functions.protocol.errors import DeveloperError, InputRequired, ToolError
from mcp_functions.rounds.questions import Questions
from mcp_functions.rounds.record import EMPTY, Record
from mcp_functions.rounds.running_steps import RunningSteps
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.messages import Principal
    from mcp_functions.protocol.wire_types import ClientCapabilities, JSONObject, Meta
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
    """The client's request, its caller, and the time."""

    responses: Mapping[str, JSONObject] = EMPTY  # `inputResponses` as the client sent them
    capabilities: ClientCapabilities = cast(
        "ClientCapabilities", EMPTY
    )  # the ClientCapabilities that the request declares
    meta: Meta = cast("Meta", EMPTY)  # `_meta`: the progress token and the log level
    principal: Principal | None = None  # the caller; None without authentication
    scopes: frozenset[str] = frozenset()  # the scopes of the caller's token
    deadline: float = math.inf  # when the client stops waiting, in unix seconds
    now: Callable[[], float] = time.time  # the clock, in unix seconds


class History(NamedTuple):
    """The conversation before this round, from the sealed state or from the table of a task."""

    # the conversation's id, the same in all its rounds; "" if nothing can seal a state
    flow: str = ""
    number: int = 1  # the number of this round
    record: Mapping[str, Any] = EMPTY  # the record of the previous round, as JSON
    # the questions of the previous round: a digest of each (fingerprint), by key
    asked: Mapping[str, str] = EMPTY


class RoundOptions(NamedTuple):
    """How the handler and its client play rounds."""

    camel_case: bool = False  # True if forms use camelCase on the wire
    # how many rounds in a row may shed work; then the call fails, because clients limit requests
    max_sheds: int = 2
    # True if each round may run only once. A repeated request is recognized by its state, and the first request has
    # none. So the first round ends before its first step, and the client gets a state.
    single_use: bool = False
    # True if the client shows no forms, but MCP Apps: then an app asks the questions
    has_app: bool = False


DEFAULT_REQUEST = RoundRequest()
FIRST_ROUND = History()
DEFAULT_OPTIONS = RoundOptions()


class TaskLease(Protocol):
    """The right of one worker to run a task, for a limited time (`tasks.lease`)."""

    def renew_before_step(self, round_: Round) -> bool:
        """Renew the lease; return False if the round must end before the step."""

    def save_step(self, round_: Round) -> bool:
        """Save the round's record after a step; return False if another worker has the task."""


class Round:
    """One round of a call: its record, its questions, and how it ended."""

    def __init__(
        self,
        request: RoundRequest = DEFAULT_REQUEST,
        history: History = FIRST_ROUND,
        options: RoundOptions = DEFAULT_OPTIONS,
        lease: TaskLease | None = None,
    ) -> None:
        """Read the record that the previous round left, and add the responses of the request.

        Args:
            request: the request of this round.
            history: the rounds before this one.
            options: the options of the handler, and of its client.
            lease: the lease of the worker that runs a task; None if the round does not belong to a task.
        """
        self.request = request
        self.history = history
        self.options = options
        self.lease = lease
        self.record = Record(history.record)
        self.questions = Questions(self.record, history.asked, request.responses)
        # guards the record, the questions and the running steps: a handler may use threads
        self.lock = Condition()
        self.running_steps = RunningSteps(self.lock)
        self.steps_must_end = request.deadline - MARGIN_SECONDS  # in unix seconds
        self.error: DeveloperError | ToolError | None = None  # the error with which the call fails
        self._is_interrupted = False  # True once InputRequired was raised
        self._is_closed = False  # True once the function is done
        # What the client gets before the result.
        self.notifications: list[dict[str, Any]] = []
        self.progress_message = ""  # the last message that the function reported; a task shows it

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

    @property
    def continues(self) -> bool:
        """Whether the client sends the next request of the call, after InputRequired. An error ends the call."""
        return self._is_interrupted and self.error is None

    @property
    def has_new_step(self) -> bool:
        """Whether this round has recorded a step."""
        return len(self.record.steps) > len(self.history.record.get("steps", EMPTY))

    def interrupt(self) -> NoReturn:
        """End the round with an InputRequired: the client gets the open questions, and sends the next request."""
        self._is_interrupted = True
        raise InputRequired

    def fail_with(self, error: DeveloperError | ToolError) -> NoReturn:
        """End the call with an error. The client gets the first error of the round."""
        self.error = self.error or error
        raise error

    def fail(self, rule: str, **values: object) -> NoReturn:
        """End the call with a DeveloperError.

        Args:
            rule: the text, with a `{name}` for each value. It is no f-string, because the log gets it without values.
            values: what replaces the names, for an author who runs the function locally.
        """
        self.fail_with(DeveloperError(rule, **values))

    def check_not_ended(self) -> None:
        """Raise again what has ended the round, because the author's code may have caught it and gone on."""
        if self.error:
            raise self.error
        if self._is_interrupted or self._is_closed:
            raise InputRequired

    def ask(self, *questions: WireQuestion) -> list[Any]:
        """Return the answers to some questions. If an answer is missing, end the round with the open questions.

        Raises:
            InputRequired: an answer is missing.
            DeveloperError: a question breaks a rule.
            Exception: all questions have a response, and one of them is an exception for the function (`Declined`).
        """
        if self.error:
            raise self.error
        step = self.running_step()
        if questions and step:
            rule = "{question!r} is asked inside step {step!r}, which would run again: ask before it"
            self.fail(rule, question=questions[0].key, step=step.key)
        with self.lock:
            # after an interruption, tasks of the function may add questions until the round closes
            if self._is_closed:
                raise InputRequired
            try:
                outcomes = [self.questions.ask(question) for question in questions]
            except DeveloperError as error:
                self.fail_with(error)
        if any(outcome.is_open for outcome in outcomes):
            self.interrupt()
        for outcome in outcomes:
            # an exception of the author's code may be false (`__bool__`)
            if outcome.error is not None:
                raise outcome.error
        return [outcome.answer for outcome in outcomes]

    def shed(self) -> NoReturn:
        """End the round without a question: the next round continues after the recorded steps."""
        if self.error:
            raise self.error
        if not self.has_new_step:
            self.fail("a round that ends without a question must have recorded a step, or it would only repeat itself")
        if self.record.sheds >= self.options.max_sheds:
            text = (
                f"This call takes longer than {self.options.max_sheds + 1} rounds without a question. "
                "(The server's author can raise max_sheds.)"
            )
            self.fail_with(ToolError(text))
        self.interrupt()

    def require_state(self) -> None:
        """End the round if its request has no state, so that the client repeats the request with a state.

        The state has the conversation's id. Without a state, each repetition would begin another conversation.
        """
        has_state = self.history.record or self.history.asked
        may_end = self.options.max_sheds > 0  # with 0, no round may end without a question
        if may_end and not has_state:
            self.interrupt()

    def running_step(self) -> RunningStep | None:
        """Return the step of this round in which the calling code runs; None outside of steps."""
        step = step_of_context.get()
        if step and step.round is self and step.key in self.running_steps.keys:
            return step
        return None

    async def wait_for_steps(self) -> None:
        """Wait for the steps that an async function has left running, so that the record has their results."""
        if not self.continues:
            # the call has its result, so asyncio tasks that still run start no steps
            self._is_closed = True
        await self.running_steps.wait_for_tasks()

    def close(self) -> None:
        """Refuse further steps and questions, because the author's function is done.

        A round that the client continues first waits for the steps in other threads, until the deadline.
        """
        with self.lock:
            if self.continues:
                # infinite without a deadline
                seconds = max(0.0, self.steps_must_end - self.request.now())
                self.running_steps.wait_until_ended(seconds)
            self._is_closed = True
        try:
            self.questions.count_lost_answer()
        except DeveloperError as error:
            self.error = self.error or error

    def next_record(self) -> dict[str, Any]:
        """Return the record for the next round, as JSON."""
        with self.lock:
            sheds = 0 if self.questions.open_requests() else self.record.sheds + 1
            return self.record.to_json(sheds)
