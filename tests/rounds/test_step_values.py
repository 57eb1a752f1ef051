"""Results and arguments of steps: what the record can carry, and how later rounds and later versions read it.

A later round may run in another process, so the record is JSON. The return annotation of a step's function says as
which type its recorded result is read. `talk_to(tool)` is the client of test_steps.py.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from unittest.mock import Mock
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr, computed_field, field_serializer

from mcp_functions import Elicit, Step, serve, tool
from mcp_functions.protocol.plain_values import is_equal
from mcp_functions.rounds.round import History, Round
from mcp_functions.rounds.step_call import MAX_BYTES
from tests.support.conversations import talk_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.handlers.base import Handler
    from mcp_functions_harness.testing import Conversation
    from tests.rounds.conftest import AuthorError


def call_step(function: Callable[..., object], *args: object) -> Conversation:
    """Call a tool that runs only this step, under the key `it`."""

    @tool
    def run(*, step: Step) -> str:
        return str(step("it", function, *args))

    return talk_to(run).call()


def results_in_two_rounds(function: Callable[[], object]) -> list[Any]:
    """Return the result of a step in the round that runs it, and in the round that reads it from the record."""
    results = []

    @tool
    def run(*, elicit: Elicit, step: Step) -> str:
        results.append(step("it", function))
        elicit("ok", "Ok?", bool)
        return "done"

    assert talk_to(run).call().accept(ok=True).text == "done"
    return results


def returns(annotation: object, value: object) -> Callable[[], object]:
    """Make a function that has this return annotation and returns this value."""

    def function() -> object:
        return value

    function.__annotations__["return"] = annotation
    return function


# A result has its annotated type in every round.


class Cabin(Enum):
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
    cabin: Cabin = Cabin.FIRST
    leaves: datetime


class Point(NamedTuple):
    x: int
    y: int


SEAT = Seat(3, date(2027, 1, 2), ("window",))
FLIGHT = Flight(flightNumber="MF 106", seats=[SEAT], cabin=Cabin.SECOND, leaves=datetime(2027, 1, 2, 3, 4, tzinfo=UTC))


def find_seat() -> Seat:
    return SEAT


@functools.cache
def find_seat_once() -> Seat:
    return SEAT


class Retried:
    """A decorator that is a class."""

    def __init__(self, func: Callable[[], Any]) -> None:
        self.func = func

    def __call__(self) -> Any:  # noqa: ANN401 - what the function returns
        return self.func()


class Curried:
    """A decorator whose `func` is a property, as that of `toolz.curry` is."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._partial = functools.partial(function)

    @property
    def func(self) -> Callable[[], Any]:
        return self._partial.func

    def __call__(self) -> Any:  # noqa: ANN401 - what the function returns
        return self._partial()


class Office:
    def find_seat(self) -> Seat:
        return SEAT

    def __call__(self) -> Seat:
        return SEAT


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Seat, SEAT),
        (Flight, FLIGHT),
        (list[Flight], [FLIGHT, FLIGHT]),
        (dict[str, Seat], {"mine": SEAT}),
        (Seat | None, None),
        (date, date(2027, 1, 2)),
        (timedelta, timedelta(hours=1, seconds=2)),
        (Decimal, Decimal("420.10")),
        (UUID, UUID(int=7)),
        (Cabin, Cabin.SECOND),
        (set[str], {"red"}),
        (Point, Point(1, 2)),
        (tuple[int, date], (1, date(2027, 1, 2))),
        (Literal["yes", "no"], "yes"),
        (None, None),
        (float, 0.1),
    ],
    ids=str,
)
def test_a_result_has_its_annotated_type_in_both_rounds(annotation: object, value: object) -> None:
    results = results_in_two_rounds(returns(annotation, value))
    assert results == [value, value]
    assert {type(result) for result in results} == {type(value)}


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(find_seat, id="a function"),
        pytest.param(find_seat_once, id="a cached function"),
        pytest.param(functools.partial(find_seat), id="a partial"),
        pytest.param(Retried(find_seat), id="in a decorator"),
        pytest.param(Curried(find_seat), id="in a decorator with a property"),
        pytest.param(Office().find_seat, id="a method"),
        pytest.param(Office(), id="a callable object"),
    ],
)
def test_any_callable_may_have_the_annotation(function: Callable[[], object]) -> None:
    assert results_in_two_rounds(function) == [SEAT, SEAT]


def test_a_test_may_replace_the_function_of_a_step_by_a_mock() -> None:
    assert call_step(Mock(return_value=7)).text == "7"


def test_without_an_annotation_both_rounds_get_plain_json() -> None:
    results = results_in_two_rounds(lambda: (1, {"inner": (2.0, None, True)}))
    assert results == [[1, {"inner": [2.0, None, True]}]] * 2  # JSON has lists, but no tuples


