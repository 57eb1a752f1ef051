"""One run against one server: the calls that ask questions, and their conversations.

    round 1   the call                          -> questions and a state (`requestState`)
    round 2   the call, the answers, the state  -> more questions and a new state, or the result

A `Target` is such a call, with the rounds of a correct conversation. The first target is the victim: checks attack it,
and send its states in calls of the other targets.

MRTR in the sources of checks is the specification's chapter "Multi Round-Trip Requests".
"""

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple, cast

from mcp_functions.protocol.wire_types import ClientCapabilities, JSONRPCMessage, Params, Schema
from mcp_functions_harness.client import messages
from mcp_functions_harness.client.http import CALLER, RESPONSE_SECONDS, Exchange, Request, Response, send
from tests.attack import other_values

MAX_ROUNDS = 6  # rounds of one conversation
MAX_OTHER_CALLS = 4  # calls with other arguments that are tried


class LimitReached(Exception):
    """The run has used all its requests or seconds."""


class SkipCheck(Exception):
    """A check cannot run against this server."""

    def __init__(self, reason: str) -> None:
        """Say what is missing."""
        super().__init__(reason)


class Bounds(NamedTuple):
    """The limits of a run."""

    requests: int = 1500
    seconds: float = 120.0


DEFAULT_BOUNDS = Bounds()


@dataclass(frozen=True)
class Target:
    """A call that the server answers with a question. The properties after `name` need the rounds of a conversation."""

    method: str  # tools/call, prompts/get or resources/read
    params: Mapping[str, Any]
    schema: Schema = field(default_factory=Schema)  # the JSON Schema of its arguments
    similar: Sequence[Mapping[str, Any]] = ()  # params of calls with other arguments, which may ask too
    rounds: Sequence[Exchange] = ()  # the rounds of a correct conversation; none before it was held

    @property
    def name(self) -> str:
        """The name or the URI that it calls."""
        return str(self.params.get("name") or self.params.get("uri"))

    @property
    def questions(self) -> Mapping[str, Any]:
        """The questions of the first round."""
        return self.rounds[0].response.questions or {}

    @property
    def gives_state(self) -> bool:
        """Whether the first round returns a state."""
        return self.rounds[0].response.state is not None

    @property
    def completes(self) -> bool:
        """Whether correct answers complete the call."""
        return self.rounds[-1].response.done

    @property
    def question_rounds(self) -> int:
        """The number of rounds that ended with a question."""
        return sum(bool(exchange.response.questions) for exchange in self.rounds)

    @property
    def answers(self) -> dict[str, Any]:
        """Correct answers to all questions of the conversation."""
        answers: dict[str, Any] = {}
        for exchange in self.rounds:
            answers |= other_values.answers(exchange.response.questions or {})
        return answers

    def __str__(self) -> str:
        """Summarize the call in one line."""
        words = [self.method, self.name]
        if self.params.get("arguments"):
            words.append(json.dumps(self.params["arguments"]))
        words.append(f"({len(self.rounds)} requests)" if self.completes else "(never completed)")
        return " ".join(words)


