"""Steps: what is done once in a conversation, what may be done again and under which key, what may be returned."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from threading import Event
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from mcp_functions import Elicit, Step, ToolError, prompt, resource, serve, tool
from mcp_functions.protocol.errors import DeveloperError, InputRequired
from mcp_functions.rounds.round import Round, RoundRequest
from mcp_functions.rounds.step_call import MAX_BYTES
from mcp_functions.testing import Conversation
from tests.support.conversations import talk_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.handlers.base import Handler

YES = {"ok": True}


class Ok(BaseModel):
    ok: bool


class Bank:
    """An external service that must not act twice and records the key of each payment."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def pay(self, euros: int, *, key: str) -> str:
        self.keys.append(key)
        return f"receipt for {euros}"


@pytest.fixture
def did() -> Counter[str]:
    return Counter()


@pytest.fixture
def bank() -> Bank:
    return Bank()


# Once.


def test_a_step_runs_in_one_round_and_is_read_in_the_others(did: Counter[str]) -> None:
    def reserve(city: str) -> str:
        did[city] += 1
        return f"a seat to {city}"

    @tool
    def book(city: str, *, elicit: Elicit, step: Step) -> str:
        seat = step("reserve", reserve, city)
        elicit("first", f"{seat}?", Ok)
        elicit("second", "Really?", Ok)
        return seat

    talk = talk_to(book).call(city="Lisbon").accept(first=YES).accept(second=YES)
    assert talk.text == "a seat to Lisbon"
    assert did == {"Lisbon": 1}


def test_the_result_of_a_step_travels_sealed() -> None:
    @tool
    def keeps(*, elicit: Elicit, step: Step) -> str:
        return step("secret", lambda: "the treasure is below the oak") + str(elicit("ok", "Ok?", Ok).ok)

    talk = talk_to(keeps).call()
    assert "treasure" not in str(talk.body)
    assert talk.accept(ok=YES).text == "the treasure is below the oakTrue"


def test_a_loop_uses_another_key_for_each_step(did: Counter[str]) -> None:
    def fetch(page: int) -> int:
        did[str(page)] += 1
        return page * page

    @tool
    def total(*, elicit: Elicit, step: Step) -> int:
        found = sum(step(f"page-{page}", fetch, page) for page in range(4))
        elicit("ok", f"{found}?", Ok)
        return found

    assert talk_to(total).call().accept(ok=YES).text == "14"
    assert set(did.values()) == {1}


def test_one_key_may_be_read_twice_in_a_round(did: Counter[str]) -> None:
    def roll() -> int:
        did["roll"] += 1
        return did["roll"]

    @tool
    def twice(*, step: Step) -> list[int]:
        return [step("roll", roll), step("roll", roll)]

    assert talk_to(twice).call().result["structuredContent"] == [1, 1]


def test_a_step_that_raises_is_not_recorded_and_runs_again(did: Counter[str]) -> None:
    def fragile() -> str:
        did["tries"] += 1
        if did["tries"] < 3:
            message = "not yet"
            raise LookupError(message)
        return "at last"

    @tool
    def patient(*, elicit: Elicit, step: Step) -> str:
        try:
            return step("fragile", fragile)
        except LookupError:
            elicit(f"again-{did['tries']}", "It failed. Again?", Ok)
            return "unreached"

    talk = talk_to(patient).call()
    talk.accept(**{talk.asked[0]: YES})
    assert talk.accept(**{talk.asked[0]: YES}).text == "at last"


def test_a_tool_error_in_a_step_is_a_tool_error() -> None:
    def sold_out() -> str:
        message = "No seats left."
        raise ToolError(message)

    @tool
    def book(*, step: Step) -> str:
        return step("reserve", sold_out)

    talk = talk_to(book).call()
    assert (talk.text, talk.result["isError"]) == ("No seats left.", True)


def test_prompts_and_resources_have_steps_too(did: Counter[str]) -> None:
    def look_up() -> str:
        did["look up"] += 1
        return "rules"

    @prompt
    def brief(*, elicit: Elicit, step: Step) -> str:
        return f"{step('look up', look_up)} {elicit('ok', 'Ok?', Ok).ok}"

    @resource("house://rules")
    def rules(*, elicit: Elicit, step: Step) -> str:
        return f"{step('look up', look_up)} {elicit('ok', 'Ok?', Ok).ok}"

    assert talk_to(brief).get().accept(ok=YES).text == "rules True"
    assert talk_to(rules).read("house://rules").accept(ok=YES).text == "rules True"
    assert did == {"look up": 2}


# A record is what was recorded.


@dataclass
class Basket:
    items: list[str] = field(default_factory=list)


def a_basket() -> Basket:
    return Basket(["bread"])


def items() -> list[str]:
    return ["bread"]


def anything() -> Any:  # noqa: ANN401 - that is what is tried
    return {"items": ["bread"]}


