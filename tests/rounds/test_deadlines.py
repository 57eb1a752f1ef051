"""Deadlines: a round ends before API Gateway or Lambda stops it, and the next round continues the work.

The tools here work in steps of some seconds, which only move a clock: nothing waits. A round that has no time for its
next step ends without a question. The client repeats the request with the state, and the recorded steps do not run
again. `max_sheds` is the number of such rounds in a row that a tool may need.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import Elicit, Step, prompt, serve, tool
from mcp_functions.rounds.round import MARGIN_SECONDS
from mcp_functions_harness import Harness
from mcp_functions_harness.testing import Conversation
from tests.clients.people import Person, text
from tests.laws.clock import Clock
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.handlers.base import Handler
    from mcp_functions.http.gateway import LambdaFunction

NOW = 1_785_000_000.0  # unix seconds
LAMBDA_SECONDS = 29  # the time limit of a function in the template; API Gateway waits one second more
LONG_SECONDS = 900  # a time limit of Lambda that is no limit here


@pytest.fixture
def clock() -> Clock:
    clock = Clock()
    clock.now = NOW
    return clock


def work_in_steps(clock: Clock, *seconds: float, **options: Any) -> Handler[..., Any]:  # noqa: ANN401 - of @tool
    """Make a tool with a step for each of these durations."""

    @tool(**options)
    def work(*, step: Step) -> str:
        return str([step(f"part-{part}", clock.work, part, duration) for part, duration in enumerate(seconds)])

    return work


def call(clock: Clock, handler: Handler[..., Any]) -> Conversation:
    """Call a tool whose time is the clock's."""
    return Conversation(serve(handler, now=clock)).call()


# How long a round may last.


def send_first_request(
    function: LambdaFunction,
    *,
    received: Any = int(NOW * 1000),  # noqa: ANN401 - some tests send nonsense
    lambda_seconds: float = LAMBDA_SECONDS,
) -> dict[str, Any]:
    """Call the first tool of a function, and return its result.

    Args:
        function: the function.
        received: when API Gateway received the request, in unix milliseconds.
        lambda_seconds: the time that Lambda still gives the function.
    """
    name = function.handlers[0].name
    message = wire.message("tools/call", {"name": name, "arguments": {}})
    event = wire.event(message, context={"timeEpoch": received})
    response = function(event, wire.Context(f"local_{name}", int(lambda_seconds * 1000)))
    result: dict[str, Any] = wire.read(response, "tools/call")["result"]
    return result


def test_a_round_without_time_for_the_next_step_ends_with_a_state_and_no_question(clock: Clock) -> None:
    result = send_first_request(serve(work_in_steps(clock, 6, 6, 6, 6, 6), now=clock))
    assert result["resultType"] == "input_required"
    assert result["inputRequests"] == {}
    assert result["requestState"]
    assert clock.parts == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("lambda_seconds", "steps"),
    [
        pytest.param(14, 2, id="two steps of 6 seconds, and 2 seconds to answer"),
        pytest.param(13.999, 1, id="a millisecond less"),
        pytest.param(20, 3, id="three steps"),
        pytest.param(LONG_SECONDS, 4, id="API Gateway ends four steps, after 30 seconds"),
    ],
)
def test_a_step_runs_if_it_would_end_two_seconds_before_the_deadline(
    clock: Clock, lambda_seconds: float, steps: int
) -> None:
    function = serve(work_in_steps(clock, 6, 6, 6, 6, 6), now=clock)
    send_first_request(function, lambda_seconds=lambda_seconds)
    assert len(clock.parts) == steps


@pytest.mark.parametrize(("seconds_ago", "steps"), [(0, 4), (3, 4), (5, 3), (17, 1), (29, 1)])
def test_api_gateway_waits_30_seconds_from_when_it_received_the_request(
    clock: Clock, seconds_ago: float, steps: int
) -> None:
    function = serve(work_in_steps(clock, 6, 6, 6, 6, 6), now=clock)
    send_first_request(function, received=int((NOW - seconds_ago) * 1000), lambda_seconds=LONG_SECONDS)
    assert len(clock.parts) == steps


