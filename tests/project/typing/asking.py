"""An answer has the type of its form. This file is read by type checkers and never runs."""

from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal, TypedDict, assert_never, assert_type

from pydantic import BaseModel, Field

from mcp_functions import (
    Ask,
    Cancelled,
    Declined,
    Elicit,
    ListRoots,
    NotAnswered,
    Question,
    RootsQuestion,
    Sample,
    SampleQuestion,
    tool,
)
from mcp_functions.annotated import Between, Format, Length, Title, Titles
from mcp_functions.low_level import InputRequest, InputRequiredResult, InputResponses, RequestState


class City(BaseModel):
    name: str
    size: Annotated[Literal["s", "l"], Titles("Small", "Large")] = "s"


class Month(BaseModel):
    month: int = Field(ge=1, le=12)


@dataclass
class Guest:
    name: Annotated[str, Length(1, 40), Title("Name")]
    mail: Annotated[str | None, Format("email")] = None


class Room(TypedDict):
    beds: Annotated[int, Between(1, 4), "How many can sleep in it"]


class Meal(StrEnum):
    FISH = "fish"
    BEANS = "beans"


class Draft(BaseModel):
    step: int = 0
    city: str | None = None


# Inline.


@tool
def inline(*, elicit: Elicit, sample: Sample, list_roots: ListRoots) -> str:
    city = elicit("city", "Where?", City)
    assert_type(city, City)
    assert_type(city.size, Literal["s", "l"])
    assert_type(elicit("month", "When?", Month).month, int)
    assert_type(elicit.possible, bool)
    assert_type(elicit.url_possible, bool)
    assert_type(sample("model", "Say something", max_tokens=10, temperature=0.5), dict[str, Any])
    assert_type(list_roots(), list[dict[str, Any]])
    while not city.name:
        elicit.url("login", "Please sign in", "https://example.com")
    return city.name


@tool
def without_pydantic(*, elicit: Elicit) -> str:
    assert_type(elicit("agree", "Pay 1,290 EUR?", bool), bool)
    assert_type(elicit("seat", "Where?", Literal["window", "aisle"]), Literal["window", "aisle"])
    assert_type(elicit("meal", "Which?", Meal), Meal)
    assert_type(elicit("meals", "Which?", list[Meal]), list[Meal])
    assert_type(elicit("day", "When?", date), date)
    assert_type(elicit("mail", "Where to?", Annotated[str, Format("email")]), str)
    assert_type(elicit("note", "Anything else?", str | None), str | None)
    assert_type(elicit("guest", "Who?", Guest), Guest)
    assert_type(elicit("room", "Which?", Room)["beds"], int)
    assert_type(elicit.outcome("agree", "Sure?", bool), bool | Declined | Cancelled)
    where, who = Question("Where?", Literal["window", "aisle"], key="where"), Question("Who?", Guest, key="who")
    assert_type(elicit.together(where, who), tuple[Literal["window", "aisle"], Guest])
    return elicit("name", "Who?", str)


@tool
def outcomes(*, elicit: Elicit) -> str:
    outcome = elicit.outcome("city", "Where?", City)
    assert_type(outcome, City | Declined | Cancelled)
    match outcome:
        case City(name=name):
            return name
        case Declined() | Cancelled():
            return outcome.key
    assert_never(outcome)


@tool
def caught(*, elicit: Elicit) -> str:
    try:
        return elicit("city", "Where?", City).name
    except NotAnswered as reason:
        assert_type(reason.key, str)
        return "nowhere"


# Together.


@tool
def together(*, elicit: Elicit) -> str:
    where, when = Question("Where?", City, key="city"), Question("When?", Month, key="month")
    said, roots = SampleQuestion("Hi", 10, key="said"), RootsQuestion(key="roots")
    assert_type(elicit.together(where, when), tuple[City, Month])
    assert_type(elicit.together(where, when, said), tuple[City, Month, dict[str, Any]])
    assert_type(elicit.together(roots, said, when, where), tuple[list[dict[str, Any]], dict[str, Any], Month, City])
    assert_type(elicit.together(where, where, where, where, where), tuple[Any, ...])
    city, month = elicit.together(where, when)
    assert_type(city, City)
    assert_type(month, Month)
    return city.name


# Declared.


@tool
def declared(
    day: str,
    *,
    city: Annotated[City, Ask("Where?")],
    month: Annotated[Month | None, Ask("When, from {day}?")],
    seat: Annotated[Literal["window", "aisle"] | None, Titles("Window", "Aisle"), Ask("Where do you sit?")],
) -> str:
    assert_type(seat, Literal["window", "aisle"] | None)
    assert_type(city, City)
    assert_type(month, Month | None)
    return day


assert_type(declared("Monday", city=City(name="Rome"), month=None, seat="aisle"), str)


# The low level.


@tool
def low(*, responses: InputResponses, state: RequestState[Draft]) -> str | InputRequiredResult:
    assert_type(state.value, Draft)
    assert_type(state.value.step, int)
    assert_type(responses["city"], dict[str, Any])
    assert_type(responses.get("city"), dict[str, Any] | None)
    assert_type(responses.unproven, dict[str, dict[str, Any]])
    city = responses.accepted("city", City)
    assert_type(city, City | None)
    assert_type(responses.accepted("seat", Literal["window", "aisle"]), Literal["window", "aisle"] | None)
    if city:
        return city.name
    requests: dict[str, InputRequest[Any]] = {
        "city": Question("Where?", City),
        "seat": Question("Where?", Literal["window", "aisle"]),
        "page": Question.url("Please sign in", "https://example.com"),
        "model": SampleQuestion("Say something", 10, {"temperature": 0.5}),
        "roots": RootsQuestion(),
    }
    return InputRequiredResult(requests, Draft(step=state.value.step + 1))


def called(responses: InputResponses, state: RequestState[Draft]) -> None:
    assert_type(low(responses=responses, state=state), str | InputRequiredResult)