@pytest.mark.parametrize(
    ("function", "taken"),
    [
        (a_basket, lambda basket: basket.items),
        (items, lambda listed: listed),
        (anything, lambda found: found["items"]),
        (lambda: [["bread"]], lambda found: found[0]),
    ],
    ids=["a dataclass", "a list", "an annotation that says nothing", "a lambda"],
)
def test_changing_a_result_changes_no_record(function: Callable[[], object], taken: Callable[[Any], list[str]]) -> None:
    seen: list[list[str]] = []

    @tool
    def shop(*, elicit: Elicit, step: Step) -> str:
        for _ in range(2):
            basket = taken(step("basket", function))
            seen.append([*basket])
            basket.append("wine")
        elicit("first", "Ok?", Ok)
        elicit("second", "Really?", Ok)
        return "done"

    assert talk_to(shop).call().accept(first=YES).accept(second=YES).text == "done"
    assert seen == [["bread"]] * 6


def test_changing_a_returned_object_later_changes_no_record() -> None:
    held: dict[str, list[int]] = {"pages": []}
    seen: list[dict[str, list[int]]] = []

    def collect() -> dict[str, list[int]]:
        held["pages"].append(1)
        return held

    @tool
    def keeps(*, elicit: Elicit, step: Step) -> str:
        seen.append(step("collect", collect))
        held["pages"].append(2)
        seen.append(step("collect", collect))
        elicit("ok", "Ok?", Ok)
        return "done"

    assert talk_to(keeps).call().accept(ok=YES).text == "done"
    assert seen == [{"pages": [1]}] * 4


def test_the_round_that_runs_a_step_sees_what_later_rounds_see() -> None:
    seen: list[Any] = []

    @tool
    def keeps(*, elicit: Elicit, step: Step) -> str:
        seen.append(step("pair", lambda: (1, {"inner": (2.0, 3)})))
        elicit("ok", "Ok?", Ok)
        return "done"

    assert talk_to(keeps).call().accept(ok=YES).text == "done"
    assert [repr(value) for value in seen] == ["[1, {'inner': [2.0, 3]}]"] * 2


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


def spoil(value: object) -> None:
    """Change everything in a value that can be changed."""
    if isinstance(value, list):
        for member in value:
            spoil(member)
        value.append("spoilt")
    elif isinstance(value, dict):
        for member in value.values():
            spoil(member)
        value["spoilt"] = value.pop(next(iter(value), ""), None)


@given(json_values, st.lists(st.booleans(), min_size=2, max_size=6))
def test_every_reading_of_a_result_is_the_same_in_every_round(value: Any, ends: list[bool]) -> None:  # noqa: ANN401 - JSON
    round_, readings = Round(RoundRequest(flow="f")), []
    for round_ends in ends:
        result = Step(round_)("it", lambda: value)
        readings.append(repr(result))
        spoil(result)
        spoil(value)
        if round_ends:
            round_ = Round(RoundRequest(flow="f"), record=json.loads(json.dumps(round_.next_record())))
    assert len(set(readings)) == 1


# One key, one run at a time.


def same_key_twice(call: str) -> str:
    return (
        f"step {call!r} is called again while its first call still runs, in another task or thread: "
        "give each call a key of its own"
    )


def carried(call: Callable[[], Any], *, copied: bool) -> Callable[[], Any]:
    """Return a call for a thread, which runs it in a copy of this context or in a fresh one."""
    context = contextvars.copy_context()
    return (lambda: context.run(call)) if copied else call


@pytest.mark.parametrize("group", [True, False], ids=["a task group", "gather"])
def test_a_key_that_two_tasks_use_at_once_runs_once_and_is_refused_by_name(
    did: Counter[str], author_error: Callable[[Conversation], str], *, group: bool
) -> None:
    async def reserve(city: str) -> str:
        did[city] += 1
        await asyncio.sleep(0)
        return f"a seat to {city}"

    @tool
    async def book(*, step: Step) -> str:
        if not group:
            return str(await asyncio.gather(*(step.wait("reserve", reserve, "Lisbon") for _ in range(2))))
        async with asyncio.TaskGroup() as running:
            for _ in range(2):
                running.create_task(step.wait("reserve", reserve, "Lisbon"))
        return "unreached"

    assert author_error(talk_to(book).call()) == same_key_twice("reserve")
    assert did == {"Lisbon": 1}


@pytest.mark.parametrize("copied", [True, False], ids=["copied contexts", "fresh contexts"])
@pytest.mark.parametrize("caught", [True, False], ids=["caught", "not caught"])
def test_a_key_that_two_threads_use_at_once_runs_once_and_is_refused_by_name(
    did: Counter[str], author_error: Callable[[Conversation], str], *, copied: bool, caught: bool
) -> None:
    begun, refused = Event(), Event()

    def reserve(city: str) -> str:
        did[city] += 1
        begun.set()
        assert refused.wait(10)
        return f"a seat to {city}"

    @tool
    def book(*, step: Step) -> str:
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(carried(lambda: step("reserve", reserve, "Lisbon"), copied=copied))
            assert begun.wait(10)
            try:
                step("reserve", reserve, "Lisbon")
            except DeveloperError as error:
                if not caught:
                    message = "an error of the author's own"
                    raise LookupError(message) from error
            finally:
                refused.set()
            return str(first.result())

    assert author_error(talk_to(book).call()) == same_key_twice("reserve")
    assert did == {"Lisbon": 1}


