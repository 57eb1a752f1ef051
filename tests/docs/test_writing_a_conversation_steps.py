"""The page "Writing a conversation", on steps: a step runs once, and a round ends before its time is up."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mcp.client._input_required import DEFAULT_INPUT_REQUIRED_MAX_ROUNDS

from mcp_functions import (
    Elicit,
    Step,
    ToolError,
    serve,
    tool,
)
from mcp_functions_harness.testing import Conversation
from tests.docs.stand_ins import YES, Clock, Ledger, Ok, Other
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.http.gateway import LambdaFunction


# ---- Steps


def test_a_step_runs_once(ledger: Ledger) -> None:
    @tool
    def buy(item: str, *, elicit: Elicit, step: Step) -> str:
        """Look something up, and ask twice."""
        offer = step("look-up", ledger.look_up, item)
        elicit("one", f"{offer}: yes?", Ok)
        elicit("two", f"{offer}: really?", Ok)
        return offer

    talk = Conversation(serve(buy)).call(item="lamp").accept(one=YES).accept(two=YES)
    assert (talk.text, ledger.calls) == ("offer for lamp", ["lamp"])


def test_a_result_has_the_annotated_type() -> None:
    def look_up() -> Other:
        return Other(said="hello")

    kinds: list[type] = []

    @tool
    def typed(*, elicit: Elicit, step: Step) -> str:
        """Read a step's result in two rounds."""
        kinds.append(type(step("look-up", look_up)))
        kinds.append(type(step("plain", lambda: {"a": [1, "b"]})))
        elicit("sure", "Sure?", Ok)
        return "done"

    Conversation(serve(typed)).call().accept(sure=YES)
    assert kinds == [Other, dict] * 2


def test_changing_the_result_of_a_step_changes_no_record() -> None:
    seen: list[list[str]] = []

    @tool
    def packs(*, elicit: Elicit, step: Step) -> str:
        """Add to what a step returned."""
        bag = step("pack", lambda: ("map", "rope"))
        seen.append([*bag])
        bag.append("soap")  # type: ignore[attr-defined]  # a tuple is a list in every round
        elicit("sure", "Sure?", Ok)
        return "done"

    assert Conversation(serve(packs)).call().accept(sure=YES).text == "done"
    assert seen == [["map", "rope"]] * 2


def test_a_step_key_that_is_in_use_is_refused(author_error: Callable[[Conversation], str]) -> None:
    async def fetch(page: int) -> int:
        await asyncio.sleep(0)
        return page

    def fetching(*keys: str) -> Conversation:
        @tool
        async def fetches(*, step: Step) -> int:
            """Fetch some pages at once."""
            return sum(await asyncio.gather(*(step.wait(key, fetch, 1) for key in keys)))

        return Conversation(serve(fetches)).call()

    assert fetching("a", "b").text == "2"
    assert "step 'a' is called again while its first call still runs" in author_error(fetching("a", "b", "a"))


def test_a_result_without_a_type_is_refused(author_error: Callable[[Conversation], str]) -> None:
    @tool
    def untyped(*, step: Step) -> str:
        """Return a model from a lambda."""
        return step("look-up", lambda: Other(said="hello")).said

    assert "give it a return annotation" in author_error(Conversation(serve(untyped)).call())


def test_a_step_result_that_is_large_or_no_json_is_refused(author_error: Callable[[Conversation], str]) -> None:
    def returning(value: object) -> LambdaFunction:
        @tool
        def keep(*, step: Step) -> str:
            """Keep a value."""
            step("look-up", lambda: value)
            return "kept"

        return serve(keep)

    assert Conversation(returning("x" * 8_190)).call().text == "kept"
    assert "step 'look-up' returned 8193 bytes of at most 8192" in author_error(
        Conversation(returning("x" * 8_191)).call()
    )
    assert "JSON cannot carry" in author_error(Conversation(returning(object())).call())


def test_a_step_with_other_arguments_is_refused(author_error: Callable[[Conversation], str], ledger: Ledger) -> None:
    def version(item: str) -> LambdaFunction:
        @tool
        def buy(*, elicit: Elicit, step: Step) -> str:
            """Look something up, and ask."""
            step("look-up", ledger.look_up, item)
            elicit("sure", "Sure?", Ok)
            return "bought"

        return serve(buy)

    talk = Conversation(version("lamp")).call().upgrade(version("sofa")).accept(sure=YES)
    assert "step 'look-up' ran with other arguments" in author_error(talk)


def test_a_step_that_raised_runs_again(ledger: Ledger) -> None:
    def fragile() -> str:
        ledger.calls.append("tried")
        if len(ledger.calls) == 1:
            message = "The shop is closed."
            raise ToolError(message)
        return "open"

    @tool
    def visit(*, elicit: Elicit, step: Step) -> str:
        """Ask, and visit a shop."""
        elicit("sure", "Sure?", Ok)
        return step("visit", fragile)

    talk = Conversation(serve(visit)).call().accept(sure=YES)
    assert (talk.text, talk.result["isError"]) == ("The shop is closed.", True)
    assert talk.retry().text == "open"