@pytest.mark.parametrize(
    "received",
    [
        pytest.param(int(NOW), id="seconds, as SAM local writes"),
        pytest.param(-1, id="negative"),
        pytest.param(int((NOW - 59) * 1000), id="older than API Gateway waits"),
        pytest.param(int((NOW + 1) * 1000), id="in the future"),
        pytest.param("1785000000000", id="text"),
        pytest.param(None, id="null"),
        pytest.param(NOW * 1000, id="a fraction"),
    ],
)
def test_an_implausible_time_of_the_request_counts_as_now(clock: Clock, received: object) -> None:
    function = serve(work_in_steps(clock, 6, 6, 6, 6, 6), now=clock)
    send_first_request(function, received=received, lambda_seconds=LONG_SECONDS)
    assert clock.parts == [0, 1, 2, 3]


def test_the_next_step_is_expected_to_last_as_long_as_the_longest(clock: Clock) -> None:
    call(clock, work_in_steps(clock, 13, 1, 1, 1))
    assert clock.parts == [0, 1, 2]


def test_the_longest_step_of_an_earlier_round_counts_too(clock: Clock) -> None:
    talk = call(clock, work_in_steps(clock, 20, 8, 1))
    assert clock.parts == [0]
    assert not talk.answer().done
    assert clock.parts == [0, 1]


def test_a_declared_duration_replaces_the_expected_one(clock: Clock) -> None:
    @tool
    def work(*, step: Step) -> str:
        step("long", clock.work, 0, 15)
        step.within(2)("short", clock.work, 1, 1)
        step.within(12)("too long", clock.work, 2, 1)
        return "done"

    call(clock, work)
    assert clock.parts == [0, 1]


def test_the_first_new_step_of_a_round_always_runs(clock: Clock) -> None:
    talk = call(clock, work_in_steps(clock, 100, 100))
    assert clock.parts == [0]
    assert talk.answer().text == "[0, 1]"
    assert clock.parts == [0, 1]


def test_a_clock_that_is_set_back_gives_no_extra_time(clock: Clock) -> None:
    talk = call(clock, work_in_steps(clock, 6, -3600, 6, 6, 6, 6, 6))
    assert talk.text == "[0, 1, 2, 3, 4, 5, 6]"


def test_a_repeated_round_runs_only_its_own_steps_again(clock: Clock) -> None:
    talk = call(clock, work_in_steps(clock, *[6] * 10)).answer()
    assert clock.parts == [0, 1, 2, 3, 4, 5, 6, 7]
    assert talk.retry().answer().text == str(list(range(10)))
    assert clock.parts == [0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7, 8, 9]


def test_the_work_continues_in_another_process(clock: Clock) -> None:
    handler = work_in_steps(clock, 20, 20, 20)
    talk = call(clock, handler)
    for _ in range(2):
        talk.upgrade(serve(handler, now=clock)).answer()
    assert talk.text == "[0, 1, 2]"
    assert clock.parts == [0, 1, 2]


# How many rounds in a row may end without a question.


@pytest.mark.parametrize("max_sheds", [0, 1, 2, 5])
def test_one_round_too_many_without_a_question_is_a_tool_error(clock: Clock, max_sheds: int) -> None:
    talk = call(clock, work_in_steps(clock, *[20] * 9, max_sheds=max_sheds))
    for _ in range(max_sheds):
        assert not talk.done
        talk.answer()
    assert talk.result["isError"]
    assert talk.text == (
        f"This call takes longer than {max_sheds + 1} rounds without a question. "
        "(The server's author can raise max_sheds.)"
    )


def test_two_rounds_in_a_row_may_end_without_a_question_by_default(clock: Clock) -> None:
    assert call(clock, work_in_steps(clock, 20, 20, 20)).answer().answer().text == "[0, 1, 2]"
    assert call(clock, work_in_steps(clock, 20, 20, 20, 20)).answer().answer().result["isError"]