@pytest.mark.parametrize("copied", [True, False], ids=["copied contexts", "fresh contexts"])
def test_threads_with_different_keys_run_at_once_and_each_step_is_recorded(did: Counter[str], *, copied: bool) -> None:
    started = [Event() for _ in range(4)]

    def fetch(page: int) -> int:
        did[str(page)] += 1
        started[page].set()
        assert all(other.wait(10) for other in started)
        return page * page

    @tool
    def total(*, elicit: Elicit, step: Step) -> int:
        def fetching(page: int) -> Callable[[], int]:
            return carried(lambda: step(f"page-{page}", fetch, page), copied=copied)

        with ThreadPoolExecutor(4) as pool:
            found = sum(future.result() for future in [pool.submit(fetching(page)) for page in range(4)])
        elicit("ok", f"{found}?", Ok)
        return found

    assert talk_to(total).call().accept(ok=YES).text == "14"
    assert did == {"0": 1, "1": 1, "2": 1, "3": 1}


def test_threads_and_tasks_may_all_read_a_recorded_step(did: Counter[str]) -> None:
    def quote() -> dict[str, int]:
        did["quote"] += 1
        return {"euros": 7}

    @tool
    async def quoted(*, step: Step) -> list[int]:
        step("quote", quote)
        found = await asyncio.gather(*(asyncio.to_thread(step, "quote", quote) for _ in range(8)))
        return [one["euros"] for one in found]

    assert talk_to(quoted).call().result["structuredContent"] == [7] * 8
    assert did == {"quote": 1}


def test_a_step_that_raised_or_was_cancelled_may_be_called_again_at_once(did: Counter[str]) -> None:
    async def slow_at_first() -> str:
        did["tries"] += 1
        if did["tries"] == 1:
            message = "not yet"
            raise LookupError(message)
        if did["tries"] == 2:
            try:
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(0)  # it takes a moment to clean up
                did["cleaned up"] += 1
        return f"at last, {did['cleaned up']} cleaned up"

    @tool
    async def patient(*, step: Step) -> str:
        with contextlib.suppress(LookupError):
            await step.wait("slow", slow_at_first)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await step.wait("slow", slow_at_first)
        return await step.wait("slow", slow_at_first)

    assert talk_to(patient).call().text == "at last, 1 cleaned up"


def test_a_task_that_outlives_its_step_is_not_inside_it() -> None:
    @tool
    async def leaves(*, step: Step) -> str:
        ended = asyncio.Event()

        async def later() -> str:
            await ended.wait()
            return step("later", lambda: "later")

        async def begin() -> None:
            started.append(asyncio.create_task(later()))

        started: list[asyncio.Task[str]] = []
        await step.wait("begin", begin)
        ended.set()
        return await started[0]

    assert talk_to(leaves).call().text == "later"


def test_a_threads_running_step_finishes_and_is_recorded_when_the_round_asks(did: Counter[str]) -> None:
    begun, asked = Event(), Event()

    def reserve(city: str) -> str:
        did["begun"] += 1
        begun.set()
        assert asked.wait(10)
        Event().wait(0.1)  # the handler has ended by then
        did["done"] += 1
        return f"a seat to {city}"

    with ThreadPoolExecutor(1) as pool:

        @tool
        def book(*, elicit: Elicit, step: Step) -> str:
            seat = pool.submit(step, "reserve", reserve, "Lisbon")
            assert begun.wait(10)
            try:
                elicit("ok", "Ok?", Ok)
            finally:
                asked.set()
            return str(seat.result())

        talk = talk_to(book).call()
        assert (talk.asked, did) == (["ok"], {"begun": 1, "done": 1})
        assert talk.accept(ok=YES).text == "a seat to Lisbon"
    assert did == {"begun": 1, "done": 1}


# Not again after the end of a round.


def test_no_step_begins_in_a_round_that_has_ended(did: Counter[str]) -> None:
    def cancel() -> None:
        did["cancelled"] += 1

    @tool
    def stubborn(*, elicit: Elicit, step: Step) -> str:
        agreed = False
        with contextlib.suppress(BaseException):
            agreed = elicit("ok", "Ok?", Ok).ok
        if not agreed:
            step("cancel", cancel)
        return f"agreed: {agreed}"

    talk = talk_to(stubborn).call()
    assert talk.asked == ["ok"]
    assert talk.accept(ok=YES).text == "agreed: True"
    assert did == {}


