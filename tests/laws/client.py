"""A client that things happen to, and what must hold in every round whatever they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions import serve
from mcp_functions.handlers.runner import run_round
from mcp_functions.protocol.errors import McpError
from mcp_functions.rounds.round import Round, RoundRequest
from tests.laws.people import MALFORMED, Person, open_pages, words
from tests.laws.world import WORLD
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mcp_functions.http.gateway import LambdaFunction
    from mcp_functions.rounds.asking import WireQuestion
    from tests.laws.corpus import Case

EVERYTHING: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
MAX_ROUNDS = 16
SEAL = wire.Boxes()  # these laws concern rounds; the seal has its own tests
ACTS = ("all", "some", "malformed", "cold", "overwrite", "repeat", "rewind", "version", "container", "nothing")


class Act(NamedTuple):
    """Something that a client does, and a number that says to what."""

    what: str
    which: int


@cache
def container(case_name: str, version: int, number: int) -> LambdaFunction:
    """Return one of the containers that run a version of a handler."""
    from tests.laws.corpus import CASES  # noqa: PLC0415 - it is what imports this

    (case,) = (case for case in CASES if case.name == case_name)
    del number
    return serve(case.versions[version], codec=SEAL, now=lambda: WORLD.now)


@dataclass(frozen=True)
class Point:
    """Where a conversation stands after a round, and all that went before on the way there.

    Attributes:
        state: as the server sealed it; None before the first round.
        open: the questions that wait for an answer.
        done: the steps that ran on the way here.
        given: answers that fitted, by key and words of the question.
        rounds: how many it took.
        flow: which first request it goes back to.

    """

    state: str | None = None
    open: dict[str, Any] = field(default_factory=dict)
    done: frozenset[str] = frozenset()
    given: frozenset[tuple[str, str]] = frozenset()
    rounds: int = 0
    flow: int = 0


class Sent(NamedTuple):
    """A request: where it went on from, with which answers, and to whom."""

    point: Point
    responses: dict[str, Any]
    handler: LambdaFunction


@dataclass
class Client:
    """One client in one conversation. `keys` collects the idempotency keys that a deed was done under."""

    case: Case
    person: Person
    stranger: Person  # the answer to questions that were not asked
    heard_of: dict[str, Any]  # the questions that there are, asked or not
    version: int = 0
    number: int = 0
    points: list[Point] = field(default_factory=lambda: [Point()])
    keys: dict[tuple[int, str, tuple[object, ...]], set[str]] = field(default_factory=dict)
    flows: int = 0
    final: dict[str, Any] | None = None

    def play(self, acts: Sequence[Act]) -> Iterator[None]:
        """Go through what happens, then answer whatever is asked until the end; a stop after each round."""
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
        match act.what:
            case "repeat":
                self._repeat(self.last)
                return
            case "rewind":
                self.points.append(self.points[act.which % len(self.points)])
            case "version":
                self.version = (self.version + 1) % len(self.case.versions)
            case "container":
                self.number = 1 - self.number
        self._send(self._said(act))

    def _said(self, act: Act) -> dict[str, Any]:
        answers, open_ = self._answers(), self.points[-1].open
        strange = {key: self.stranger.answer(key, asked) for key, asked in self.heard_of.items()}
        match act.what:
            case "some":
                return {key: said for n, (key, said) in enumerate(answers.items()) if act.which >> n & 1}
            case "malformed":
                return dict.fromkeys(open_, MALFORMED[act.which % len(MALFORMED)])
            case "cold":  # answers to questions that were not asked, some of which will be asked later
                return {key: said for key, said in strange.items() if key not in open_}
            case "overwrite":
                return {**strange, **answers}
            case "nothing":
                return {}
        return answers

    def _answers(self) -> dict[str, Any]:
        return {key: self.person.answer(key, asked) for key, asked in self.points[-1].open.items()}

    def _repeat(self, sent: Sent) -> None:
        """Send a request twice: it comes to the same."""
        before = self.points[-1]
        self._receive(sent)
        after = self.points[-1]
        if self.final is None and sent.point.state is not None:
            assert after.open == before.open
            assert after.done == before.done

    def _send(self, responses: dict[str, Any]) -> None:
        open_pages(self.points[-1].open, responses)
        self.last = Sent(self.points[-1], responses, container(self.case.name, self.version, self.number))
        self._receive(self.last)

    def _receive(self, sent: Sent) -> None:
        point = sent.point
        if point.state is None:
            self.flows += 1
        flow = point.flow or self.flows
        WORLD.begin_round()
        body = self._post(sent)
        self._check_round(point, flow)
        result = body.get("result", {})
        if result.get("resultType") != "input_required":
            self.final = body
            return
        given = point.given | {
            (key, words(asked))
            for key, asked in point.open.items()
            if sent.responses.get(key) == self.person.answer(key, asked) and asked["params"].get("mode") != "url"
        }
        asks = {(key, words(asked)) for key, asked in result["inputRequests"].items()}
        assert not asks & given, "what was answered was asked again"
        done = point.done | {did.what + str(did.to) for did in WORLD.done}
        after = Point(result["requestState"], result["inputRequests"], done, given, point.rounds + 1, flow)
        self.points.append(after)

    def _check_round(self, point: Point, flow: int) -> None:
        assert WORLD.entered == WORLD.left <= 1, "finally did not run"
        done = [did.what + str(did.to) for did in WORLD.done]
        assert len(done) == len(set(done)), "a step ran twice in a round"
        assert not point.done & set(done), "a step ran again though it was recorded"
        for did in WORLD.done:
            if did.key is not None:
                assert point.state is not None, "a keyed step ran before anything could tie it to its repetition"
                keys = self.keys.setdefault((flow, did.what, did.to), set())
                keys.add(did.key)
                assert len(keys) == 1, "one deed was done under two idempotency keys"

    def _post(self, sent: Sent) -> dict[str, Any]:
        carried = {} if sent.point.state is None else {"requestState": sent.point.state}
        answered = {"inputResponses": sent.responses} if sent.responses else {}
        params = {**self.case.params, **carried, **answered}
        message = wire.message(self.case.method, params, capabilities=EVERYTHING)
        event = wire.event(message, context={"timeEpoch": int(WORLD.now * 1000)})
        response = sent.handler(event, wire.Context(f"local_{self.case.name}"))
        assert response["statusCode"] == 200, response["body"]
        return wire.read(response, self.case.method)


class Uninterrupted(Round):
    """A round in which everybody answers at once, so that it is the only one."""

    def __init__(self, person: Person, heard_of: dict[str, Any], request: RoundRequest) -> None:
        super().__init__(request)
        self.person, self.heard_of = person, heard_of

    def ask(self, *questions: WireQuestion) -> list[Any]:
        outcomes = [self._said(question) for question in questions]
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        return outcomes

    def _said(self, question: WireQuestion) -> Any:  # noqa: ANN401 - whatever the question's `read` makes of it
        asked: dict[str, Any] = dict(question.request)
        self.heard_of[question.key] = asked
        said = self.person.answer(question.key, asked)
        open_pages({question.key: asked}, {question.key: said})
        try:
            return question.read(said)
        except Exception as outcome:  # noqa: BLE001 - as the engine does
            return outcome

    def check_may_run(self, max_seconds: float | None) -> None:
        pass

    def end_without_question(self) -> None:  # type: ignore[override]  # there is all the time in the world
        pass

    def require_state(self) -> None:
        pass


def ideal(case: Case, version: int, person: Person) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a handler comes to if nothing ever interrupts it, and the questions it asked."""
    handler, heard_of = case.versions[version], dict[str, Any]()
    request = RoundRequest(flow="the ideal", camel_case=handler.camel_case, capabilities=EVERYTHING)
    round_: Round = Uninterrupted(person, heard_of, request)
    while True:
        WORLD.begin_round()
        try:
            result = run_round(handler, case.params, round_)
        except McpError as error:
            return {"error": error.message}, heard_of
        if result is not None:
            return {"result": result}, heard_of
        # A function of the low level has ended its round itself.
        heard_of.update(round_.requests)
        said = {key: person.answer(key, dict(asked)) for key, asked in round_.requests.items()}
        round_ = Round(request._replace(responses=said), round_.next_record(), round_.questions.open_fingerprints())


def comes_to(body: dict[str, Any]) -> dict[str, Any]:
    """Return what a handler came to, without what the server adds."""
    if "error" in body:
        return {"error": body["error"]["message"]}
    return {"result": {name: value for name, value in body["result"].items() if name not in ("resultType", "_meta")}}