def test_a_question_resets_the_count_of_rounds_without_one(clock: Clock) -> None:
    @tool
    def work(*, elicit: Elicit, step: Step) -> str:
        for part in (0, 1, 2):
            step(f"part-{part}", clock.work, part, 20)
        elicit("ok", "Go on?", bool)
        for part in (3, 4, 5):
            step(f"part-{part}", clock.work, part, 20)
        return "done"

    assert call(clock, work).go_on().accept(ok=True).go_on().text == "done"
    assert clock.parts == [0, 1, 2, 3, 4, 5]


def test_no_except_clause_hides_that_a_function_takes_too_long(clock: Clock) -> None:
    @tool(max_sheds=0)
    def work(*, step: Step) -> str:
        for part in range(5):
            try:
                step(f"part-{part}", clock.work, part, 20)
            except Exception:  # noqa: BLE001 - as careless authors write
                return "it failed"
        return "done"

    assert "max_sheds" in call(clock, work).text
    assert clock.parts == [0]


def test_a_prompt_that_takes_too_long_is_an_error(clock: Clock) -> None:
    @prompt
    def work(*, step: Step) -> str:
        return str([step(f"part-{part}", clock.work, part, 20) for part in range(5)])

    assert "max_sheds" in call(clock, work).answer().answer().error["message"]


# An author may end a round.


def test_an_author_may_end_a_round_after_a_step(clock: Clock) -> None:
    @tool
    def work(*, step: Step) -> str:
        step("first", clock.work, 1, 0)
        if clock.parts == [1]:
            step("second", clock.work, 2, 0)
            step.shed()
        return "done"

    talk = call(clock, work)
    assert not talk.done
    assert talk.asked == []
    assert talk.answer().text == "done"
    assert clock.parts == [1, 2]


def test_an_author_may_not_end_a_round_without_a_new_step(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    @tool
    def work(*, step: Step) -> str:
        step.shed()

    assert call(clock, work).result["isError"]
    expected = "a round that ends without a question must have recorded a step, or it would only repeat itself"
    assert caplog.messages[-1].startswith(f"failed: {expected} at ")


# The official Python client repeats the request by itself.


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    """Serve tests/laws/functions: its tools `slow` and `slower` (max_sheds=9) work in steps."""
    functions = Path(__file__).parents[1] / "laws" / "functions"
    with Harness(functions, state_dir=tmp_path_factory.mktemp("state")) as running:
        yield running


@pytest.fixture
def served_clock(harness: Harness) -> Clock:
    """Return the clock of the served function, without earlier work."""
    clock: Clock = harness.functions["slow"].handler.clock  # type: ignore[attr-defined]  # see laws/functions/slow
    clock.rounds, clock.parts = [], []
    return clock


@pytest.mark.parametrize(
    ("name", "parts", "rounds"), [("slow", 10, 3), ("slower", 40, 10)], ids=["a minute", "four minutes"]
)
def test_the_client_gets_the_result_of_work_that_needs_several_rounds(
    harness: Harness, served_clock: Clock, name: str, parts: int, rounds: int
) -> None:
    result = Person().call_tool(f"{harness.url}/slow", name, {"parts": parts, "seconds": 6})
    assert text(result) == str(sum(range(parts)))
    assert served_clock.parts == list(range(parts))  # each part once
    work_rounds = [seconds for seconds in served_clock.rounds if seconds > 1]  # the others list the tools
    assert len(work_rounds) == rounds
    assert max(work_rounds) <= LAMBDA_SECONDS - MARGIN_SECONDS


def test_the_client_gets_the_error_of_work_that_needs_too_many_rounds(harness: Harness, served_clock: Clock) -> None:
    result = Person().call_tool(f"{harness.url}/slow", "slow", {"parts": 40, "seconds": 6})
    assert result.is_error
    assert text(result).startswith("This call takes longer than 3 rounds without a question.")
    assert served_clock.parts == list(range(12))  # four in each round