@pytest.mark.parametrize(
    ("value", "type_name"),
    [
        (SEAT, f"{__name__}.Seat"),
        (date(2027, 1, 2), "datetime.date"),
        ({1: "a key that is no string"}, "dict"),
        (Point(1, 2), f"{__name__}.Point"),
    ],
)
def test_a_result_that_is_no_json_needs_an_annotation(value: object, type_name: str, author_error: AuthorError) -> None:
    assert author_error(call_step(lambda: value)) == (
        f"step 'it': later rounds could not tell that <lambda> returned a {type_name}: "
        "give it a return annotation (a def, not a lambda) whose name is imported at run time"
    )


def test_the_annotation_any_counts_as_none(author_error: AuthorError) -> None:
    assert "later rounds could not tell" in author_error(call_step(returns(Any, SEAT)))


def test_a_result_must_be_json(author_error: AuthorError) -> None:
    assert author_error(call_step(object)) == "step 'it': JSON cannot carry what object returned"


def test_a_result_may_have_the_largest_size() -> None:
    text = "x" * (MAX_BYTES - 2)  # JSON adds two quotation marks
    assert call_step(lambda: text).text == text


def test_a_larger_result_is_refused(author_error: AuthorError) -> None:
    text = "x" * (MAX_BYTES - 1)
    expected = f"step 'it' returned {MAX_BYTES + 1} bytes of at most {MAX_BYTES}: keep a reference instead"
    assert author_error(call_step(lambda: text)) == expected


# A record gives back an equal value. Where it cannot, the author learns it.


class Passenger(BaseModel):
    name: str


class Member(Passenger):
    number: int = 1


class Login(BaseModel):
    user: str
    password: SecretStr


class Ticket(BaseModel):
    seat: str
    token: str = Field(exclude=True)


class Room(BaseModel):
    model_config = ConfigDict(extra="forbid")

    width: int = Field(validation_alias=AliasChoices("w", "wide"), serialization_alias="W")
    kind: Literal[Cabin.FIRST] = Cabin.FIRST

    @computed_field
    def area(self) -> int:
        return self.width**2


class OneSided(BaseModel):
    model_config = ConfigDict(ser_json_bytes="base64")

    data: bytes


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Room, Room.model_validate({"wide": 3})),
        (list[Room], [Room.model_validate({"w": 3})]),
        (Literal[Cabin.FIRST], Cabin.FIRST),
        (dict[str, Any], {"a": (1, [2])}),
        (bytes, b"abc"),
    ],
    ids=str,
)
def test_what_is_written_in_another_way_is_recorded_whole(annotation: object, value: object) -> None:
    results = results_in_two_rounds(returns(annotation, value))
    assert all(is_equal(result, value) for result in results)


@pytest.mark.parametrize(
    ("annotation", "value", "type_name"),
    [
        (Passenger, Member(name="ann"), "Member"),
        (list[Passenger], [Member(name="ann")], "list"),
        (OneSided, OneSided(data=b"abc"), "OneSided"),
        (dict[str, Any], {"day": date(2027, 1, 2)}, "dict"),
    ],
    ids=str,
)
def test_a_result_that_is_more_than_its_record_is_an_error_in_a_test(
    annotation: object, value: object, type_name: str, author_error: AuthorError
) -> None:
    error = author_error(call_step(returns(annotation, value)))
    assert re.match(rf"step 'it': later rounds do not get an equal (\w+\.)*{type_name} from the record", error)


class Shouted(BaseModel):
    number: int

    @field_serializer("number")
    def shout(self, number: int) -> str:
        return f"{number}!"


class Wrong(NamedTuple):
    """A result that its annotation cannot give back, and what both rounds get on Lambda."""

    function: Callable[[], object]
    type_name: str
    recorded: object


