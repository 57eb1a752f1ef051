"""One round of a multi round-trip request, by replay.

A handler runs from its first line in every round. Where it asks, the answer is there if an earlier round brought it;
otherwise the round ends with the question. An answer counts only if the sealed state shows that exactly this question
was asked (key and fingerprint); anything else is asked again, and nothing answered is lost. The engine does not know
who carries the state from round to round.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from mcp_functions.errors import DeveloperError, ToolError
from mcp_functions.forms import InvalidAnswer
from mcp_functions.input_requests import asked_again, fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.input_requests import InputRequiredResult
    from mcp_functions.schema import InputRequest

MARGIN_SECONDS = 2.0  # between the end of a step and the deadline: to seal, to answer, and for clocks that differ
MAX_REWORDINGS = 2  # a price may change once or twice in a conversation; a clock in the message changes every round
_MISSING: Any = object()


class InputRequired(BaseException):
    """Ends a round: `round.requests` says what the client has to answer first. `except Exception` lets it pass."""


class Asking(NamedTuple):
    """One question: its key, what the client is asked, how its response is read.

    With `once` an answer is good for one reading in a round: who asks again in the same round was not content with it.
    `read` raises InvalidAnswer if the response does not fit; any other exception is the outcome of the question.
    """

    key: str
    request: InputRequest
    read: Callable[[Any], Any]
    once: bool = False


@dataclass(slots=True)
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
        deadline: unix seconds at which nobody waits any longer.
        now: the clock, unix seconds.
        max_sheds: how many rounds in a row may end without a question.
        requests: what the client has to answer before the next round.
        notifications: what goes to the client before the result.

    """

    record: Mapping[str, Any] = field(default_factory=dict)
    asked: Mapping[str, str] = field(default_factory=dict)
    responses: Mapping[str, Any] = field(default_factory=dict)
    declared: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    camel_case: bool = False
    flow: str = ""
    deadline: float = float("inf")
    now: Callable[[], float] = time.time
    max_sheds: int = 2
    requests: dict[str, InputRequest] = field(default_factory=dict)
    notifications: list[dict[str, Any]] = field(default_factory=list)
    ended: bool = False
    broken: str | None = None
    _answers: dict[str, tuple[str, Any]] = field(default_factory=dict)
    _seen: dict[str, str] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)
    _reworded: dict[str, int] = field(default_factory=dict)
    _steps: dict[str, list[Any]] = field(default_factory=dict)
    _new_steps: int = 0
    _began: int | None = None
    _state: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Take over every proven answer at once, so that none is lost if this round ends before it is read."""
        proven = {key: (print_, self.responses[key]) for key, print_ in self.asked.items() if key in self.responses}
        kept = {key: (print_, response) for key, (print_, response) in self.record.get("answers", {}).items()}
        self._answers = {**proven, **kept}  # a later answer never replaces an accepted one
        self._reworded = dict(self.record.get("reworded", {}))
        self._steps = {key: list(step) for key, step in self.record.get("steps", {}).items()}
        self._began = self.record.get("began")

    @property
    def proven(self) -> dict[str, Any]:
        """The answers to questions that the sealed state shows were asked."""
        return {key: response for key, (_print, response) in self._answers.items()}

    @property
    def unproven(self) -> dict[str, Any]:
        """What the client sent beyond that: its own words, which prove nothing."""
        return {key: response for key, response in self.responses.items() if key not in self._answers}

    @property
    def state(self) -> Mapping[str, Any] | None:
        """What a function of the low level kept in the last round."""
        state: Mapping[str, Any] | None = self.record.get("state")
        return state

    @property
    def began(self) -> int:
        """When the conversation began, unix milliseconds: the same in all its rounds, however often one is repeated."""
        if self._began is None:
            self._began = int(self.now() * 1000)
        return self._began

    def ask(self, *questions: Asking) -> list[Any]:
        """Return the answers to some questions, or end the round with those that have none yet.

        Raises:
            InputRequired: an answer is not known yet.
            DeveloperError: a key was used for two questions, or a question never stays the same.
            Exception: the outcome of a question, as its `read` raised it, once all of them are answered.

        """
        outcomes = [self._outcome(question) for question in questions]
        if any(outcome is _MISSING for outcome in outcomes):
            self.end()
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        return outcomes

    def require(self, result: InputRequiredResult) -> NoReturn:
        """End the round as a function of the low level wants it.

        Raises:
            InputRequired: always.
            DeveloperError: "servers MUST include at least one of inputRequests or requestState".

        """
        if not result.input_requests and result.request_state is None:
            self.fail("an InputRequiredResult needs input_requests or a request_state")
        for key, asked in result.input_requests.items():
            self.requests[key] = asked.wire(camel_case=self.camel_case)
            self._seen[key] = fingerprint(self.requests[key])
            self._answers.pop(key, None)  # asked anew, so answered anew
        self._state = None if result.request_state is None else result.request_state.model_dump(mode="json")
        self.end()

    def recorded(self, key: str, arguments: str) -> tuple[bool, Any]:
        """Look a step up: whether it is recorded, and what it returned.

        Args:
            key: names the step.
            arguments: digest of what it was called with.

        Raises:
            DeveloperError: it was recorded for other arguments.

        """
        if key not in self._steps:
            return False, None
        if self._steps[key][0] != arguments:
            self.fail(f"step {key!r} ran with other arguments in an earlier round: give each call a key of its own")
        return True, self._steps[key][1]

    def make_room(self, takes: float | None) -> None:
        """End the round now if a step that has to run would not end in time; a round's first new step always runs.

        Args:
            takes: seconds that the step says it takes; None: as long as the longest so far.

        """
        longest = max((step[2] for step in self._steps.values()), default=0) / 1000
        needed = longest if takes is None else takes
        if self._new_steps and self.now() + needed > self.deadline - MARGIN_SECONDS:
            self.shed()

    def keep(self, key: str, arguments: str, value: Any, milliseconds: int) -> None:  # noqa: ANN401 - JSON is any value
        """Record what a step returned."""
        self._steps[key] = [arguments, value, milliseconds]
        self._new_steps += 1

    def shed(self) -> NoReturn:
        """End the round without a question: the client sends the request again, and the work goes on where it stood.

        Raises:
            InputRequired: always, but for these.
            DeveloperError: nothing new was recorded, so the next round would stand where this one began.
            ToolError: too many rounds in a row ended like this; clients do not go on for ever.

        """
        if not self._new_steps:
            self.fail("a round that ends without a question must have recorded a step, or it would only repeat itself")
        if self._sheds() >= self.max_sheds:
            message = (
                f"This call takes longer than {self.max_sheds + 1} rounds without a question. "
                "(The server's author can raise max_sheds.)"
            )
            raise ToolError(message)
        self.end()

    def end(self) -> NoReturn:
        """End the round; that it ended is remembered, so that not even a bare `except:` can undo it."""
        self.ended = True
        raise InputRequired

    def fail(self, message: str) -> NoReturn:
        """Say that the author's function broke a rule; remembered likewise.

        Raises:
            DeveloperError: always.

        """
        self.broken = message
        raise DeveloperError(message)

    def leave(self) -> dict[str, Any]:
        """Say what the next round must know: JSON, to be sealed by whoever carries it."""
        left = {
            "answers": {key: list(answer) for key, answer in self._answers.items()},
            "reworded": self._reworded,
            "steps": self._steps,
            "sheds": 0 if self.requests else self._sheds() + 1,
            "began": self._began or 0,
        }
        state = {} if self._state is None else {"state": dict(self._state)}
        return {**{name: value for name, value in left.items() if value}, **state}

    def leave_asked(self) -> dict[str, str]:
        """Say which questions are open now: key to fingerprint."""
        return {key: self._seen[key] for key in self.requests}

    def _sheds(self) -> int:
        return int(self.record.get("sheds", 0))

    def _outcome(self, question: Asking) -> Any:  # noqa: ANN401 - whatever the question's `read` makes of it
        key, request, print_ = question.key, question.request, fingerprint(question.request)
        if self._seen.setdefault(key, print_) != print_:
            self.fail(f"two different questions under the key {key!r}: give each question a key of its own")
        if question.once and key in self._used:
            self._answers.pop(key, None)
        self._used.add(key)
        known = self._answers.get(key)
        if known and known[0] == print_:
            try:
                return question.read(known[1])
            except InvalidAnswer as invalid:
                request = asked_again(request, str(invalid))
            except Exception as outcome:  # noqa: BLE001 - raised by `ask`, when the other questions are answered too
                return outcome
        elif known:
            self._count_rewording(key)
        self._answers.pop(key, None)
        self.requests[key] = request
        return _MISSING

    def _count_rewording(self, key: str) -> None:
        self._reworded[key] = self._reworded.get(key, 0) + 1
        if self._reworded[key] > MAX_REWORDINGS:
            self.fail(
                f"the question {key!r} says something else in every round, so no answer ever belongs to it: "
                "make its message from the arguments and from recorded values (step, step.now()), not from a clock"
            )