def test_a_question_inside_a_step_is_refused(author_error: Callable[[Conversation], str]) -> None:
    @tool
    def asking(*, elicit: Elicit, step: Step) -> bool:
        """Ask inside a step."""
        return step("outer", lambda: elicit("sure", "Sure?", Ok).ok)

    @tool
    def stepping(*, step: Step) -> int:
        """Step inside a step."""
        return step("outer", lambda: step("inner", lambda: 1))

    assert "'sure' is asked inside step 'outer'" in author_error(Conversation(serve(asking)).call())
    assert "step 'inner' runs inside step 'outer'" in author_error(Conversation(serve(stepping)).call())


def test_after_a_lost_response_a_step_runs_again_with_the_same_key(ledger: Ledger) -> None:
    @tool
    def buy(*, elicit: Elicit, step: Step) -> str:
        """Pay in the middle, and at the end."""
        elicit("one", "First payment?", Ok)
        first = step("first", lambda: ledger.charge(10, key=step.key))
        elicit("two", "Second payment?", Ok)
        return f"{first}, {step('second', lambda: ledger.charge(20, key=step.key))}"

    talk = Conversation(serve(buy)).call().accept(one=YES)
    talk.retry()  # the response that carried the record was lost
    first, again = ledger.keys
    assert first == again
    said = talk.accept(two=YES).text
    assert talk.retry().text == said == "receipt for 10, receipt for 20"
    _, _, second, again = ledger.keys
    assert second == again != first


def test_an_idempotency_key_depends_on_the_conversation_the_step_and_its_arguments(
    ledger: Ledger, page: dict[str, Any]
) -> None:
    @tool
    def pay(*, elicit: Elicit, step: Step) -> str:
        """Pay three times."""
        elicit("sure", "Sure?", Ok)
        step.keyed("one", ledger.charge, 10)
        step.keyed("two", ledger.charge, 10)
        return step.keyed("three", ledger.charge, 20)

    talk = Conversation(serve(pay)).call().accept(sure=YES)
    other = Conversation(serve(pay)).call().accept(sure=YES)
    assert talk.text == other.text == "receipt for 20"
    assert len(set(ledger.keys)) == 6
    talk.retry()
    assert ledger.keys[6:] == ledger.keys[:3]
    bought = Conversation(serve(page["buy"])).call(item="lamp").accept(consent=True)
    receipt = bought.text
    assert receipt.startswith("receipt ")
    assert bought.retry().text == receipt


def test_a_keyed_step_never_runs_in_the_first_round(ledger: Ledger) -> None:
    @tool
    def pay(*, step: Step) -> str:
        """Pay at once."""
        return step.keyed("pay", ledger.charge, 10)

    talk = Conversation(serve(pay)).call()
    assert (talk.done, talk.asked, ledger.keys) == (False, [], [])
    assert talk.answer().text == "receipt for 10"
    talk.retry()
    assert len(set(ledger.keys)) == 1
    assert Conversation(serve(tool(max_sheds=0)(pay.function))).call().text == "receipt for 10"


def test_a_plain_step_in_the_first_round_may_happen_twice(ledger: Ledger) -> None:
    @tool
    def pay(*, step: Step) -> str:
        """Pay at once."""
        return step("pay", lambda: ledger.charge(10, key=step.key))

    Conversation(serve(pay)).call().retry()
    assert len(set(ledger.keys)) == 2


def test_now_uuid_and_random_stay_the_same() -> None:
    drawn = []

    @tool
    def draw(*, elicit: Elicit, step: Step) -> str:
        """Draw, and ask."""
        drawn.append((step.now(), step.uuid("order"), step.random("coin")))
        return str(elicit("sure", f"Begun at {step.now():%H:%M:%S}. Sure?", Ok).ok)

    talk = Conversation(serve(draw)).call().later(minutes=5).answer().accept(sure=YES)
    assert talk.text == "True"
    assert len(drawn) == 3
    ((began, _order, coin),) = set(drawn)
    assert (began.tzinfo, 0 <= coin < 1) == (UTC, True)
    assert abs((began - datetime.now(UTC)).total_seconds()) < 600
    Conversation(serve(draw)).call()
    assert len(set(drawn)) == 2


def test_async_steps_are_awaited(ledger: Ledger) -> None:
    async def look_up(item: str) -> str:
        await asyncio.sleep(0)
        return ledger.look_up(item)

    @tool
    async def buy(item: str, *, elicit: Elicit, step: Step) -> str:
        """Look something up, and ask."""
        offer = await step.wait("look-up", look_up, item)
        elicit("sure", f"{offer}: sure?", Ok)
        return offer

    talk = Conversation(serve(buy)).call(item="lamp").accept(sure=YES)
    assert (talk.text, ledger.calls) == ("offer for lamp", ["lamp"])


