"""A client whose conversation meets faults, and the laws that hold in every round.

    Client.play           holds a conversation: it sends rounds, and `_check_round` checks the laws after each
    Act                   a fault, or an unusual thing that a client may do, for example to send a request twice
    run_without_faults    the result that the conversation must have

A round is one request and its response.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from unittest.mock import patch

from mcp_functions import Step, serve
from mcp_functions.handlers.runner import run_round
from mcp_functions.protocol.errors import McpError
from mcp_functions.rounds.round import History, Round, RoundOptions, RoundRequest
from mcp_functions_harness.client.tasks import EVERYTHING
from tests.laws.people import Person, choose_some, malformed_answer, message_of, open_pages
from tests.laws.services import SERVICES
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mcp_functions.http.gateway import LambdaFunction
    from mcp_functions.protocol.wire_types import Params
    from mcp_functions.rounds.questions import WireQuestion
    from tests.laws.corpus import Case

MAX_ROUNDS = 16
SEAL = wire.PlainCodec()  # keeps states unencrypted: these laws concern rounds, and the seal has its own tests
ACTS = {
    "all": "answer all open questions",
    "some": "answer some of them",
    "nothing": "answer none",
    "malformed": "send answers that the questions do not allow",
    "cold": "answer questions that were not asked yet",
    "overwrite": "answer all questions of the function, asked or not",
    "repeat": "send the last request again",
    "rewind": "go back to an earlier state",
    "version": "deploy another version of the function, and answer all",
    "container": "reach the other container, and answer all",
}


class Act(NamedTuple):
    """One of ACTS, and a number that chooses a detail, for example the round of "rewind"."""

    name: str
    number: int


@cache
def container_of(case_name: str, version: int, number: int) -> LambdaFunction:  # noqa: ARG001 - a key of the cache
    """Return a container that runs a version of a handler; there are two of each, with the numbers 0 and 1."""
    from tests.laws.corpus import CASES

    (case,) = (case for case in CASES if case.name == case_name)
    return serve(case.versions[version], codec=SEAL, now=lambda: SERVICES.now)


@dataclass(frozen=True)
class Moment:
    """A conversation after a round.

    Attributes:
        state: the request state; None before the first round.
        questions: the open questions, by key.
        effects: the texts of the effects so far.
        answered: the key and the message of each question that has a valid answer.
        rounds: the number of rounds so far.
        flow: the number of the conversation: each first request begins another one.
    """

    state: str | None = None
    questions: dict[str, Any] = field(default_factory=dict)
    effects: frozenset[str] = frozenset()
    answered: frozenset[tuple[str, str]] = frozenset()
    rounds: int = 0
    flow: int = 0


class Request(NamedTuple):
    """A request of a client, and the container that receives it."""

    point: Moment
    responses: dict[str, Any]
    handler: LambdaFunction


@dataclass
class Client:
    """One client in one conversation.

    Attributes:
        case: the function, and the request that calls it.
        person: answers the questions.
        stranger: answers questions that the function did not ask.
        known_questions: the questions of all versions of the function, by key.
        version: the version that the next request reaches.
        container: the container of that version, 0 or 1.
        points: the conversation after each round, and again when the client went back to it.
        idempotency_keys: the keys of each effect, by flow and text.
        flows: how many first requests the client has sent.
        final: the last response; None while there are questions.
        last: the last request.
    """

    case: Case
    person: Person
    stranger: Person
    known_questions: dict[str, Any]
    version: int = 0
    container: int = 0
    points: list[Moment] = field(default_factory=lambda: [Moment()])
    idempotency_keys: dict[tuple[int, str], set[str]] = field(default_factory=dict)
    flows: int = 0
    final: dict[str, Any] | None = None

    def play(self, acts: Sequence[Act]) -> Iterator[None]:
        """Perform the acts, then answer all questions until the end; yield after each round."""
        self._send({})
        yield
        for act in acts:
            if self.final is None:
                self._act(act)
                yield
        while self.final is None:
            assert self.points[-1].rounds <= MAX_ROUNDS
            self._send(self._answers())
            yield

    def _act(self, act: Act) -> None:
        match act.name:
            case "repeat":
                self._repeat_last()
                return
            case "rewind":
                self.points.append(self.points[act.number % len(self.points)])
            case "version":
                self.version = (self.version + 1) % len(self.case.versions)
            case "container":
                self.container = 1 - self.container
        self._send(self._responses(act))

    def _responses(self, act: Act) -> dict[str, Any]:
        """Return the `inputResponses` of an act."""
        answers = self._answers()
        questions = self.points[-1].questions
        unrequested = {key: self.stranger.answer(key, question) for key, question in self.known_questions.items()}
        match act.name:
            case "some":
                return {key: answers[key] for key in choose_some(answers, act.number)}
            case "malformed":
                return {key: malformed_answer(act.number, question) for key, question in questions.items()}
            case "cold":
                return {key: answer for key, answer in unrequested.items() if key not in questions}
            case "overwrite":
                return {**unrequested, **answers}
            case "nothing":
                return {}
        return answers

    def _answers(self) -> dict[str, Any]:
        return {key: self.person.answer(key, question) for key, question in self.points[-1].questions.items()}

    def _repeat_last(self) -> None:
        """Send the last request again: the response has the same questions."""
        before = self.points[-1]
        self._exchange(self.last)
        after = self.points[-1]
        if self.final is None and self.last.point.state is not None:
            assert after.questions == before.questions
            assert after.effects == before.effects

    def _send(self, responses: dict[str, Any]) -> None:
        open_pages(self.points[-1].questions, responses)
        container = container_of(self.case.name, self.version, self.container)
        self.last = Request(self.points[-1], responses, container)
        self._exchange(self.last)

    def _exchange(self, request: Request) -> None:
        """Send a request, check the laws, and keep what the response says."""
        point = request.point
        if point.state is None:
            self.flows += 1
        flow = point.flow or self.flows
        SERVICES.begin_round()
        body = self._post(request)
        self._check_round(point, flow)
        result = body.get("result", {})
        if result.get("resultType") != "input_required":
            self.final = body
            return
        requests = result["inputRequests"]
        answered = point.answered | self._valid_answers(request)
        repeated = {(key, message_of(question)) for key, question in requests.items()} & answered
        assert not repeated, "a question with an answer was asked again"
        effects = point.effects | {effect.text for effect in SERVICES.effects}
        self.points.append(Moment(result["requestState"], requests, effects, answered, point.rounds + 1, flow))

    def _valid_answers(self, request: Request) -> set[tuple[str, str]]:
        """Return the key and the message of each question that this request answers. A page may be asked for again."""
        return {
            (key, message_of(question))
            for key, question in request.point.questions.items()
            if request.responses.get(key) == self.person.answer(key, question)
            if question["params"].get("mode") != "url"
        }

    def _check_round(self, point: Moment, flow: int) -> None:
        """Check what the function did in the round after `point`."""
        assert SERVICES.opened_resources <= 1, "a handler ran twice in a round"
        assert SERVICES.opened_resources == SERVICES.closed_resources, "a resource was not closed"
        effects = [effect.text for effect in SERVICES.effects]
        assert len(effects) == len(set(effects)), "a step ran twice in a round"
        assert not point.effects & set(effects), "a step ran again although it was recorded"
        for effect in SERVICES.effects:
            if effect.key is not None:
                assert point.state is not None, "a keyed step ran before a state could repeat its key"
                keys = self.idempotency_keys.setdefault((flow, effect.text), set())
                keys.add(effect.key)
                assert len(keys) == 1, "one effect had two idempotency keys"

    def _post(self, request: Request) -> dict[str, Any]:
        params = dict(self.case.params)
        if request.point.state is not None:
            params["requestState"] = request.point.state
        if request.responses:
            params["inputResponses"] = request.responses
        message = wire.message(self.case.method, params, capabilities=EVERYTHING)
        event = wire.event(message, context={"timeEpoch": int(SERVICES.now * 1000)})
        response = request.handler(event, wire.Context(f"local_{self.case.name}"))
        assert response["statusCode"] == 200, response["body"]
        return wire.read(response, self.case.method)


FLOW = "without faults"  # the id of a conversation that nothing disturbs


class OnlyRound(Round):
    """A round that answers its questions at once, so that the function needs no second round."""

    def __init__(self, person: Person, known_questions: dict[str, Any], options: RoundOptions) -> None:
        super().__init__(RoundRequest(capabilities=EVERYTHING), History(FLOW), options)
        self.person = person
        self.known_questions = known_questions

    def ask(self, *questions: WireQuestion) -> list[Any]:
        outcomes = [self._outcome(question) for question in questions]
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        return outcomes

    def _outcome(self, question: WireQuestion) -> Any:  # noqa: ANN401 - whatever the question's `read` makes of it
        request: dict[str, Any] = dict(question.request)
        self.known_questions[question.key] = request
        answer = self.person.answer(question.key, request)
        open_pages({question.key: request}, {question.key: answer})
        try:
            return question.read(answer)
        except Exception as outcome:  # noqa: BLE001 - as the engine does
            return outcome

    def require_state(self) -> None:
        pass


def run_without_faults(case: Case, version: int, person: Person) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run a handler in one round. Return its result, and the questions that it asked.

    A handler of the low level returns an InputRequiredResult, so it gets more rounds.
    """
    handler = case.versions[version]
    known_questions: dict[str, Any] = {}
    options = RoundOptions(camel_case=handler.camel_case)
    round_: Round = OnlyRound(person, known_questions, options)
    while True:
        SERVICES.begin_round()
        try:
            # This round has no time limit: it goes on where the function would end it.
            with patch.object(Step, "shed", lambda _step: None):
                result = run_round(handler, cast("Params", case.params), round_)
        except McpError as error:
            return {"error": error.message}, known_questions
        if result is not None:
            return {"result": result}, known_questions
        known_questions.update(round_.requests)
        answers = {key: person.answer(key, dict(question)) for key, question in round_.requests.items()}
        request = RoundRequest(responses=answers, capabilities=EVERYTHING)
        round_ = Round(
            request, History(FLOW, record=round_.next_record(), asked=round_.questions.open_fingerprints()), options
        )


def result_of(body: dict[str, Any]) -> dict[str, Any]:
    """Return the result or the error of a response, without the members that the server adds."""
    if "error" in body:
        return {"error": body["error"]["message"]}
    return {"result": {name: value for name, value in body["result"].items() if name not in ("resultType", "_meta")}}
