"""Deadlines: a round ends in time, and the work goes on in the next; on clocks that only work moves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from mcp_functions import Elicit, Step, prompt, serve, tool
from mcp_functions.local import Harness
from mcp_functions.local.api_gateway.events import Moment
from mcp_functions.rounds.round import MARGIN_SECONDS
from mcp_functions.testing import Conversation
from tests.clients.people import Person, text
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.handlers.base import Handler
    from mcp_functions.http.gateway import LambdaFunction
    from tests.laws.clock import Clock

FUNCTIONS = Path(__file__).parents[1] / "laws" / "functions"
NOW = 1_785_000_000.0
LAMBDA = 29  # seconds that the template gives a function; API Gateway waits one more


class Ok(BaseModel):
    ok: bool


# Through the official Python client, without any store.


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    with Harness(FUNCTIONS, state_dir=tmp_path_factory.mktemp("state")) as running:
        yield running


@pytest.fixture
def clock(harness: Harness) -> Clock:
    clock: Clock = harness.functions["slow"].handler.clock  # type: ignore[attr-defined]  # see laws/functions/slow
    clock.rounds, clock.parts = [], []
    return clock


@pytest.mark.parametrize(
    ("name", "parts", "rounds"), [("slow", 10, 3), ("slower", 40, 10)], ids=["a minute", "four minutes"]
)
def test_more_work_than_a_round_has_time_for_completes(
    harness: Harness, clock: Clock, name: str, parts: int, rounds: int
) -> None:
    result = Person().call_tool(f"{harness.url}/slow", name, {"parts": parts, "seconds": 6})
    assert text(result) == str(sum(range(parts)))
    assert clock.parts == list(range(parts))  # each part once
    worked = [round(seconds) for seconds in clock.rounds if seconds]  # not to say what tools there are
    assert (len(worked), sum(worked)) == (rounds, parts * 6)
    assert max(worked) <= LAMBDA - MARGIN_SECONDS


def test_a_function_without_a_declaration_may_not_take_four_minutes(harness: Harness, clock: Clock) -> None:
    result = Person().call_tool(f"{harness.url}/slow", "slow", {"parts": 40, "seconds": 6})
    assert result.is_error
    assert text(result) == (
        "This call takes longer than 3 rounds without a question. (The server's author can raise max_sheds.)"
    )
    assert len([seconds for seconds in clock.rounds if seconds]) == 3


# One round, closely.


class Hours:
    """A clock, and work that moves it."""

    def __init__(self) -> None:
        self.now = NOW
        self.done: list[int] = []

    def work(self, part: int, seconds: float) -> int:
        self.now += seconds
        self.done.append(part)
        return part


@pytest.fixture
def hours() -> Hours:
    return Hours()


def served(hours: Hours, handler: Handler[..., Any]) -> LambdaFunction:
    return serve(handler, now=lambda: hours.now)


def parts(hours: Hours, *seconds: float, **options: Any) -> Handler[..., Any]:  # noqa: ANN401 - of @tool
    """Make a tool that works for so many seconds, one step after the other."""

    @tool(name="parts", **options)
    def in_parts(*, step: Step) -> str:
        return str([step(f"part-{n}", hours.work, n, each) for n, each in enumerate(seconds)])

    return in_parts


def first_round(function: LambdaFunction, *, began: Any = int(NOW * 1000), remaining: float = LAMBDA) -> dict[str, Any]:  # noqa: ANN401
    """Play a first round that came at `began`, as the gateway says, to a Lambda with `remaining` seconds."""
    name = function.handlers[0].name
    sent = wire.event(wire.message("tools/call", {"name": name, "arguments": {}}), context={"timeEpoch": began})
    response = function(sent, wire.Context(f"local-{name}", int(remaining * 1000)))
    result: dict[str, Any] = wire.read(response, "tools/call")["result"]
    return result


def test_a_round_without_time_for_the_next_step_ends_with_a_state_and_no_question(hours: Hours) -> None:
    result = first_round(served(hours, parts(hours, 6, 6, 6, 6, 6)))
    assert (result["resultType"], result["inputRequests"]) == ("input_required", {})
    assert result["requestState"]
    assert hours.done == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("remaining", "done"),
    [(14, [0, 1]), (14.001, [0, 1]), (13.999, [0]), (20, [0, 1, 2]), (300, [0, 1, 2, 3])],
)
def test_a_step_fits_if_the_longest_so_far_would_end_two_seconds_before_lambda_does(
    hours: Hours, remaining: float, done: list[int]
) -> None:
    first_round(served(hours, parts(hours, 6, 6, 6, 6, 6)), remaining=remaining)
    assert hours.done == done


@pytest.mark.parametrize(("late", "done"), [(0, 4), (3, 4), (5, 3), (17, 1), (29, 1), (59, 4)])
def test_the_gateways_time_counts_from_when_it_got_the_request(hours: Hours, late: float, done: int) -> None:
    first_round(served(hours, parts(hours, 6, 6, 6, 6, 6)), began=int((NOW - late) * 1000), remaining=900)
    assert len(hours.done) == done


@pytest.mark.parametrize(
    "began",
    [int(NOW), 0, -1, int((NOW - 61) * 1000), int((NOW + 1) * 1000), "1785000000000", None, NOW * 1000],
    ids=["seconds, as SAM local writes", "nothing", "nonsense", "old", "ahead", "text", "null", "a fraction"],
)
def test_an_implausible_request_time_is_ignored(hours: Hours, began: object) -> None:
    first_round(served(hours, parts(hours, 6, 6, 6, 6, 6)), began=began, remaining=900)
    assert hours.done == [0, 1, 2, 3]  # thirty seconds from now on


def test_the_longest_step_counts_not_the_last(hours: Hours) -> None:
    first_round(served(hours, parts(hours, 13, 1, 1, 1, 1)), remaining=LAMBDA)
    assert hours.done == [0, 1, 2]


def test_a_declared_duration_replaces_the_measured_one(hours: Hours) -> None:
    @tool
    def declared(*, step: Step) -> str:
        step("long", hours.work, 0, 15)
        step.within(2)("short", hours.work, 1, 1)
        return str(step.within(12)("middle", hours.work, 2, 1))

    first_round(served(hours, declared))
    assert hours.done == [0, 1]


def test_the_first_new_step_of_a_round_always_runs(hours: Hours) -> None:
    talk = Conversation(served(hours, parts(hours, 100, 100))).call()
    assert hours.done == [0]
    assert talk.answer().text == "[0, 1]"
    assert hours.done == [0, 1]


def test_a_round_that_is_ended_remembers_the_longest_step(hours: Hours) -> None:
    talk = Conversation(served(hours, parts(hours, 20, 8, 1))).call()
    assert hours.done == [0]
    talk.answer()  # eight seconds of work, and then no room for what once took twenty
    assert (talk.done, hours.done) == (False, [0, 1])


def test_a_clock_that_is_set_back_gives_no_extra_time(hours: Hours) -> None:
    talk = Conversation(served(hours, parts(hours, 6, -3600, 6, 6, 6, 6, 6))).call()
    assert talk.done
    assert hours.done == [0, 1, 2, 3, 4, 5, 6]


def test_a_repeated_round_runs_only_its_own_steps_again(hours: Hours) -> None:
    talk = Conversation(served(hours, parts(hours, *[6] * 10))).call().answer()
    assert hours.done == [0, 1, 2, 3, 4, 5, 6, 7]
    assert talk.retry().answer().text == str(list(range(10)))
    assert hours.done == [0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7, 8, 9]


# Rounds in a row.


def ended(talk: Conversation) -> str:
    assert talk.done
    assert talk.result["isError"]
    return talk.text


def test_two_rounds_in_a_row_may_end_without_a_question(hours: Hours) -> None:
    talk = Conversation(served(hours, parts(hours, *[20] * 3))).call()
    for _ in range(2):
        assert (talk.done, talk.asked) == (False, [])
        talk.answer()
    assert talk.text == "[0, 1, 2]"


@pytest.mark.parametrize("sheds", [0, 1, 2, 5])
def test_one_round_too_many_without_a_question_is_a_tool_error(hours: Hours, sheds: int) -> None:
    talk = Conversation(served(hours, parts(hours, *[20] * 9, max_sheds=sheds))).call()
    for _ in range(sheds):
        assert not talk.done
        talk.answer()
    assert ended(talk).startswith(f"This call takes longer than {sheds + 1} rounds without a question.")
    assert "max_sheds" in talk.text


def test_a_question_resets_the_count_of_rounds_without_one(hours: Hours) -> None:
    @tool
    def asks_in_between(*, elicit: Elicit, step: Step) -> str:
        for n in range(6):
            step(f"part-{n}", hours.work, n, 20)
            if n in (1, 3):
                elicit(f"ok-{n}", "Go on?", Ok)
        return "done"

    talk = Conversation(served(hours, asks_in_between)).call().go_on()
    talk.accept(**{"ok-1": {"ok": True}}).go_on()
    assert talk.accept(**{"ok-3": {"ok": True}}).go_on().text == "done"
    assert hours.done == [0, 1, 2, 3, 4, 5]


def test_no_except_clause_hides_that_a_function_takes_too_long(hours: Hours) -> None:
    @tool(max_sheds=1)
    def careless(*, step: Step) -> str:
        found = []
        for n in range(5):
            try:
                found.append(step(f"part-{n}", hours.work, n, 20))
            except Exception:  # noqa: BLE001 - as careless authors write
                found.append(-1)
        return str(found)

    talk = Conversation(served(hours, careless)).call().answer()
    assert "max_sheds" in ended(talk)
    assert hours.done == [0, 1]


def test_a_prompt_that_takes_too_long_is_an_error(hours: Hours) -> None:
    @prompt
    def long_prompt(*, step: Step) -> str:
        return str([step(f"part-{n}", hours.work, n, 20) for n in range(5)])

    talk = Conversation(served(hours, long_prompt)).get().answer().answer()
    assert "max_sheds" in talk.error["message"]


# By hand.


def test_an_author_may_end_a_round(hours: Hours) -> None:
    @tool
    def by_hand(*, step: Step) -> str:
        first = step("first", hours.work, 1, 0)
        before = len(hours.done)
        second = step("second", hours.work, 2, 0)
        if len(hours.done) > before:
            step.shed()
        return str([first, second])

    talk = Conversation(served(hours, by_hand)).call()
    assert (talk.done, talk.asked) == (False, [])
    assert talk.answer().text == "[1, 2]"
    assert hours.done == [1, 2]


def test_an_author_may_not_end_a_round_without_a_new_step(hours: Hours, caplog: pytest.LogCaptureFixture) -> None:
    @tool
    def idle(*, step: Step) -> str:
        step.shed()

    assert Conversation(served(hours, idle)).call().result["isError"] is True
    expected = "a round that ends without a question must have recorded a step, or it would only repeat itself"
    assert caplog.messages[-1].startswith(f"failed: {expected} at ")


# Whole conversations.


def test_work_in_parts_continues_in_any_process(hours: Hours) -> None:
    handler = parts(hours, *[6] * 10)
    talk = Conversation(served(hours, handler)).call()
    while not talk.done:
        talk.upgrade(served(hours, handler)).answer()
    assert talk.text == str(list(range(10)))
    assert hours.done == list(range(10))


def test_the_recorded_event_matches_the_conversation(hours: Hours) -> None:
    """The helper's events come at the function's own time, unless a test brings another."""
    talk = Conversation(served(hours, parts(hours, 6))).call()
    assert talk.rounds[0][0]["requestContext"]["timeEpoch"] == NOW * 1000
    moment = replace(Moment.at(NOW), now=NOW - 20)
    talk = Conversation(served(hours, parts(hours, 6, 6)), moment=lambda: moment).call()
    assert json.loads(talk.rounds[0][1]["body"])["result"]["resultType"] == "input_required"
