"""A law: whatever becomes of a legacy client's messages, it gets what a modern one gets, and each step runs once.

A plan decides how many questions each round asks, which answers are delivered twice, when the client comes for more, in
which containers, and whether a function dies. A death ends in an honest error; without one the results are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from mcp_functions import Elicit, Question, Step, tool
from tests.legacy.world import DOORS, World
from tests.support import wire

if TYPE_CHECKING:
    from tests.legacy.clients import Client


class Plan(NamedTuple):
    """The events that happen to one call.

    Attributes:
        rounds: questions of each round.
        twice: the numbers of the answers that are delivered twice, counted over the whole call.
        polls: the number of polls before each answer.
        behind: whether the client always resumes from the first event of a stream, as after a broken connection.
        fresh: whether every request finds new containers.
        dies: the round in which the function dies; -1 for none.

    """

    door: str
    rounds: tuple[int, ...]
    twice: frozenset[int]
    polls: int
    behind: bool
    fresh: bool
    dies: int


PLANS = st.builds(
    Plan,
    st.sampled_from(DOORS),
    st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple),
    st.frozensets(st.integers(0, 8), max_size=4),
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
    st.sampled_from([-1, -1, -1, 1, 2]),
)


class Word(BaseModel):
    word: str


class Deployment:
    """One tool, made to a plan, that notes each step that it takes."""

    def __init__(self, plan: Plan) -> None:
        self.steps: list[str] = []
        steps = self.steps

        @tool
        def planned(*, elicit: Elicit, step: Step) -> str:
            """Ask as planned, with a step before each round."""
            words: list[str] = []
            for number, questions in enumerate(plan.rounds):
                step(f"step-{number}", steps.append, f"step-{number}")
                asks = [Question(f"q-{number}-{each}", f"Word {number} {each}?", Word) for each in range(questions)]
                words += [answer.word for answer in elicit.together(*asks)]
            return " ".join(words)

        self.world = World(planned, door=plan.door)


def word_for(message: str) -> str:
    return message.removeprefix("Word ").removesuffix("?")


def modern(plan: Plan) -> dict[str, Any]:
    """Let a client of 2026-07-28 hold the conversation."""
    world = Deployment(plan._replace(door=DOORS[0])).world
    more: dict[str, Any] = {}
    claims = world.client()
    while True:
        sent = wire.message("tools/call", {"name": "planned", **more})
        event = wire.event(sent, context=claims.signed())
        result = wire.read(world(event, wire.Context("local-all")), "tools/call")["result"]
        if result["resultType"] == "complete":
            return {"content": result["content"], "isError": result["isError"]}
        answers = {
            key: {"action": "accept", "content": {"word": word_for(asked["params"]["message"])}}
            for key, asked in result["inputRequests"].items()
        }
        more = {"requestState": result["requestState"], "inputResponses": answers}


def legacy(plan: Plan, deployment: Deployment) -> dict[str, Any]:
    """Let a client of 2025 hold it, as the plan says; return its response."""
    world = deployment.world
    rounds = iter(range(100))
    world.died = lambda: next(rounds) == plan.dies
    client = world.client()
    client.initialize()
    events = client.call("planned")
    answered = 0
    for _ in range(100):
        last = events[-1].data
        if last is not None and "method" not in last:
            response: dict[str, Any] = last
            return response
        if last is None:
            world.clock.advance(10)
        else:
            for _poll in range(plan.polls):
                _anew(plan, world)
                again = client.resume()
                assert again[-1].data is None
            _answer(client, world, plan, last, twice=answered in plan.twice)
            answered += 1
        _anew(plan, world)
        place = events[0].id if plan.behind and last is None else client.seen[-1]
        events = client.resume(place)
    message = "the call has no end"
    raise AssertionError(message)


def _answer(client: Client, world: World, plan: Plan, asked: dict[str, Any], *, twice: bool) -> None:
    for _ in range(2 if twice else 1):
        _anew(plan, world)
        status = client.accept(asked["id"], word=word_for(asked["params"]["message"]))["statusCode"]
        assert status in ({202} if plan.dies < 0 else {202, 503})


def _anew(plan: Plan, world: World) -> None:
    if plan.fresh:
        world.anew()


@settings(max_examples=30)
@given(PLANS)
def test_a_legacy_client_gets_what_a_modern_one_gets(plan: Plan) -> None:
    deployment = Deployment(plan)
    response = legacy(plan, deployment)
    dies = 0 < plan.dies <= len(plan.rounds)
    if dies:
        assert response["error"]["message"] == "The function did not answer in time"
        assert len(deployment.steps) == plan.dies
    else:
        assert response["result"] == modern(plan)
        assert deployment.steps == [f"step-{number}" for number in range(len(plan.rounds))]
        assert deployment.world.ran == len(plan.rounds) + 1