def test_no_step_begins_after_a_broken_rule(did: Counter[str], author_error: Callable[[Conversation], str]) -> None:
    def work(value: object) -> None:
        did["worked"] += 1
        assert value

    @tool
    def stubborn(*, step: Step) -> str:
        for value in (object(), 1, 2):
            with contextlib.suppress(Exception):
                step("work", work, value)
        return "done"

    assert author_error(talk_to(stubborn).call()) == "step 'work': JSON cannot carry the arguments of work"
    assert did == {}


# The key of what must not happen twice.


def paying(bank: Bank) -> Conversation:
    @tool
    def pay(euros: int, *, elicit: Elicit, step: Step) -> str:
        elicit("ok", f"Pay {euros}?", Ok)
        receipt = step("charge", lambda: bank.pay(euros, key=step.key))
        elicit("rating", "How was it?", Ok)
        return receipt

    return talk_to(pay).call(euros=7)


def test_after_a_lost_response_a_step_may_run_again_but_under_the_same_key(bank: Bank) -> None:
    talk = paying(bank).accept(ok=YES).retry().retry()
    assert len(bank.keys) == 3
    assert len(set(bank.keys)) == 1
    assert talk.accept(rating=YES).text == "receipt for 7"
    assert len(bank.keys) == 3


def test_another_conversation_has_another_key(bank: Bank) -> None:
    for _ in range(2):
        paying(bank).accept(ok=YES)
    assert len(set(bank.keys)) == 2


def test_each_step_has_its_own_idempotency_key(bank: Bank) -> None:
    @tool
    def pay_both(*, elicit: Elicit, step: Step) -> str:
        elicit("ok", "Pay?", Ok)
        for name, euros in (("a", 1), ("b", 1)):
            step(name, lambda euros: bank.pay(euros, key=step.key), euros)
        return "paid"

    talk_to(pay_both).call().accept(ok=YES)
    assert len(set(bank.keys)) == 2
    assert all(len(key) == 32 and key.isalnum() for key in bank.keys)


def test_a_keyed_step_waits_until_the_client_holds_a_state(bank: Bank) -> None:
    @tool
    def pay(euros: int, *, step: Step) -> str:
        return step.keyed("charge", bank.pay, euros)

    talk = talk_to(pay).call(euros=7)
    assert (talk.done, talk.asked, bank.keys) == (False, [], [])
    talk.answer()
    assert (talk.text, len(bank.keys)) == ("receipt for 7", 1)
    talk.retry()
    assert len(bank.keys) == 2
    assert len(set(bank.keys)) == 1


def test_a_keyed_step_behind_a_question_costs_no_round(bank: Bank) -> None:
    @tool
    def pay(euros: int, *, elicit: Elicit, step: Step) -> str:
        elicit("ok", f"Pay {euros}?", Ok)
        return step.keyed("charge", bank.pay, euros)

    talk = talk_to(pay).call(euros=7).accept(ok=YES)
    assert (talk.text, len(talk.rounds)) == ("receipt for 7", 2)


def test_a_keyed_step_keeps_the_steps_before_it(bank: Bank, did: Counter[str]) -> None:
    def quote() -> int:
        did["quote"] += 1
        return 7

    @tool
    def pay(*, step: Step) -> str:
        return step.keyed("charge", bank.pay, step("quote", quote))

    assert talk_to(pay).call().go_on().text == "receipt for 7"
    assert did == {"quote": 1}


def test_a_keyed_step_runs_at_once_when_no_rounds_are_left(bank: Bank) -> None:
    @tool(max_sheds=0)
    def pay(euros: int, *, step: Step) -> str:
        return step.keyed("charge", bank.pay, euros)

    assert talk_to(pay).call(euros=7).text == "receipt for 7"


def test_the_key_of_a_step_is_read_while_it_runs(author_error: Callable[[Conversation], str]) -> None:
    @tool
    def early(*, step: Step) -> str:
        return step("charge", lambda key: f"paid under {key}", step.key)

    expected = "step.key is the key of a running step: read it in the function that the step calls"
    assert author_error(talk_to(early).call()) == expected


def test_a_round_without_a_seal_has_no_idempotency_keys() -> None:
    step = Step(Round())
    with pytest.raises(DeveloperError, match="MCP_KMS_KEYS is not set"):
        step("charge", lambda: step.key)
    assert Step(Round())("look", lambda: "it needs no key") == "it needs no key"


# Recorded forms of what is never the same twice.


def test_the_start_time_is_the_same_in_every_round() -> None:
    @tool
    def timed(*, elicit: Elicit, step: Step) -> str:
        elicit("ok", f"It is {step.now():%d %b %Y %H:%M}. Ok?", Ok)
        return step.now().isoformat()

    began = 1_785_000_000.123
    talk = Conversation(serve(timed, now=lambda: began)).call()
    asked = talk.messages
    assert talk.later(minutes=5).answer().messages == asked
    assert datetime.fromisoformat(talk.accept(ok=YES).text).timestamp() == began