# ---- When the time is short


def work_for(clock: Clock, steps: int, seconds: float, **options: Any) -> Conversation:  # noqa: ANN401 - of @tool
    work = clock.works(seconds)

    @tool(**options)
    def compute(*, step: Step) -> int:
        """Work, step by step."""
        return sum(step(f"step-{number}", work, number) for number in range(steps))

    return Conversation(serve(compute, now=clock)).call()


def test_a_minute_of_work_takes_three_rounds(clock: Clock, page: dict[str, Any]) -> None:
    talk = work_for(clock, steps=10, seconds=6)
    assert (talk.done, talk.asked) == (False, [])
    talk.answer().answer()
    assert (talk.text, len(talk.rounds)) == ("45", 3)
    assert Conversation(serve(page["count_year"])).call(year=2026).text == "438"


def test_a_round_ends_if_its_remaining_time_is_shorter_than_the_longest_step(clock: Clock) -> None:
    work = {9: clock.works(9), 1: clock.works(1)}

    @tool
    def compute(*, step: Step) -> int:
        """Work for 9, 1, 9, 1 … seconds."""
        return sum(step(f"step-{n}", work[9 if n % 2 == 0 else 1], n) for n in range(6))

    began = clock.now
    Conversation(serve(compute, now=clock)).call()
    assert clock.now - began == 9 + 1 + 9  # one second would have fitted, nine would not


def test_step_within_declares_the_duration_of_a_step(clock: Clock) -> None:
    work = clock.works(1)

    @tool
    def compute(*, step: Step) -> int:
        """Work for a second that might be twenty."""
        return sum(step.within(20)(f"step-{number}", work, number) for number in range(12))

    began = clock.now
    Conversation(serve(compute, now=clock)).call()
    assert clock.now - began == 8  # a ninth step might have ended at 28, and the round has 27


def test_the_first_new_step_of_a_round_always_runs(clock: Clock) -> None:
    talk = work_for(clock, steps=3, seconds=25)
    assert (talk.answer().answer().text, len(talk.rounds)) == ("3", 3)


def test_work_outside_steps_is_not_interrupted(clock: Clock) -> None:
    work = clock.works(6)

    @tool
    def compute() -> int:
        """Work, without steps."""
        return sum(work(number) for number in range(10))

    talk = Conversation(serve(compute, now=clock)).call()
    assert (talk.text, len(talk.rounds)) == ("45", 1)


def test_the_third_round_without_a_question_is_an_error(clock: Clock) -> None:
    talk = work_for(clock, steps=20, seconds=6).answer().answer()
    assert talk.result["isError"]
    assert "max_sheds" in talk.text


def test_four_minutes_of_work_take_ten_rounds_if_the_author_raises_the_limit(clock: Clock) -> None:
    talk = work_for(clock, steps=40, seconds=6, max_sheds=9).go_on()
    assert (talk.text, len(talk.rounds)) == ("780", 10)
    assert len(talk.rounds) <= DEFAULT_INPUT_REQUIRED_MAX_ROUNDS + 1


def test_an_author_ends_a_round_after_new_work(author_error: Callable[[Conversation], str], ledger: Ledger) -> None:
    @tool
    def polite(*, step: Step) -> str:
        """Work a little, and give way once."""
        step("one", ledger.look_up, "one")
        if len(ledger.calls) == 1:
            ledger.calls.append("gave way")
            step.shed()
        return step("two", ledger.look_up, "two")

    talk = Conversation(serve(polite)).call()
    assert (talk.done, talk.asked) == (False, [])
    assert talk.answer().text == "offer for two"
    assert ledger.calls == ["one", "gave way", "two"]

    @tool
    def idle(*, step: Step) -> str:
        """Give way without work."""
        step.shed()

    assert "must have recorded a step" in author_error(Conversation(serve(idle)).call())


def test_progress_inside_a_step_is_reported_once(page: dict[str, Any], clock: Clock) -> None:
    def slow(month: int) -> int:
        clock.now += 6
        return month

    page["count"] = slow
    handler = serve(page["count_year"], now=clock)
    reported: list[list[int]] = []
    state: dict[str, str] = {}
    while not reported or state:
        call = {"name": "count_year", "arguments": {"year": 2026}, **state}
        sent = wire.message("tools/call", call, meta={"progressToken": "p"})
        *notified, answer = wire.messages(handler(wire.event(sent), wire.Context("local_count_year")))
        reported.append([notification["params"]["progress"] for notification in notified])
        state = {key: answer["result"][key] for key in ("requestState",) if key in answer["result"]}
    assert reported == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]


def test_a_function_without_the_option_has_no_tasks(page: dict[str, Any]) -> None:
    asked = wire.message("tasks/get", {"taskId": "1"})
    response = page["handler"](wire.event(asked), wire.Context("local_open_ticket"))
    assert wire.read(response, "tasks/get")["error"]["code"] == -32601
