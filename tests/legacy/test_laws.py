"""A client of 2025 gets the result that a client of 2026-07-28 gets, and each step runs once.

Hypothesis makes a plan: the questions of each round, the answers that arrive twice, the polls, new containers, and the
round in which the function dies. A death ends the call in an error.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from mcp_functions import Elicit, Question, Step, tool
from tests.legacy.deployment import Deployment
from tests.support import wire
from tests.support.placements import PLACEMENTS

if TYPE_CHECKING:
    from collections.abc import Mapping


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

    placement: str
    rounds: tuple[int, ...]
    twice: frozenset[int]
    polls: int
    behind: bool
    fresh: bool
    dies: int


PLANS = st.builds(
    Plan,
    st.sampled_from(PLACEMENTS),
    st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple),
    st.frozensets(st.integers(0, 8), max_size=4),
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
    st.sampled_from([-1, 1, 2]),
)


def dies(plan: Plan) -> bool:
    """Return whether the call reaches the round in which the function dies."""
    return 0 < plan.dies <= len(plan.rounds)


class Word(BaseModel):
    word: str


class PlannedTool:
    """A tool that asks as a plan says and records its steps, and its deployment."""

    def __init__(self, plan: Plan) -> None:
        self.steps: list[str] = []
        steps = self.steps

        @tool
        def ask(*, elicit: Elicit, step: Step) -> str:
            """Run a step before each round of questions."""
            words: list[str] = []
            for number, questions in enumerate(plan.rounds):
                name = f"step-{number}"
                step(name, steps.append, name)
                keys = [f"{number}-{question}" for question in range(questions)]
                answers = elicit.together(*(Question(f"Word {key}?", Word, key=key) for key in keys))
                words += [answer.word for answer in answers]
            return " ".join(words)

        self.deployment = Deployment(ask, placement=plan.placement)


def word_for(question: Mapping[str, Any]) -> str:
    """Return the answer to a question: its key."""
    message: str = question["params"]["message"]
    return message.removeprefix("Word ").removesuffix("?")


def call_as_client_of_2026(plan: Plan) -> dict[str, Any]:
    """Hold the conversation as a client of 2026-07-28; return the result."""
    deployment = PlannedTool(plan._replace(placement="direct")).deployment
    context = deployment.client().authorizer_context()
    continuation: dict[str, Any] = {}
    while True:
        message = wire.message("tools/call", {"name": "ask", **continuation})
        response = deployment(wire.event(message, context=context), wire.Context("local_all"))
        result = wire.read(response, "tools/call")["result"]
        if result["resultType"] == "complete":
            return {"content": result["content"], "isError": result["isError"]}
        responses = {
            key: {"action": "accept", "content": {"word": word_for(question)}}
            for key, question in result["inputRequests"].items()
        }
        continuation = {"requestState": result["requestState"], "inputResponses": responses}


class PlannedClient:
    """A client of 2025 that polls and answers as a plan says."""

    def __init__(self, plan: Plan, deployment: Deployment) -> None:
        self.plan, self.deployment = plan, deployment
        rounds = itertools.count()
        deployment.on_round = lambda: next(rounds) == plan.dies
        self.client = deployment.initialized_client()
        self.answers = 0

    def call(self) -> dict[str, Any]:
        """Hold the conversation; return the response to the call."""
        events = self.client.call("ask")
        for _ in range(100):
            message: dict[str, Any] | None = events[-1].data
            position = self.client.event_ids[-1]
            if message is None:
                self.deployment.clock.advance(10)
                position = events[0].id if self.plan.behind else position
            elif "method" in message:
                self.answer(message)
                position = self.client.event_ids[-1]
            else:
                return message
            self.maybe_replace_containers()
            events = self.client.resume(position)
        pytest.fail("the call has no end")

    def answer(self, question: Mapping[str, Any]) -> None:
        """Poll some times, and answer a question once or twice."""
        for _ in range(self.plan.polls):
            self.maybe_replace_containers()
            assert self.client.resume()[-1].data is None
        for _ in range(2 if self.answers in self.plan.twice else 1):
            self.maybe_replace_containers()
            status = self.client.accept(question["id"], word=word_for(question))["statusCode"]
            assert status == 202 or (status == 503 and self.plan.dies >= 0)
        self.answers += 1

    def maybe_replace_containers(self) -> None:
        if self.plan.fresh:
            self.deployment.replace_containers()


@settings(max_examples=30)
@given(PLANS)
def test_a_legacy_client_gets_what_a_modern_one_gets(plan: Plan) -> None:
    assume(not dies(plan))
    planned_tool = PlannedTool(plan)
    response = PlannedClient(plan, planned_tool.deployment).call()
    assert response["result"] == call_as_client_of_2026(plan)
    assert planned_tool.steps == [f"step-{number}" for number in range(len(plan.rounds))]
    assert planned_tool.deployment.rounds_run == len(plan.rounds) + 1


@settings(max_examples=15)
@given(PLANS)
def test_a_killed_function_ends_its_call_with_an_error(plan: Plan) -> None:
    assume(dies(plan))
    planned_tool = PlannedTool(plan)
    response = PlannedClient(plan, planned_tool.deployment).call()
    assert response["error"]["message"] == "The function did not answer in time"
    assert len(planned_tool.steps) == plan.dies