def test_ids_and_random_numbers_are_the_same_in_every_round_and_every_repetition() -> None:
    @tool
    def dice(*, elicit: Elicit, step: Step) -> list[str]:
        before = [str(step.uuid("a")), str(step.uuid("b")), str(step.random("a")), str(step.random("b"))]
        elicit("ok", f"You rolled {step.random('a')}. Keep it?", Ok)
        return before

    talk = talk_to(dice).call()
    asked = talk.messages
    for _ in range(2):
        assert talk.answer().messages == asked
        assert talk.retry().messages == asked
    found = talk.accept(ok=YES).result["structuredContent"]
    assert len(set(found)) == 4
    assert [UUID(text).version for text in found[:2]] == [4, 4]
    assert all(0 <= float(text) < 1 for text in found[2:])
    assert talk_to(dice).call().messages != asked


# Typed results.


class Class(Enum):
    FIRST = "first"
    SECOND = "second"


@dataclass(frozen=True)
class Seat:
    row: int
    day: date
    extras: tuple[str, ...] = ()


class Flight(BaseModel):
    number: str = Field(alias="flightNumber")
    seats: list[Seat]
    cabin: Class = Class.FIRST
    leaves: datetime


class Point(NamedTuple):
    x: int
    y: int


SEAT = Seat(3, date(2027, 1, 2), ("window",))
FLIGHT = Flight(flightNumber="MF 106", seats=[SEAT], cabin=Class.SECOND, leaves=datetime(2027, 1, 2, 3, 4, tzinfo=UTC))


def a_seat() -> Seat:
    return SEAT


def a_flight() -> Flight:
    return FLIGHT


def flights() -> list[Flight]:
    return [FLIGHT, FLIGHT]


def by_name() -> dict[str, Seat]:
    return {"mine": SEAT}


def perhaps() -> Seat | None:
    return None


def a_day() -> date:
    return date(2027, 1, 2)


def a_while() -> timedelta:
    return timedelta(hours=1, seconds=2)


def a_price() -> Decimal:
    return Decimal("420.10")


def an_id() -> UUID:
    return UUID(int=7)


def a_class() -> Class:
    return Class.SECOND


def colours() -> set[str]:
    return {"red", "green"}


def a_point() -> Point:
    return Point(1, 2)


def a_pair() -> tuple[int, date]:
    return 1, date(2027, 1, 2)


def a_choice() -> Literal["yes", "no"]:
    return "yes"


def nothing() -> None:
    return None


def a_number() -> float:
    return 0.1


class Office:
    """Something with a method, and something that is called itself."""

    def seat(self) -> Seat:
        return SEAT

    def __call__(self) -> Seat:
        return SEAT


@functools.cache
def remembered() -> Seat:
    return SEAT


typed = pytest.mark.parametrize(
    "function",
    [
        a_seat,
        a_flight,
        flights,
        by_name,
        perhaps,
        a_day,
        a_while,
        a_price,
        an_id,
        a_class,
        colours,
        a_point,
        a_pair,
        a_choice,
        nothing,
        a_number,
        Office().seat,
        Office(),
        remembered,
        functools.partial(a_seat),
    ],
    ids=lambda function: getattr(function, "__name__", type(function).__name__),
)


@typed
def test_a_result_has_its_type_in_every_round(function: Callable[[], object]) -> None:
    seen: list[object] = []

    @tool
    def keeps(*, elicit: Elicit, step: Step) -> str:
        seen.append(step("it", function))
        elicit("ok", "Ok?", Ok)
        return "done"

    assert talk_to(keeps).call().accept(ok=YES).text == "done"
    assert seen == [function(), function()]
    assert [type(value) for value in seen] == [type(function())] * 2


def test_a_step_without_a_return_annotation_returns_plain_json(did: Counter[str]) -> None:
    @tool
    def keeps(*, elicit: Elicit, step: Step) -> str:
        first, *others = step("it", lambda: (1, ["two", {"three": None}], 4.5, True))
        did[f"{first} {others}"] += 1
        elicit("ok", "Ok?", Ok)
        return "done"

    assert talk_to(keeps).call().accept(ok=YES).text == "done"
    assert did == {"1 [['two', {'three': None}], 4.5, True]": 2}


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda: SEAT, "Seat"),
        (lambda: date(2027, 1, 2), "date"),
        (lambda: {1: "one"}, "dict"),
        (lambda: Point(1, 2), "Point"),
    ],
    ids=["dataclass", "date", "keys that are no strings", "named tuple"],
)
def test_a_type_that_later_rounds_could_not_restore_is_refused_in_the_first(
    function: Callable[[], object], name: str, author_error: Callable[[Conversation], str]
) -> None:
    @tool
    def keeps(*, step: Step) -> str:
        return str(step("it", function))

    assert author_error(talk_to(keeps).call()) == (
        f"step 'it': later rounds could not tell that <lambda> returned a {name}: "
        "give it a return annotation (a def, not a lambda) whose name is imported at run time"
    )


