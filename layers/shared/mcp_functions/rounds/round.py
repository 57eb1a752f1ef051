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

If its time is up, a round raises InputRequired without a question, and the client only sends the next request. The
author's function may catch these exceptions and go on, but the round has ended all the same (`Stage`).
"""

from __future__ import annotations

import math
import time
from contextvars import ContextVar
from threading import Condition
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, cast

from mcp_functions.protocol.errors import DeveloperError, InputRequired, ToolError
from mcp_functions.rounds.questions import Questions
from mcp_functions.rounds.record import Record
from mcp_functions.rounds.running_steps import RunningSteps
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.messages import Principal
    from mcp_functions.protocol.wire_types import ClientCapabilities, InputRequest, JSONObject, Meta
    from mcp_functions.rounds.questions import WireQuestion
    from mcp_functions.rounds.record import RecordJSON

CallError = TypeVar("CallError", DeveloperError, ToolError)
# How far a round is. From a stage the round goes to a later one, and never back.
#     running        the author's function runs
#     interrupted    InputRequired was raised: asyncio tasks of the function may ask, too, but they begin no step
#     continued      the function is done, and the client sends the next request of the call
#     done           the call is over: the client gets its result, or the error of the round
Stage: TypeAlias = Literal["running", "interrupted", "continued", "done"]
NO_CAPABILITIES: ClientCapabilities = {}
NO_META: Meta = {}
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

    responses: Mapping[str, JSONObject] = {}  # `inputResponses` as the client sent them
    capabilities: ClientCapabilities = NO_CAPABILITIES  # what the client can do
    meta: Meta = NO_META  # `_meta`: the progress token and the log level
    principal: Principal | None = None  # the caller; None without authentication
    scopes: frozenset[str] = frozenset()  # the scopes of the caller's token
    deadline: float = math.inf  # when the client stops waiting, in unix seconds
    now: Callable[[], float] = time.time  # the clock, in unix seconds


class History(NamedTuple):
    """The conversation before this round, from the sealed state or from the table of a task."""

    flow: str = ""  # the conversation's id in all its rounds; "" if nothing can seal a state
    number: int = 1  # the number of this round
    record: Mapping[str, Any] = {}  # what the previous round recorded, a RecordJSON
    asked: Mapping[str, str] = {}  # the fingerprints of the previous round's questions, by key


class RoundOptions(NamedTuple):
    """How the handler and its client play rounds."""

    camel_case: bool = False  # True if forms use camelCase on the wire
    max_sheds: int = 2  # how many rounds in a row may end without a question
    # True if each round may run only once. A repeated request is recognized by its state, and the first request has
    # none. So the first round ends before its first step, and the client gets a state.
    single_use: bool = False
    has_app: bool = False  # True if the client shows no forms, but MCP Apps: then an app asks


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

        A worker that runs a task has a lease; without a task it is None.
        """
        self.request = request
        self.history = history
        self.options = options
        self.lease = lease
        self.lock = Condition()  # guards what follows, because a handler may use threads
        self.record = Record(history.record)
        self.questions = Questions(self.record, history.asked, request.responses)
        self.running_steps = RunningSteps(self.lock)
        self.steps_must_end = request.deadline - MARGIN_SECONDS  # in unix seconds
        self.stage: Stage = "running"
        self.error: DeveloperError | ToolError | None = None  # the error with which the call fails
        self.notifications: list[JSONObject] = []  # what the client gets before the result
        self.progress_message = ""  # the last message that the function reported; a task shows it

    @property
    def requests(self) -> dict[str, InputRequest]:
        """The questions that the client has to answer, by key."""
        return cast("dict[str, InputRequest]", self.questions.open_requests())

    @property
    def began(self) -> int:
        """When the conversation began, in unix milliseconds: as recorded, or else now."""
        if self.record.began is not None:
            return self.record.began
        return int(self.request.now() * 1000)

    @property
    def continues(self) -> bool:
        """Whether the client sends the next request of the call, after InputRequired. An error ends the call."""
        return self.stage in ("interrupted", "continued")

    @property
    def has_new_step(self) -> bool:
        """Whether this round has recorded a step."""
        return len(self.record.steps) > len(self.history.record.get("steps", ()))

    def interrupted(self) -> InputRequired:
        """End the round, and return what the caller raises. The client gets the open questions, and goes on."""
        with self.lock:
            if self.stage == "running":
                self.stage = "interrupted"
        return InputRequired()

    def failed(self, error: CallError) -> CallError:
        """End the call, and return the error, which the caller raises. The client gets the first error of the round."""
        with self.lock:
            if self.stage != "continued":
                self.stage = "done"
                self.error = self.error or error
        return error

    def check_not_ended(self) -> None:
        """Raise again what has ended the round, because the author's code may have caught it and gone on."""
        if self.stage != "running":
            raise self.error or InputRequired()

    def _check_may_ask(self) -> None:
        """Raise again what has ended the round, unless it was a question: others may be asked beside it."""
        if self.stage not in ("running", "interrupted"):
            raise self.error or InputRequired()

    def ask(self, *questions: WireQuestion) -> list[Any]:
        """Return the answers to some questions. If an answer is missing, end the round with the open questions.

        Raises:
            InputRequired: an answer is missing.
            DeveloperError: a question breaks a rule.
            Exception: all questions have a response, and one of them is an exception for the function (`Declined`).
        """
        with self.lock:
            self._check_may_ask()
            step = self.running_step()
            if questions and step:
                rule = "{question!r} is asked inside step {step!r}, which would run again: ask before it"
                raise self.failed(DeveloperError(rule, question=questions[0].key, step=step.key))
            try:
                outcomes = [self.questions.ask(question) for question in questions]
            except DeveloperError as error:
                self.failed(error)
                raise
        if any(outcome.is_open for outcome in outcomes):
            raise self.interrupted()
        for outcome in outcomes:
            if outcome.error is not None:  # an author's exception may be false (`__bool__`)
                raise outcome.error
        return [outcome.answer for outcome in outcomes]

    def shed(self) -> InputRequired:
        """End the round without a question, and return what the caller raises. The next round does the further work.

        Raises:
            DeveloperError: this round has recorded no step.
            ToolError: too many rounds in a row ended without a question.
        """
        if self.error:
            raise self.error
        if not self.has_new_step:
            rule = "a round that ends without a question must have recorded a step, or it would only repeat itself"
            raise self.failed(DeveloperError(rule))
        if self.record.sheds >= self.options.max_sheds:
            text = (
                f"This call takes longer than {self.options.max_sheds + 1} rounds without a question. "
                "(The server's author can raise max_sheds.)"
            )
            raise self.failed(ToolError(text))
        return self.interrupted()

    def require_state(self) -> None:
        """End the round if its request has no state, so that the client repeats the request with a state.

        The state has the conversation's id. Without a state, each repetition would begin another conversation.
        """
        has_state = self.history.record or self.history.asked
        may_end_without_question = self.options.max_sheds > 0
        if may_end_without_question and not has_state:
            raise self.interrupted()

    def running_step(self) -> RunningStep | None:
        """Return the step of this round in which the calling code runs; None outside of steps."""
        step = step_of_context.get()
        if step and step.round is self and step.key in self.running_steps.keys:
            return step
        return None

    async def wait_for_steps(self) -> None:
        """Wait for the steps that an async function has left running, so that the record has their results."""
        if self.stage == "running":
            self.stage = "done"  # the call has its result, so other tasks begin no step
        await self.running_steps.wait_for_tasks()

    def close(self) -> None:
        """Refuse further steps and questions, because the author's function is done.

        A round that the client continues first waits for the steps in other threads, until the deadline.
        """
        with self.lock:
            if self.continues:
                seconds = self.steps_must_end - self.request.now()  # infinite without a deadline
                self.running_steps.wait_until_ended(max(0.0, seconds))
            try:
                self.questions.count_lost_answer()
            except DeveloperError as error:
                self.failed(error)
            self.stage = "continued" if self.continues else "done"

    def next_record(self) -> RecordJSON:
        """Return the record for the next round, as JSON."""
        with self.lock:
            sheds = 0 if self.questions.open_requests() else self.record.sheds + 1
            return self.record.to_json(sheds)
