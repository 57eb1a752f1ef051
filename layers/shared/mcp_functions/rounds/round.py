"""One round of a multi round-trip request, by replay.

A handler runs from its first line in every round. Where it asks, the answer is there if an earlier round brought it;
otherwise the round ends with the question. An answer counts only if the sealed state shows that exactly this question
was asked (key and fingerprint); anything else is asked again, and nothing answered is lost. The engine does not know
who carries the state from round to round.

A handler reads fresh copies of the record, so no round can change what the next one reads; what a function of the low
level keeps is JSON text. Handlers use one round from several threads, so a lock guards what it knows.
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import TIMEOUT_MAX, Condition
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from mcp_functions.protocol.errors import DeveloperError, ToolError
from mcp_functions.protocol.errors import InputRequired as InputRequired  # noqa: PLC0414 - its home, for who catches it
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.rounds.input_requests import asked_again, fingerprint
from mcp_functions.schemas.forms import InvalidAnswer

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable, Iterator, Mapping

    from pydantic import BaseModel

    from mcp_functions.protocol.messages import Principal
    from mcp_functions.protocol.wire_types import InputRequest
    from mcp_functions.rounds.input_requests import InputRequiredResult

M = TypeVar("M", bound="BaseModel")

MARGIN_SECONDS = 2.0  # between the end of a step and the deadline: to seal, to answer, and for clocks that differ
MAX_REWORDINGS = 2  # a price may change once or twice; a clock in the message is refused at its fourth asking
MAX_LOST_ANSWERS = 1  # in a row: a deployment may rename a key once; a random key is another in every round
MAX_READINGS = 10_000  # of one answer in one round: only a loop that waits for another answer gets there
ACTIONS = ("accept", "decline", "cancel")
NOTHING: Mapping[str, Any] = {}
_MISSING: Any = object()


class Asking(NamedTuple):
    """One question: its key, what the client is asked, how its response is read.

    With `once` an answer is good for one reading in a round: who asks again in the same round was not content with it.
    `read` raises InvalidAnswer if the response does not fit; any other exception is the outcome of the question.
    """

    key: str
    request: InputRequest
    read: Callable[[Any], Any]
    once: bool = False


class RunningStep(NamedTuple):
    """The step under way: whose round it belongs to, what it is called, and the digest of its arguments."""

    round: Round
    key: str
    arguments: str


running_step: ContextVar[RunningStep | None] = ContextVar("running_step", default=None)


class AuditRecord(NamedTuple):
    """What one round asked of whom, and how questions of the round before were answered.

    A round that a client repeats is told again, under the same `flow` and `round`: write it down under these.

    Attributes:
        flow: names the conversation.
        round: counts its rounds from 1.
        handler: the name of the tool, prompt or resource.
        principal: digest of who calls, as in the state's claims; None where nobody has to sign in.
        asked: key of each question that is open now, to the words the user sees (or the request's method).
        answered: key of each question answered by this round's request: "accept", "decline", "cancel"; "answer" if it
            was none of the user's to accept; "invalid" if it did not fit and is asked again. No answer's content.

    """

    flow: str
    round: int
    handler: str
    principal: str | None
    asked: Mapping[str, str]
    answered: Mapping[str, str]


class Round:
    """What is known in this round, and what it leaves for the next.

    Args:
        record: what earlier rounds left; `{}` in the first.
        asked: the questions that the sealed state proves were asked in the last round: key to fingerprint.
        responses: `inputResponses` as the client sent them, claims until proven.
        declared: the client's capabilities, of this request.
        meta: `_meta` of the request: where progress goes, and which log messages are wanted.
        camel_case: whether forms go to the wire in camelCase.
        flow: names the conversation, the same in all its rounds.
        number: counts its rounds from 1.
        deadline: unix seconds at which nobody waits any longer.
        now: the clock, unix seconds.
        max_sheds: how many rounds in a row may end without a question.
        principal: who calls; None for nobody.
        scopes: that the caller's token grants.
        single_use: whether a first round may do nothing that counts: it ends before its first step.
        requests: what the client has to answer before the next round.
        notifications: what goes to the client before the result.
        ended: whether the round has ended with the signal, whatever the author's code did with that.
        broken: the error that names the rule that the author's function broke, likewise.
        gave_up: why the conversation cannot go on, for the model and the user to read; likewise.
        answered: what became of the questions that this round's request answers: key to AuditRecord's words.
        under_way: a future for each step that an async handler waits for.
        returned: whether an async handler has ended, so that its tasks begin nothing more.
        kept: called when a step was recorded: a carrier that can writes it down at once.
        stopped: asked before a step runs: whether the round has to end before it does anything more.
        told: the last that the function said of its progress.

    """

    ended = False
    broken: DeveloperError | None = None
    returned = False
    gave_up: str | None = None
    kept: Callable[[], object] | None = None
    stopped: Callable[[], bool] | None = None
    told = ""
    _new_steps = 0
    _lost_answers = 0  # rounds in a row that asked anew what was answered, under another key
    _closed = False
    _state: str | None = None  # what the function keeps, as JSON text

    def __init__(  # noqa: PLR0913 - what is known in a round
        self,
        *,
        record: Mapping[str, Any] = NOTHING,
        asked: Mapping[str, str] = NOTHING,
        responses: Mapping[str, Any] = NOTHING,
        declared: Mapping[str, Any] = NOTHING,
        meta: Mapping[str, Any] = NOTHING,
        camel_case: bool = False,
        flow: str = "",
        number: int = 1,
        deadline: float = math.inf,
        now: Callable[[], float] = time.time,
        max_sheds: int = 2,
        principal: Principal | None = None,
        scopes: frozenset[str] = frozenset(),
        single_use: bool = False,
    ) -> None:
        """Take over every proven answer at once, so that none is lost if this round ends before it is read."""
        self.record, self.asked, self.responses, self.declared, self.meta = record, asked, responses, declared, meta
        self.camel_case, self.flow, self.number, self.deadline, self.now = camel_case, flow, number, deadline, now
        self.max_sheds, self.principal, self.scopes, self.single_use = max_sheds, principal, scopes, single_use
        self.requests: dict[str, InputRequest] = {}
        self.notifications: list[dict[str, Any]] = []
        self.answered: dict[str, str] = {}
        self.under_way: set[Future[None]] = set()
        self._answers = {key: dict(known) for key, known in record.get("answers", NOTHING).items()}  # by fingerprint
        self._steps = {key: list(step) for key, step in record.get("steps", NOTHING).items()}
        self._began: int | None = record.get("began")
        self._seen: dict[str, str] = {}
        self._read: set[str] = set()  # fingerprints of the questions whose answers this round read
        self._readings: dict[str, int] = {}
        self._running: set[str] = set()  # keys of the steps whose functions run now
        self._lock = Condition()
        for key, print_ in asked.items():
            known = self._answers.setdefault(key, {})
            if key in responses and print_ not in known:  # a later answer never replaces an accepted one
                known[print_] = responses[key]
                self.answered[key] = _did(responses[key])

    @property
    def proven(self) -> list[str]:
        """The keys of the questions that the sealed state shows were asked, and that have an answer."""
        return [key for key, known in self._answers.items() if known]

    def proven_answer(self, key: str) -> Any:  # noqa: ANN401 - as the client sent it
        """Return the answer to a proven question; of a reworded one, the last.

        Raises:
            KeyError: there is none.

        """
        answers = [*self._answers.get(key, {}).values()]
        if not answers:
            raise KeyError(key)
        return copy_json(answers[-1])

    @property
    def unproven(self) -> dict[str, Any]:
        """What the client sent beyond that: its own words, which prove nothing."""
        proven = self.proven
        return {key: copy_json(response) for key, response in self.responses.items() if key not in proven}

    @property
    def state(self) -> str | None:
        """What a function of the low level kept in the last round, as JSON text: `revive` reads it."""
        state: str | None = self.record.get("state")
        return state

    @property
    def began(self) -> int:
        """When the conversation began, unix milliseconds; as long as no round noted that, it begins now."""
        return int(self.now() * 1000) if self._began is None else self._began

    def note_beginning(self) -> None:
        """Record when the conversation began, unless an earlier round did: from here on it stays the same."""
        self._began = self.began

    @property
    def enclosing_step(self) -> str | None:
        """The key of the step whose function calls; None outside of steps."""
        step = running_step.get()
        # A task or thread that a step began keeps its context variables for longer than the step runs.
        return step.key if step and step.round is self and step.key in self._running else None

    def ask(self, *questions: Asking) -> list[Any]:
        """Return the answers to some questions, or end the round with those that have none yet.

        Raises:
            InputRequired: an answer is not known yet.
            DeveloperError: a key was used for two questions, or a question never stays the same.
            Exception: the outcome of a question, as its `read` raised it, once all of them are answered.

        """
        self._refuse_if_lost()
        if questions and (step := self.enclosing_step) is not None:
            rule = "{question!r} is asked inside step {step!r}, which would run again: ask before it"
            self.fail(rule, question=questions[0].key, step=step)
        outcomes = [self._outcome(question) for question in questions]
        for outcome in outcomes:
            if outcome is _MISSING:
                self.end()
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        return outcomes

    def require(self, result: InputRequiredResult) -> NoReturn:
        """End the round as a function of the low level wants it.

        Raises:
            InputRequired: always.
            DeveloperError: "servers MUST include at least one of inputRequests or requestState"; or the state that the
                function keeps is none that it could read again.

        """
        if not result.input_requests and result.request_state is None:
            self.fail("an InputRequiredResult needs input_requests or a request_state")
        for key, asked in result.input_requests.items():
            self._check_text(key, "a question's key is text, and not of type {type}")
            self.requests[key] = asked.wire(key, camel_case=self.camel_case)
            self._seen[key] = fingerprint(self.requests[key])
            self._answers.pop(key, None)  # asked anew, so answered anew
        self._state = None if result.request_state is None else self._written(result.request_state)
        self.end()

    @contextmanager
    def step(self, key: str, arguments: str, takes: float | None) -> Iterator[bool]:
        """Hold a step's key while its function runs, so that no other task or thread runs it too.

        Args:
            key: names the step.
            arguments: digest of what it is called with.
            takes: as in `make_room`.

        Yields:
            Whether the function has to run; if not, `result_of` has what it returned.

        Raises:
            InputRequired: the round has ended; whatever the author's code did with that, nothing more is done in it.
            DeveloperError: it was recorded for other arguments, or its function runs already, or its key is not text.

        """
        self._refuse_if_lost()
        self._check_text(key, "a step's key is text, and not of type {type}")
        has_to_run = self._reserved(key, arguments)
        try:
            if has_to_run:
                self._check_may_run(takes)
            yield has_to_run
        finally:
            if has_to_run:
                with self._lock:
                    self._running.discard(key)
                    self._lock.notify_all()

    def result_of(self, key: str) -> Any:  # noqa: ANN401 - JSON is any value
        """Return what a recorded step returned, as JSON."""
        return copy_json(self._steps[key][1])

    def make_room(self, takes: float | None) -> None:
        """End the round now if a step that has to run would not end in time; a round's first new step always runs.

        Args:
            takes: seconds that the step says it takes; None: as long as the longest so far.

        """
        with self._lock:
            longest = max((step[2] for step in self._steps.values()), default=0) / 1000
        needed = longest if takes is None else takes
        if self._new_steps and self.now() + needed > self.deadline - MARGIN_SECONDS:
            self.shed()

    def keep(self, key: str, arguments: str, value: Any, milliseconds: int) -> None:  # noqa: ANN401 - JSON is any value
        """Record what a step returned.

        Args:
            key: names the step.
            arguments: digest of what it was called with.
            value: JSON that nobody else holds.
            milliseconds: for which its function ran.

        """
        with self._lock:
            self._steps[key] = [arguments, value, milliseconds]
            self._new_steps += 1
        if self.kept:
            self.kept()

    def shed(self) -> NoReturn:
        """End the round without a question: the client sends the request again, and the work goes on where it stood.

        Raises:
            InputRequired: always, but for these.
            DeveloperError: nothing new was recorded, so the next round would stand where this one began.
            ToolError: too many rounds in a row ended like this; clients do not go on for ever.

        """
        self._refuse_if_lost()
        if not self._new_steps:
            self.fail("a round that ends without a question must have recorded a step, or it would only repeat itself")
        if self._sheds() >= self.max_sheds:
            self.gave_up = (
                f"This call takes longer than {self.max_sheds + 1} rounds without a question. "
                "(The server's author can raise max_sheds.)"
            )
            raise ToolError(self.gave_up)
        self.end()

    def anchor(self) -> None:
        """End the round if it is the conversation's first, so that the client holds a state that names it.

        A first request that is repeated begins another conversation: nothing ties it to the one whose answer was lost.
        """
        if not self.record and not self.asked and self.max_sheds:
            self.end()

    def end(self) -> NoReturn:
        """End the round for good: the round notes that it ended, so not even a bare `except:` can undo it."""
        self.ended = True
        raise InputRequired

    def fail(self, rule: str, **values: object) -> NoReturn:
        """Note that the author's function broke a rule, so that no `except` can hide it, and say which.

        Args:
            rule: a constant text, as DeveloperError takes it.
            values: for each `{name}` in it.

        Raises:
            DeveloperError: always.

        """
        self.break_by(DeveloperError(rule, **values))

    def break_by(self, error: DeveloperError) -> NoReturn:
        """Raise an error that names a broken rule; remembered likewise."""
        self.broken = self.broken or error
        raise error

    def close(self) -> None:
        """Let nothing more happen in this round, once the function has ended.

        If the round asks, steps that still run in other threads come to their end first, so that they are recorded: the
        next round would run them again. They have until the deadline.
        """
        with self._lock:
            if self.ended:
                patience = max(0.0, self.deadline - MARGIN_SECONDS - self.now())
                self._lock.wait_for(lambda: not self._running, min(patience, TIMEOUT_MAX))
            self._closed = True
        with suppress(DeveloperError):  # `broken` has it
            self._check_keys()

    def leave(self) -> dict[str, Any]:
        """Say what the next round must know: JSON, to be sealed by whoever carries it."""
        with self._lock:
            answers = {key: dict(known) for key, known in self._answers.items() if known}
            steps = dict(self._steps)
        left: dict[str, Any] = {"answers": answers} if answers else {}
        if steps:
            left["steps"] = steps
        if not self.requests:
            left["sheds"] = self._sheds() + 1
        if self._began is not None:
            left["began"] = self._began
        if self._lost_answers:
            left["lost_answers"] = self._lost_answers
        if self._state is not None:
            left["state"] = self._state
        return left

    def leave_asked(self) -> dict[str, str]:
        """Say which questions are open now: key to fingerprint."""
        return {key: self._seen[key] for key in self.requests}

    def audit(self, handler: str, principal: str | None, *, sent: bool) -> AuditRecord:
        """Say what this round asked, if its questions are `sent`, and heard."""
        asked = {key: _words(request) for key, request in self.requests.items()} if sent else {}
        return AuditRecord(self.flow, self.number, handler, principal, asked, dict(self.answered))

    def _sheds(self) -> int:
        return int(self.record.get("sheds", 0))

    def _refuse_if_lost(self) -> None:
        """Let nothing more happen in a conversation that cannot go on, whatever the author's code did with the news."""
        if self.broken:
            raise self.broken
        if self.gave_up:
            raise ToolError(self.gave_up)

    def _reserved(self, key: str, arguments: str) -> bool:
        """Reserve a step's key, unless the step is recorded."""
        with self._lock:
            if self.ended or self._closed:
                raise InputRequired
            if key in self._running:
                self.fail(
                    "step {key!r} is called again while its first call still runs, in another task or thread: "
                    "give each call a key of its own",
                    key=key,
                )
            if key not in self._steps:
                self._running.add(key)
                return True
            if self._steps[key][0] != arguments:
                self.fail(
                    "step {key!r} ran with other arguments before: give each call a key of its own, a new one too if a"
                    " deployment calls it with something else, and make its arguments from what later rounds know as "
                    "well",
                    key=key,
                )
            return False

    def _check_text(self, value: object, rule: str) -> None:
        """Refuse what is not text: JSON writes the key 3 as "3", and the next round would find nothing under 3."""
        if not isinstance(value, str):
            self.fail(rule, type=type(value).__name__)

    def _check_may_run(self, takes: float | None) -> None:
        """End the round before a step that has to run, if its carrier, `single_use` or the time says so."""
        if self.stopped and self.stopped():
            self.end()
        if self.single_use:
            self.anchor()
        self.make_room(takes)

    def _outcome(self, question: Asking) -> Any:  # noqa: ANN401 - whatever the question's `read` makes of it
        key, request = question.key, question.request
        self._check_text(key, "a question's key is text, and not of type {type}")
        self._check_text(_words(request), "a question's message is text, and not of type {type}")
        print_ = fingerprint(request)
        known = self._known(question, print_)
        response = known.get(print_, _MISSING)
        if response is not _MISSING:
            try:
                answer = question.read(copy_json(response))
            except InvalidAnswer as invalid:
                request = asked_again(request, str(invalid))
                self._forget(key, print_)
            except Exception as outcome:  # noqa: BLE001 - raised by `ask`, when the other questions are answered too
                self._read.add(print_)
                return outcome
            else:
                known[print_] = _needed(request, response)
                self._read.add(print_)
                return answer
        self._open(key, request)
        return _MISSING

    def _known(self, question: Asking, print_: str) -> dict[str, Any]:
        """Count one reading of a question, and return the answers known under its key, by fingerprint."""
        key = question.key
        with self._lock:
            if self._seen.setdefault(key, print_) != print_:
                self.fail("two different questions under the key {key!r}: give each question a key of its own", key=key)
            known = self._answers.setdefault(key, {})
            self._count_reading(question, known, print_)
            return known

    def _forget(self, key: str, print_: str) -> None:
        """Drop an answer that does not fit."""
        with self._lock:
            self._answers[key].pop(print_, None)
            if key in self.answered:
                self.answered[key] = "invalid"

    def _open(self, key: str, request: InputRequest) -> None:
        """Note that the client has to answer a question before the next round."""
        with self._lock:
            if self._closed:
                raise InputRequired
            # Answers to other words stay: where two versions take turns, each finds the answer to its own.
            if len(self._answers[key]) > MAX_REWORDINGS:
                self.fail(
                    "the question {key!r} says something else in every round, so no answer ever belongs to it: "
                    "make its message from the arguments and from recorded values (step, step.now()), not from a clock",
                    key=key,
                )
            self.requests[key] = request

    def _check_keys(self) -> None:
        """Refuse a question whose key changes in every round: no answer to it would ever be read.

        One round that loses an answer may be a deployment that renamed a key; a second in a row is not.
        """
        lost = self._lost_answer() if self.ended else None
        if lost is None:
            return
        old, new = lost
        self._lost_answers = int(self.record.get("lost_answers", 0)) + 1
        if self._lost_answers > MAX_LOST_ANSWERS:
            self.fail(
                "a question's key must be the same in every round: the answer to {old!r} was never read, and {new!r} "
                "asks the same again; make keys from the arguments, answers and recorded values (step, step.uuid()), "
                "not at random or from a clock",
                old=old,
                new=new,
            )

    def _lost_answer(self) -> tuple[str, str] | None:
        """Return the keys under which a question was answered, and under which this round asks it anew.

        The round was given that answer, asked nothing under its key, and read no answer to the same words and form.
        """
        lost = {self.asked[key]: key for key in self.answered if key not in self._seen}
        for key in self.requests:
            print_ = self._seen[key]
            is_new = key in self._readings and key not in self.asked and not self._answers[key]
            if is_new and print_ in lost and print_ not in self._read:
                return lost[print_], key
        return None

    def _count_reading(self, question: Asking, known: dict[str, Any], print_: str) -> None:
        key = question.key
        self._readings[key] = self._readings.get(key, 0) + 1
        if question.once and self._readings[key] > 1:
            known.pop(print_, None)
        if self._readings[key] > MAX_READINGS:
            self.fail(
                "the question {key!r} is asked over and over in one round, but an answer stays as it is: "
                "give it a key of its own each time round a loop",
                key=key,
            )

    def _written(self, state: BaseModel) -> str:
        """Write the state that a function keeps, and check that the next round can read that."""
        options: Any = {"by_alias": True, "warnings": False}  # a warning would quote the state in the log
        try:
            text = state.model_dump_json(**options)
            if "null" in text:
                dumps(state.model_dump(mode="json", **options))  # refuses the NaN that pydantic writes as null
            revive(type(state), text)
        except (TypeError, ValueError, LookupError, AttributeError):
            rule = "request_state: a {model} that holds this cannot be read again from the JSON that it writes"
            self.fail(rule, model=type(state).__name__)
        return text


def revive(model: type[M], state: str) -> M:
    """Read a model from the JSON that it wrote.

    A strict model reads it too: JSON has no dates or sets, so a model takes strings and lists for them.
    """
    return model.model_validate_json(state, strict=False)


def _did(response: Any) -> str:  # noqa: ANN401 - as the client sent it
    action = response.get("action") if isinstance(response, dict) else None
    return action if action in ACTIONS else "answer"


def _words(request: InputRequest) -> str:
    message: str = request.get("params", {}).get("message", request["method"])
    return message


def _needed(request: InputRequest, response: Any) -> Any:  # noqa: ANN401 - as the client sent it
    """Leave out what a form did not ask for: it counts for nothing, and would be carried to the end."""
    schema: Any = request["params"].get("requestedSchema") if "params" in request else None
    if schema is None or not isinstance(response, dict) or "action" not in response:
        return response
    asked, content = schema["properties"], response.get("content")
    if not isinstance(content, dict):
        return response
    return {"action": response["action"], "content": {key: value for key, value in content.items() if key in asked}}