def test_an_annotation_without_information_counts_as_none(author_error: Callable[[Conversation], str]) -> None:
    def vague() -> Any:  # noqa: ANN401 - that is what is tried
        return SEAT

    @tool
    def keeps(*, step: Step) -> str:
        return str(step("it", vague))

    assert "later rounds could not tell that vague returned a Seat" in author_error(talk_to(keeps).call())


def test_a_result_that_violates_its_annotation_is_refused(author_error: Callable[[Conversation], str]) -> None:
    def wrong() -> int:
        return "seven"  # type: ignore[return-value]  # that is what is tried

    @tool
    def keeps(*, step: Step) -> str:
        return str(step("it", wrong))

    expected = "the recorded result of step 'it' does not fit what wrong says it returns: it must be an integer"
    assert author_error(talk_to(keeps).call()).startswith(expected)


def test_a_result_that_json_cannot_carry_is_refused(author_error: Callable[[Conversation], str]) -> None:
    @tool
    def keeps(*, step: Step) -> str:
        return str(step("it", object))

    assert author_error(talk_to(keeps).call()) == "step 'it': JSON cannot carry what object returned"


@pytest.mark.parametrize(("size", "fits"), [(MAX_BYTES - 2, True), (MAX_BYTES - 1, False)])
def test_a_result_that_is_too_large_is_refused(
    size: int, author_error: Callable[[Conversation], str], *, fits: bool
) -> None:
    @tool
    def keeps(*, step: Step) -> str:
        return step("it", lambda: "x" * size)

    talk = talk_to(keeps).call()
    if fits:
        assert len(talk.text) == size
    else:
        expected = f"step 'it' returned {size + 2} bytes of at most {MAX_BYTES}: keep a reference instead"
        assert author_error(talk) == expected


# Arguments.


def test_a_recorded_step_with_other_arguments_is_refused(author_error: Callable[[Conversation], str]) -> None:
    calls = iter(range(100))

    @tool
    def drifts(*, elicit: Elicit, step: Step) -> str:
        step("it", str, next(calls))
        elicit("ok", "Ok?", Ok)
        return "done"

    assert author_error(talk_to(drifts).call().accept(ok=YES)) == (
        "step 'it' ran with other arguments before: give each call a key of its own, a new one too if a deployment "
        "calls it with something else, and make its arguments from what later rounds know as well"
    )


def test_two_calls_under_one_key_with_other_arguments_are_refused(author_error: Callable[[Conversation], str]) -> None:
    @tool
    def register_for_reset(*, step: Step) -> list[str]:
        return [step("page", str, page) for page in (1, 2)]

    assert author_error(talk_to(register_for_reset).call()).startswith("step 'page' ran with other arguments before")


class Wishes(BaseModel):
    extras: set[str]


def test_models_dataclasses_dates_and_sets_are_arguments_too(did: Counter[str]) -> None:
    def count(wishes: Wishes, *seats: Seat, day: date, colours: frozenset[str]) -> int:
        did["count"] += 1
        return len(wishes.extras) + len(seats) + len(colours) + day.day

    @tool
    def keeps(*, elicit: Elicit, step: Step) -> int:
        wishes = Wishes(extras={"a", "b", "c"} if did else {"c", "b", "a"})
        found = step("count", count, wishes, SEAT, SEAT, day=date(2027, 1, 2), colours=frozenset("abc"))
        elicit("ok", "Ok?", Ok)
        return found

    assert talk_to(keeps).call().accept(ok=YES).text == "10"
    assert did == {"count": 1}


SETS = """
import hashlib
from mcp_functions.rounds.round import Round, RoundRequest
from mcp_functions.rounds.steps import Step
from pydantic import BaseModel

class Wishes(BaseModel):
    extras: set[str]

round_ = Round(RoundRequest(flow="f"))
Step(round_)("it", lambda *_: 1, {"one", "two", "three"}, Wishes(extras={"red", "green", "blue"}), {"x": [{"a", "b"}]})
print(round_.next_record()["steps"]["it"][0])
"""


def test_the_order_of_a_set_does_not_matter_across_processes() -> None:
    def digest(seed: str) -> bytes:
        command, env = [sys.executable, "-c", SETS], {"PYTHONHASHSEED": seed}
        return subprocess.run(command, env=env, capture_output=True, check=True).stdout  # noqa: S603 - the lines above

    assert digest("1") == digest("2") == digest("3")