WRONG = [
    Wrong(returns(str, 5), "int", 5),
    Wrong(returns(int, "hunter2"), "str", "hunter2"),
    Wrong(returns(date, "2026-13-45"), "str", "2026-13-45"),
    Wrong(returns(Seat, {"row": "hunter2"}), "dict", {"row": "hunter2"}),
    Wrong(returns(list[Passenger], None), "NoneType", None),
    Wrong(returns(Shouted, Shouted(number=3)), "Shouted", {"number": "3!"}),
    Wrong(returns(list[Shouted], [Shouted(number=3)]), "list", [{"number": "3!"}]),
    Wrong(lambda: SEAT, "Seat", {"row": 3, "day": "2027-01-02", "extras": ["window"]}),
    Wrong(lambda: date(2027, 1, 2), "date", "2027-01-02"),
    Wrong(returns(Passenger, Member(name="hunter2")), "Member", Passenger(name="hunter2")),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_result_that_later_rounds_do_not_get_is_an_error_in_a_test(wrong: Wrong, author_error: AuthorError) -> None:
    error = author_error(call_step(wrong.function))
    assert re.match(rf"step 'it': later rounds .* (\w+\.)*{wrong.type_name}\b", error)


@pytest.mark.parametrize("wrong", WRONG)
def test_on_lambda_it_is_one_warning_and_both_rounds_get_what_the_record_has(
    wrong: Wrong, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9001")
    assert results_in_two_rounds(wrong.function) == [wrong.recorded] * 2
    (warning,) = [message for message in caplog.messages if "later rounds" in message]
    assert wrong.type_name in warning
    assert "hunter2" not in warning


@pytest.mark.parametrize("annotation", [SecretStr, Login, list[Login], Ticket])
def test_a_type_that_no_record_gives_back_is_refused_before_the_step_runs(
    annotation: object, author_error: AuthorError
) -> None:
    def never() -> object:
        pytest.fail("the step ran")

    never.__annotations__["return"] = annotation
    assert "is annotated as returning what no record gives back" in author_error(call_step(never))


# An author who changes a result changes no record.


@dataclass
class Basket:
    items: list[str] = field(default_factory=list)


def fill_basket() -> Basket:
    return Basket(["bread"])


def list_items() -> list[str]:
    return ["bread"]


def change_in_four_readings(function: Callable[[], object], change: Callable[[Any], None]) -> list[str]:
    """Read the result of a step twice in each of two rounds, and change it each time; return what was read."""
    readings = []

    @tool
    def shop(*, elicit: Elicit, step: Step) -> str:
        for _ in range(2):
            result = step("basket", function)
            readings.append(repr(result))
            change(result)
        elicit("ok", "Ok?", bool)
        return "done"

    assert talk_to(shop).call().accept(ok=True).text == "done"
    return readings


def test_changing_a_dataclass_changes_no_record() -> None:
    readings = change_in_four_readings(fill_basket, lambda basket: basket.items.append("wine"))
    assert readings == ["Basket(items=['bread'])"] * 4


@pytest.mark.parametrize("function", [list_items, lambda: ["bread"]], ids=["annotated", "not annotated"])
def test_changing_a_list_changes_no_record(function: Callable[[], list[str]]) -> None:
    readings = change_in_four_readings(function, lambda items: items.append("wine"))
    assert readings == ["['bread']"] * 4


def test_changing_the_object_that_a_step_returned_changes_no_record() -> None:
    basket = ["bread"]
    readings = change_in_four_readings(lambda: basket, lambda _result: basket.append("wine"))
    assert readings == ["['bread']"] * 4


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


def change_everything(value: object) -> None:
    """Change every list and every dictionary inside a value."""
    if isinstance(value, list):
        for member in value:
            change_everything(member)
        value.append("changed")
    elif isinstance(value, dict):
        for member in value.values():
            change_everything(member)
        value["changed"] = value.pop(next(iter(value), ""), None)


@given(json_values, st.lists(st.booleans(), min_size=2, max_size=6))
def test_every_reading_is_the_same_in_every_round(value: Any, round_ends: list[bool]) -> None:  # noqa: ANN401 - JSON
    """After each reading everything is changed, and the round ends where `round_ends` is true."""
    round_ = Round(history=History("f"))
    readings = set()
    for ends in round_ends:
        result = Step(round_)("it", lambda: value)
        readings.add(repr(result))
        change_everything(result)
        change_everything(value)
        if ends:
            round_ = Round(history=History("f", record=json.loads(json.dumps(round_.next_record()))))
    assert len(readings) == 1


# A step is recorded with a digest of its arguments.


def test_a_later_round_must_call_a_step_with_the_same_arguments(author_error: AuthorError) -> None:
    rounds = Counter[str]()

    @tool
    def drift(*, elicit: Elicit, step: Step) -> str:
        rounds["drift"] += 1
        step("it", str, rounds["drift"])
        elicit("ok", "Ok?", bool)
        return "done"

    assert author_error(talk_to(drift).call().accept(ok=True)) == (
        "step 'it' ran with other arguments before: give each call a key of its own, a new one too if a deployment "
        "calls it with something else, and make its arguments from what later rounds know as well"
    )


def test_one_key_may_not_have_two_calls_with_different_arguments(author_error: AuthorError) -> None:
    @tool
    def list_pages(*, step: Step) -> list[str]:
        return [step("page", str, page) for page in (1, 2)]

    assert author_error(talk_to(list_pages).call()).startswith("step 'page' ran with other arguments before")


def test_models_dataclasses_dates_and_sets_are_arguments(runs: Counter[str]) -> None:
    def count(flight: Flight, *seats: Seat, day: date, colours: frozenset[str]) -> int:
        runs["count"] += 1
        return len(flight.seats) + len(seats) + day.day + len(colours)

    @tool
    def count_all(*, elicit: Elicit, step: Step) -> int:
        total = step("count", count, FLIGHT, SEAT, SEAT, day=date(2027, 1, 2), colours=frozenset("abc"))
        elicit("ok", "Ok?", bool)
        return total

    assert talk_to(count_all).call().accept(ok=True).text == "8"
    assert runs == {"count": 1}


DIGEST_OF_SETS = """
from mcp_functions.rounds.round import Round
from mcp_functions.rounds.steps import Step
from pydantic import BaseModel

class Wishes(BaseModel):
    extras: set[str]

round_ = Round()
Step(round_)("it", lambda *_: 1, {"one", "two", "three"}, Wishes(extras={"red", "green", "blue"}), {"x": [{"a", "b"}]})
print(round_.next_record()["steps"]["it"][0])
"""


def test_the_order_of_a_set_does_not_matter_across_processes() -> None:
    def digest(seed: str) -> bytes:
        """Run the lines above in a process whose sets have another order."""
        command, env = [sys.executable, "-c", DIGEST_OF_SETS], {"PYTHONHASHSEED": seed}
        return subprocess.run(command, env=env, capture_output=True, check=True).stdout  # noqa: S603 - the lines above

    assert digest("1") == digest("2") == digest("3")


PLAIN_STEPS = """
import sys
from mcp_functions.rounds.round import Round
from mcp_functions.rounds.steps import Step

def add(a: int, b: int) -> int:
    return a + b

step = Step(Round())
assert step("sum", add, 1, 2) == 3
assert step("lists", lambda: {"plain": [1, 2.5, None]}) == {"plain": [1, 2.5, None]}
assert "pydantic" not in sys.modules and "pydantic_core" not in sys.modules
"""


def test_steps_with_json_values_do_not_import_pydantic() -> None:
    subprocess.run([sys.executable, "-c", PLAIN_STEPS], check=True)  # noqa: S603 - the lines above


# A new version of a function reads what the old one recorded.


class Quote(BaseModel):
    euros: int


class QuoteWithDefault(Quote):
    currency: str = "EUR"


class QuoteWithRequired(Quote):
    currency: str


def buy_version(returns: type[Quote], runs: Counter[str], *arguments: str) -> Handler[..., Any]:
    """Make a version of the tool `buy`, whose step returns this type and is called with these arguments."""

    def quote(*_cities: str) -> Quote:
        runs["quote"] += 1
        return returns.model_validate({"euros": 420, "currency": "USD"})

    quote.__annotations__["return"] = returns

    @tool
    def buy(*, elicit: Elicit, step: Step) -> str:
        result = step("quote", quote, *arguments)
        elicit("ok", "Buy?", bool)
        return repr(result)

    return buy


def test_a_new_version_may_add_a_field_with_a_default(runs: Counter[str]) -> None:
    talk = talk_to(buy_version(Quote, runs)).call()
    talk.upgrade(serve(buy_version(QuoteWithDefault, runs))).accept(ok=True)
    assert talk.text == "QuoteWithDefault(euros=420, currency='EUR')"
    assert runs == {"quote": 1}


def test_a_new_version_may_remove_a_field(runs: Counter[str]) -> None:
    talk = talk_to(buy_version(QuoteWithDefault, runs)).call()
    talk.upgrade(serve(buy_version(Quote, runs))).accept(ok=True)
    assert talk.text == "Quote(euros=420)"
    assert runs == {"quote": 1}


def test_a_new_version_may_not_add_a_required_field(runs: Counter[str], author_error: AuthorError) -> None:
    talk = talk_to(buy_version(Quote, runs)).call()
    talk.upgrade(serve(buy_version(QuoteWithRequired, runs))).accept(ok=True)
    assert author_error(talk) == (
        "the recorded result of step 'quote' does not fit what quote says it returns: "
        "it currency Field required (new fields need defaults, for conversations that are under way)"
    )
    assert runs == {"quote": 1}


def test_a_new_version_may_not_change_the_arguments(runs: Counter[str], author_error: AuthorError) -> None:
    talk = talk_to(buy_version(Quote, runs)).call()
    talk.upgrade(serve(buy_version(Quote, runs, "Lisbon"))).accept(ok=True)
    assert "a new one too if a deployment calls it with something else" in author_error(talk)
    assert runs == {"quote": 1}
