"""Each step runs once, although clients of 2025 send anything at any time and the table fails at any time.

One client has several calls open, answers old and new questions, resumes from any event, even during a round, and
cancels. Another user, Mallory, repeats those requests. Containers are replaced, and requests to the table fail.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_functions import Elicit, Question, Step, tool
from tests.legacy import handlers
from tests.legacy.deployment import Deployment
from tests.support.placements import PLACEMENTS

if TYPE_CHECKING:
    from collections.abc import Mapping

REQUEST_IDS = (1, 2, "1", "2")
ACTIONS = ("call", "answer", "resume", "cancel", "table faults", "new containers", "wait", "mallory")
WEIGHTS = (1, 3, 3, 1, 1, 1, 1, 1)  # how often each action comes
NUMBER_OF_ACTIONS = 40
EXPECTED_STATUSES = {200, 202, 400, 404, 405, 503}  # 400 and 404 after the end of a call, 503 if the table fails


class RandomClient:
    """A client that sends requests in any order and records the events, and a tool that counts its steps."""

    def __init__(self, placement: str, chance: Random) -> None:
        self.chance, self.steps = chance, Counter[str]()
        self.results: dict[str, set[str]] = {}  # the texts of the results, by the tag of the call
        self.questions: list[str] = []
        self.positions: list[str] = []
        self.calls = 0
        steps = self.steps

        @tool
        def job(tag: str, *, elicit: Elicit, step: Step) -> str:
            """Ask once, then twice at once, with a step before each round and after the last."""

            def mark(number: int) -> int:
                steps[f"{tag}-{number}"] += 1
                return number

            step("step-0", mark, 0)
            words = [elicit("a", "A?", handlers.Why).why]
            step("step-1", mark, 1)
            answers = elicit.together(Question("B?", handlers.Why, key="b"), Question("C?", handlers.Why, key="c"))
            words += [answer.why for answer in answers]
            step("step-2", mark, 2)
            return f"{tag}: {' '.join(words)}"

        self.deployment = Deployment(job, placement=placement)
        self.deployment.on_round = self.act_during_round
        self.client = self.deployment.initialized_client()
        self.mallory = self.deployment.initialized_client("mallory")

    def act(self, action: str) -> None:
        """Send one request, or change the table, the containers or the clock."""
        chance = self.chance
        if action == "call":
            self.calls += 1
            params = {"name": "job", "arguments": {"tag": f"t{self.calls}"}}
            self.read(self.client.http("POST", self.message("tools/call", params, id=chance.choice(REQUEST_IDS))))
        elif action == "cancel":
            self.read(
                self.client.http(
                    "POST", self.message("notifications/cancelled", {"requestId": chance.choice(REQUEST_IDS)})
                )
            )
        elif action == "table faults":
            share = chance.choice([0, 0, 0.1, 0.3])
            self.deployment.table.weather = lambda _operation: (
                chance.choice(["throttled", "lost", "unanswered"]) if chance.random() < share else None
            )
        elif action == "new containers":
            self.deployment.replace_containers()
        elif action == "wait":
            self.deployment.clock.advance(chance.choice([1, 10, 40]))
        elif self.questions:
            self.answer_or_resume(action)

    def act_during_round(self) -> bool:
        """Answer or resume while a round runs; the function does not die."""
        self.deployment.on_round = lambda: False
        if self.questions and self.chance.random() < 0.5:
            self.answer_or_resume(self.chance.choice(["answer", "answer", "resume"]))
        self.deployment.on_round = self.act_during_round
        return False

    def answer_or_resume(self, action: str) -> None:
        """Answer a question or resume from an event, often one of the last three."""
        question = self.chance.choice(self.questions[self.chance.choice([0, -3]) :])
        position = self.chance.choice(self.positions[self.chance.choice([0, -3]) :])
        if action == "answer":
            self.read(self.client.accept(question, why=self.chance.choice(["Fixed", "Duplicate"])))
        elif action == "resume":
            self.read(self.client.http("GET", last_event_id=position))
        else:
            assert self.mallory.accept(question, why="Fixed")["statusCode"] == 400
            assert self.mallory.http("GET", last_event_id=position)["statusCode"] == 404

    def read(self, response: Mapping[str, Any]) -> None:
        """Check the status, and record the questions, event ids and results."""
        assert response["statusCode"] in EXPECTED_STATUSES
        for event in self.client.read(response) if response["statusCode"] == 200 else ():
            self.positions += [event.id] if event.id else []
            if event.data and "method" in event.data:
                self.questions.append(event.data["id"])
            elif event.data and "result" in event.data:
                tag, _, words = event.data["result"]["content"][0]["text"].partition(": ")
                self.results.setdefault(tag, set()).add(words)

    def message(self, method: str, params: Mapping[str, Any], **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        return {"jsonrpc": "2.0", "method": method, "params": params, **more}


@settings(max_examples=30)
@given(st.sampled_from(PLACEMENTS), st.integers(0, 2**32))
def test_each_step_runs_once_and_each_call_has_one_result_in_any_order_of_requests(placement: str, seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - hypothesis' own belongs to one thread, and the front door uses another
    client = RandomClient(placement, chance)
    for action in chance.choices(ACTIONS, WEIGHTS, k=NUMBER_OF_ACTIONS):
        client.act(action)
    assert set(client.steps.values()) <= {1}
    assert all(len(texts) == 1 for texts in client.results.values())