PLAIN = """
import sys
from mcp_functions.rounds.round import Round, RoundRequest
from mcp_functions.rounds.steps import Step

def add(a: int, b: int) -> int:
    return a + b

assert Step(Round(RoundRequest(flow="f")))("it", add, 1, 2) == 3
assert Step(Round(RoundRequest(flow="f")))("it", lambda: {"plain": [1, 2.5, None]}) == {"plain": [1, 2.5, None]}
assert "pydantic" not in sys.modules and "pydantic_core" not in sys.modules

from dataclasses import dataclass
from datetime import date

@dataclass
class Seat:
    day: date

def seat(day: date) -> Seat:
    return Seat(day)

assert Step(Round(RoundRequest(flow="f")))("it", seat, date(2027, 1, 2)) == Seat(date(2027, 1, 2))
"""


def test_plain_steps_do_not_import_pydantic_and_others_do() -> None:
    subprocess.run([sys.executable, "-c", PLAIN], check=True)  # noqa: S603 - the lines above


# Versions of a function, side by side.


class Quote(BaseModel):
    euros: int


class LaterQuote(Quote):
    currency: str = "EUR"
    at: datetime | None = None


class StrictQuote(Quote):
    currency: str


def quoting(returns: type[Quote], did: Counter[str], *arguments: str) -> Handler[..., Any]:
    """Make a version of a tool whose step returns this, and is called with that."""

    def quote(*_cities: str) -> Any:  # noqa: ANN401 - see below
        did["quote"] += 1
        return returns.model_validate({"euros": 420, "currency": "USD"})

    quote.__annotations__["return"] = returns

    @tool
    def buy(*, elicit: Elicit, step: Step) -> str:
        found = step("quote", quote, *arguments)
        elicit("ok", "Buy?", Ok)
        return repr(found)

    return buy


def test_a_recorded_result_is_read_with_the_type_of_the_new_version(did: Counter[str]) -> None:
    talk = talk_to(quoting(Quote, did)).call().upgrade(serve(quoting(LaterQuote, did)))
    assert talk.accept(ok=YES).text == "LaterQuote(euros=420, currency='EUR', at=None)"
    talk = talk_to(quoting(LaterQuote, did)).call().upgrade(serve(quoting(Quote, did)))
    assert talk.accept(ok=YES).text == "Quote(euros=420)"
    assert did == {"quote": 2}


def test_a_recorded_result_that_the_new_version_cannot_read_is_an_error_with_a_remedy(
    did: Counter[str], author_error: Callable[[Conversation], str]
) -> None:
    talk = talk_to(quoting(Quote, did)).call().upgrade(serve(quoting(StrictQuote, did)))
    assert author_error(talk.accept(ok=YES)) == (
        "the recorded result of step 'quote' does not fit what quote says it returns: "
        "it currency Field required (new fields need defaults, for conversations that are under way)"
    )
    assert did == {"quote": 1}


def test_a_step_that_a_version_calls_with_other_arguments_is_an_error_and_does_not_run_again(
    did: Counter[str], author_error: Callable[[Conversation], str]
) -> None:
    talk = talk_to(quoting(Quote, did)).call().upgrade(serve(quoting(Quote, did, "Lisbon")))
    assert "a new one too if a deployment calls it with something else" in author_error(talk.accept(ok=YES))
    assert did == {"quote": 1}


# Steps and questions inside steps.


def test_a_step_inside_a_step_is_refused(author_error: Callable[[Conversation], str]) -> None:
    @tool
    def nested(*, step: Step) -> str:
        return step("outer", lambda: step("inner", lambda: "deep"))

    assert (
        author_error(talk_to(nested).call()) == "step 'inner' runs inside step 'outer': a step is recorded as a whole"
    )


def test_a_question_inside_a_step_is_refused(did: Counter[str], author_error: Callable[[Conversation], str]) -> None:
    @tool
    def asks_within(*, elicit: Elicit, step: Step) -> str:
        def book() -> str:
            did["booked"] += 1
            return str(elicit("ok", "Ok?", Ok).ok)

        return step("book", book)

    expected = "'ok' is asked inside step 'book', which would run again: ask before it"
    assert author_error(talk_to(asks_within).call()) == expected


def test_an_async_function_needs_wait(author_error: Callable[[Conversation], str]) -> None:
    async def fetch() -> str:
        return "fetched"

    @tool
    async def eager(*, step: Step) -> str:
        return str(step("fetch", fetch))

    expected = "step 'fetch' calls an async function: await step.wait('fetch', …)"
    assert author_error(talk_to(eager).call()) == expected


# Async handlers.


def test_an_async_step_is_awaited_once(did: Counter[str], bank: Bank) -> None:
    async def fetch(page: int) -> Seat:
        did[str(page)] += 1
        await asyncio.sleep(0)
        bank.pay(page, key=step_of[0].key)
        return SEAT

    step_of: list[Step] = []

    @tool
    async def fetches(*, elicit: Elicit, step: Step) -> str:
        step_of[:] = [step]
        seats = await asyncio.gather(*(step.wait(f"page-{page}", fetch, page) for page in range(3)))
        seats.append(await step.within(1).wait("page-3", fetch, 3))
        elicit("ok", "Ok?", Ok)
        return str(seats == [SEAT] * 4)

    assert talk_to(fetches).call().accept(ok=YES).text == "True"
    assert did == {"0": 1, "1": 1, "2": 1, "3": 1}
    assert len(set(bank.keys)) == 4  # each task used the key of its own step


