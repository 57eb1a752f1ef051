"""Each step runs once, although clients of 2025 send anything at any time and the table fails at any time.

One client has several calls open, answers old and new questions, resumes from any event, even during a round, and
cancels. Another client repeats those requests. Containers come and go, and the table fails now and then.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_functions import Elicit, Question, Step, tool
from tests.legacy import offered
from tests.legacy.world import DOORS, World

if TYPE_CHECKING:
    from collections.abc import Mapping

IDS = (1, 2, "1", "2")
TURNS = 40
ACTS = (
    "call",
    "answer",
    "answer",
    "answer",
    "resume",
    "resume",
    "resume",
    "cancel",
    "weather",
    "anew",
    "wait",
    "mallory",
)
SAID = {200, 202, 400, 404, 405, 503}  # 400 and 404 for what is over, 503 in bad weather; never a crash


class Story:
    """A client that sends requests in any order and records the events."""

    def __init__(self, door: str, chance: Random) -> None:
        self.chance, self.steps, self.results = chance, Counter[str](), dict[str, set[str]]()
        self.questions: list[str] = []
        self.places: list[str] = []
        self.calls = 0
        steps = self.steps

        @tool
        def job(tag: str, *, elicit: Elicit, step: Step) -> str:
            """Ask once, then twice at once, with a step before each round and after the last."""

            def mark(number: int) -> int:
                steps[f"{tag}-{number}"] += 1
                return number

            step("step-0", mark, 0)
            words = [elicit("a", "A?", offered.Why).why]
            step("step-1", mark, 1)
            words += [
                each.why for each in elicit.together(Question("b", "B?", offered.Why), Question("c", "C?", offered.Why))
            ]
            step("step-2", mark, 2)
            return f"{tag}: {' '.join(words)}"

        self.world = World(job, door=door)
        self.world.died = self.meanwhile
        self.client, self.mallory = self.world.client(), self.world.client("mallory")
        self.client.initialize()
        self.mallory.initialize()

    def act(self, act: str) -> None:
        """Do one thing."""
        chance = self.chance
        if act == "call":
            self.calls += 1
            params = {"name": "job", "arguments": {"tag": f"t{self.calls}"}}
            self.take(self.client.http("POST", self.message("tools/call", params, id=chance.choice(IDS))))
        elif act == "cancel":
            self.take(
                self.client.http("POST", self.message("notifications/cancelled", {"requestId": chance.choice(IDS)}))
            )
        elif act == "weather":
            bad = chance.choice([0, 0, 0.1, 0.3])
            self.world.table.weather = lambda _operation: (
                chance.choice(["throttled", "lost", "unanswered"]) if chance.random() < bad else None
            )
        elif act == "anew":
            self.world.anew()
        elif act == "wait":
            self.world.clock.advance(chance.choice([1, 10, 40]))
        elif self.questions:
            self.come_back(act)

    def meanwhile(self) -> bool:
        """Do one thing more while a round runs; no function dies here."""
        self.world.died = lambda: False
        if self.questions and self.chance.random() < 0.5:
            self.come_back(self.chance.choice(["answer", "answer", "resume"]))
        self.world.died = self.meanwhile
        return False

    def come_back(self, act: str) -> None:
        """Answer a question or resume a stream, often one of the last."""
        question = self.chance.choice(self.questions[self.chance.choice([0, -3]) :])
        place = self.chance.choice(self.places[self.chance.choice([0, -3]) :])
        if act == "answer":
            self.take(self.client.accept(question, why=self.chance.choice(["Fixed", "Duplicate"])))
        elif act == "resume":
            self.take(self.client.http("GET", last_event_id=place))
        else:
            assert self.mallory.accept(question, why="Fixed")["statusCode"] == 400
            assert self.mallory.http("GET", last_event_id=place)["statusCode"] == 404

    def take(self, response: Mapping[str, Any]) -> None:
        """Read what came."""
        assert response["statusCode"] in SAID
        for event in self.client.read(response) if response["statusCode"] == 200 else ():
            self.places += [event.id] if event.id else []
            if event.data and "method" in event.data:
                self.questions.append(event.data["id"])
            elif event.data and "result" in event.data:
                tag, _, words = event.data["result"]["content"][0]["text"].partition(": ")
                self.results.setdefault(tag, set()).add(words)

    def message(self, method: str, params: Mapping[str, Any], **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        return {"jsonrpc": "2.0", "method": method, "params": params, **more}


@settings(max_examples=30)
@given(st.sampled_from(DOORS), st.integers(0, 2**32))
def test_in_any_order_and_weather_each_step_runs_once_and_each_call_has_one_result(door: str, seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - and not hypothesis' own: the front door asks from another thread
    story = Story(door, chance)
    for _ in range(TURNS):
        story.act(chance.choice(ACTS))
    assert set(story.steps.values()) <= {1}
    assert all(len(words) == 1 for words in story.results.values())