@dataclass
class Scan:
    """The server, its targets, and the methods that checks use. It sends one request at a time, up to its bounds."""

    url: str  # of the endpoint
    credentials: Mapping[str, Sequence[tuple[str, str]]] = field(repr=False)  # the headers of CALLER and of OTHER
    bounds: Bounds
    lifetime: float | None  # seconds after which the server promises that a state has expired; None if unknown
    wait: Callable[[float], object]  # waits for a number of seconds
    targets: Sequence[Target] = ()  # the calls that ask; the first is the victim
    exchanges: list[Exchange] = field(default_factory=list)  # the requests so far, with their responses
    ids: Iterator[int] = field(default_factory=lambda: count(1))  # the ids of requests
    began: float = field(default_factory=time.monotonic)
    # A random text that checks write into states, answers and headers. No error should repeat it.
    canary: str = field(default_factory=lambda: f"canary-{secrets.token_hex(8)}")

    @property
    def seconds_left(self) -> float:
        """The seconds until the end of the run."""
        return self.began + self.bounds.seconds - time.monotonic()

    def send(self, request: Request) -> Exchange:
        """Send a request and wait for its response.

        Raises:
            LimitReached: all requests were sent, or the time is over.
        """
        if len(self.exchanges) >= self.bounds.requests or self.seconds_left <= 0:
            raise LimitReached
        seconds = max(0.1, min(RESPONSE_SECONDS, self.seconds_left))
        response = send(self.url, request, self.credentials[request.person], seconds=seconds)
        self.exchanges.append(Exchange(request, response, self.canary))
        return self.exchanges[-1]

    def require_victim(self) -> Target:
        """Return the call to attack; SkipCheck if there is none."""
        if not self.targets:
            reason = "no call was found that answers with input_required"
            raise SkipCheck(reason)
        return self.targets[0]

    def require_victim_with_state(self) -> Target:
        """Return the call to attack; SkipCheck if it returns no state, or correct answers do not complete it."""
        victim = self.require_victim()
        if not victim.gives_state:
            raise SkipCheck(reason=f"{victim.name} asks without a requestState")
        if not victim.completes:
            last = victim.rounds[-1].response
            raise SkipCheck(reason=f"{victim.name} does not complete when its questions are answered: {last}")
        return victim

    def require_victim_needing_state(self) -> Target:
        """Return the call to attack, as `require_victim_with_state`; SkipCheck if answers alone complete it too.

        MRTR, Server Requirements: "Integrity protection MAY be omitted only when tampering can cause nothing worse than
        request failure". Where answers alone complete the call, a forged state that does so too proves nothing.
        """
        victim = self.require_victim_with_state()
        if not self._victim_needs_state:
            reason = f"{victim.name} completes without any state too (cold-answers), so nothing is proved to hang on it"
            raise SkipCheck(reason)
        return victim

    @cached_property
    def _victim_needs_state(self) -> bool:
        return self.needs_state(self.targets[0])

    def needs_state(self, target: Target) -> bool:
        """Return whether correct answers without a state do not complete a call."""
        return not self.call(target, inputResponses=target.answers).response.done

    def list_request(self) -> Request:
        """Return a correct `tools/list` request."""
        return messages.write(self.list_message())

    def list_message(self) -> JSONRPCMessage:
        """Return a correct `tools/list` message."""
        return messages.message("tools/list", {}, next(self.ids))

    def request(
        self, target: Target, person: str = CALLER, capabilities: ClientCapabilities | None = None, **params: object
    ) -> Request:
        """Return the request that calls a target, with some params added or replaced."""
        changed = cast("Params", {**target.params, **params})
        message = messages.message(target.method, changed, next(self.ids), capabilities)
        return messages.write(message, messages.header_parameters(target.schema), person)

    def call(self, target: Target, **changes: Any) -> Exchange:  # noqa: ANN401 - as `request` takes them
        """Call a target, with the parameters of `request`."""
        return self.send(self.request(target, **changes))

    def begin(self, target: Target) -> tuple[str, dict[str, Any]]:
        """Begin a conversation; return its first state, and correct answers to its first questions."""
        return _state_and_answers(target, self.call(target).response)

    def reach_last_round(self, target: Target, person: str = CALLER) -> tuple[str, dict[str, Any]]:
        """Hold a conversation up to its last questions. Return the state and the answers that complete the call."""
        response = self.call(target, person=person).response
        for _ in target.rounds[2:]:  # the first round was just sent, and the check sends the last one
            response = self.call(target, person=person, **_retry_params(response)).response
        return _state_and_answers(target, response)

    def hold_conversation(self, target: Target) -> Target:
        """Hold a correct conversation, and return the target with its rounds."""
        rounds = [self.call(target)]
        while rounds[-1].response.questions is not None and len(rounds) < MAX_ROUNDS:
            rounds.append(self.call(target, **_retry_params(rounds[-1].response)))
        return replace(target, rounds=rounds)

    def has_advanced(self, target: Target, response: Response) -> bool:
        """Return whether a response is beyond the first round: complete, or with other questions."""
        if response.done:
            return True
        if not response.questions:
            return False
        return _field_names(response.questions) != _field_names(target.questions)

    def other_calls(self, target: Target) -> Iterator[Target]:
        """Yield calls of the same tool, prompt or resource with other arguments that ask too."""
        other_arguments = other_values.others(target.schema, target.params.get("arguments") or {})
        changed = [{**target.params, "arguments": arguments} for arguments in other_arguments]
        for params in [*target.similar, *changed][:MAX_OTHER_CALLS]:
            other = Target(target.method, params, target.schema)
            if self.call(other).response.questions:
                yield other


def _retry_params(response: Response) -> dict[str, Any]:
    """Return the params that the next round adds: correct answers, and the state."""
    params: dict[str, Any] = {}
    if response.questions:
        params["inputResponses"] = other_values.answers(response.questions)
    if response.state is not None:
        params["requestState"] = response.state
    return params


def _state_and_answers(target: Target, response: Response) -> tuple[str, dict[str, Any]]:
    """Return the state of a response, and correct answers to its questions.

    Raises:
        SkipCheck: the response has no state, or no questions.
    """
    if response.state is None or not response.questions:
        raise SkipCheck(reason=f"{target.name} asked before, and now: {response}")
    return response.state, other_values.answers(response.questions)


def _field_names(questions: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the names of each question's fields. Its text may differ from call to call, for example by a price."""
    fields = {}
    for key, request in questions.items():
        schema = ((request or {}).get("params") or {}).get("requestedSchema") or {}
        fields[key] = sorted(schema.get("properties") or {})
    return fields