def test_an_async_keyed_step_gets_its_key(bank: Bank) -> None:
    async def pay(euros: int, *, key: str) -> str:
        await asyncio.sleep(0)
        return bank.pay(euros, key=key)

    @tool
    async def pays(*, step: Step) -> str:
        return await step.keyed.wait("charge", pay, 7)

    talk = talk_to(pays).call()
    assert (talk.done, bank.keys) == (False, [])
    assert talk.answer().text == "receipt for 7"


@pytest.mark.parametrize("group", [True, False], ids=["a task group", "gather"])
def test_a_running_step_finishes_and_is_recorded_when_another_task_asks(
    did: Counter[str], bank: Bank, *, group: bool
) -> None:
    async def reserve(city: str) -> str:
        did["begun"] += 1
        for _ in range(5):
            await asyncio.sleep(0)
        did["done"] += 1
        return f"a seat to {city}"

    async def ask(elicit: Elicit) -> bool:
        await asyncio.sleep(0)
        return elicit("ok", "Ok?", Ok).ok

    async def reserve_and_pay(step: Step) -> str:
        seat = await step.wait("reserve", reserve, "Lisbon")
        return f"{seat}, {step('charge', lambda: bank.pay(7, key=step.key))}"

    @tool
    async def book(*, elicit: Elicit, step: Step) -> str:
        if not group:
            return str(await asyncio.gather(ask(elicit), reserve_and_pay(step)))
        async with asyncio.TaskGroup() as running:
            asked, paid = running.create_task(ask(elicit)), running.create_task(reserve_and_pay(step))
        return str([asked.result(), paid.result()])

    talk = talk_to(book).call()
    assert (talk.asked, did, bank.keys) == (["ok"], {"begun": 1, "done": 1}, [])  # and nothing new was begun
    assert talk.accept(ok=YES).text == "[True, 'a seat to Lisbon, receipt for 7']"
    assert (did, len(bank.keys)) == ({"begun": 1, "done": 1}, 1)


def test_an_async_step_that_fails_while_another_task_asks_is_not_recorded(did: Counter[str]) -> None:
    async def fragile() -> str:
        did["tries"] += 1
        await asyncio.sleep(0)
        if did["tries"] < 2:
            message = "not yet"
            raise LookupError(message)
        return "at last"

    async def ask(elicit: Elicit) -> bool:
        return elicit("ok", "Ok?", Ok).ok

    @tool
    async def book(*, elicit: Elicit, step: Step) -> str:
        return str(await asyncio.gather(step.wait("fragile", fragile), ask(elicit)))

    assert talk_to(book).call().accept(ok=YES).text == "['at last', True]"


def test_an_async_step_that_its_author_cancels_is_cancelled(did: Counter[str]) -> None:
    async def slow() -> str:
        did["begun"] += 1
        await asyncio.sleep(3600)
        return "unreached"

    @tool
    async def impatient(*, step: Step) -> str:
        try:
            return await asyncio.wait_for(step.wait("slow", slow), timeout=0)
        except TimeoutError:
            return "too slow"

    assert talk_to(impatient).call().text == "too slow"


def test_a_step_in_another_round_of_the_same_thread_is_not_inside_this_one() -> None:
    @tool
    def inner(*, elicit: Elicit, step: Step) -> str:
        return step("inner", lambda: str(elicit.possible))

    @tool
    def outer(*, step: Step) -> str:
        return step("outer", lambda: talk_to(inner).call().text)

    assert talk_to(outer).call().text == "True"


def test_a_round_ends_with_the_signal_also_where_a_step_waits() -> None:
    round_ = Round(RoundRequest(flow="f"))
    with pytest.raises(InputRequired):
        Step(round_).keyed("charge", lambda key: key)
    assert round_.next_record()["sheds"] == 1


@pytest.mark.parametrize("key", [3, 3.5, None, True, b"k"])
def test_a_key_that_is_not_a_string_is_refused_before_the_step_runs(
    key: Any,  # noqa: ANN401 - as an author may write it
    did: Counter[str],
    author_error: Callable[[Conversation], str],
) -> None:
    """JSON writes the key 3 as "3": the next round would not find the step, and run it again."""

    @tool
    def counting(*, step: Step, elicit: Elicit) -> str:
        step(key, did.update, ["done"])
        elicit("ok", "Sure?", Ok)
        return "done"

    assert author_error(talk_to(counting).call()) == f"a step's key is text, and not of type {type(key).__name__}"
    assert not did
