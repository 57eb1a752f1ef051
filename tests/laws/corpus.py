"""CASES: handlers as authors write them, for the laws in tests/end_to_end/test_laws.py.

Some have two versions, as after an upgrade: then the rounds of one conversation may reach either version. Each handler
works inside `open_resource()`, so that a test sees whether every round closes what it opens.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import date  # noqa: TC003 - read at run time, from annotations
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, Field, model_validator

from mcp_functions import (
    Ask,
    Cancelled,
    Declined,
    Elicit,
    ListRoots,
    Question,
    RootsQuestion,
    Sample,
    SampleQuestion,
    Step,
    prompt,
    resource,
    tool,
)
from mcp_functions.low_level import InputRequiredResult, InputResponses, RequestState
from tests.laws.services import SERVICES, open_resource

if TYPE_CHECKING:
    from mcp_functions.handlers.base import Handler


class Count(BaseModel):
    n: int = Field(ge=1, le=3)


class Colour(BaseModel):
    choice: Literal["red", "green", "blue"]


class Day(BaseModel):
    first_day: date
    extras: list[Literal["bike", "boat", "bus"]] = []


class Case(NamedTuple):
    """A handler in its versions, and the request that calls it."""

    name: str
    versions: tuple[Handler[..., Any], ...]
    method: str
    params: dict[str, Any]
    may_decline: bool = True  # False if the handler repeats a declined question for ever

    @classmethod
    def of_tool(cls, *versions: Handler[..., Any], may_decline: bool = True, **arguments: object) -> Case:
        name = versions[0].name
        return cls(name, versions, "tools/call", {"name": name, "arguments": arguments}, may_decline)


# One question after the other.


@tool
def straight(topic: str, *, elicit: Elicit) -> str:
    """Ask two things."""
    with open_resource():
        who = elicit("who", f"Who writes about {topic}?", str)
        return f"{who}, {elicit('colour', 'Which colour?', Colour).choice}"


@tool(name="straight")
def straight_reworded(topic: str, *, elicit: Elicit) -> str:
    """Ask the same questions in other words, and one more."""
    with open_resource():
        size = elicit("size", "How large?", Count)
        who = elicit("who", f"Who writes about {topic}?", str)
        return f"{who}, {elicit('colour', 'In which colour, please?', Colour).choice}, {size.n}"


@tool(camel_case=True)
def in_camel_case(topic_name: str, *, elicit: Elicit) -> str:
    """Ask in camelCase."""
    with open_resource():
        day = elicit("whatDay", f"{topic_name}: when?", Day)
        return f"{day.first_day:%d %b %Y} {day.extras}"


# Questions that depend on answers.


@tool
def guests(*, elicit: Elicit) -> list[str]:
    """Ask as many questions as the first answer says."""
    with open_resource():
        count = elicit("count", "How many are coming?", Count).n
        return [elicit(f"guest-{n}", f"Who is guest {n}?", str) for n in range(count)]


@tool(name="guests")
def guests_with_colours(*, elicit: Elicit) -> list[str]:
    """Ask two questions for each guest, at once."""
    with open_resource():
        guests = []
        count = elicit("count", "How many are coming?", Count).n
        for n in range(count):
            ask_name = Question(f"Who is guest {n}?", str, key=f"guest-{n}")
            ask_colour = Question(f"What does guest {n} wear?", Colour, key=f"colour-{n}")
            name, colour = elicit.together(ask_name, ask_colour)
            guests.append(f"{name} in {colour.choice}")
        return guests


@tool
def branches(*, elicit: Elicit) -> str:
    """Ask other questions for each answer."""
    with open_resource():
        match elicit("choice", "Red, green or blue?", Colour).choice:
            case "red":
                if elicit("sure", "Red, really?", bool):
                    return "red"
                return elicit("instead", "What instead of red?", str)
            case "green":
                return " ".join(elicit(f"shade-{n}", f"Shade {n}?", str) for n in (1, 2))
        return "blue"


# Several at once.


@tool
def all_at_once(*, elicit: Elicit) -> str:
    """Ask the user, the model and the client in one round."""
    with open_resource():
        where, day, roots, praise = elicit.together(
            Question("Where to?", str, key="where"),
            Question("When?", Day, key="day"),
            RootsQuestion(key="roots"),
            SampleQuestion("Praise travelling", 100, key="praise"),
        )
        plan = f"{where} on {day.first_day}"
        agreed = elicit("agreed", f"{plan}: shall we?", bool)
        return f"{plan} {agreed} {day.extras} {roots[0]['uri']} {praise['content']['text']}"


@tool(name="all_at_once")
def fewer_at_once(*, elicit: Elicit) -> str:
    """Ask only two of the questions, in another order."""
    with open_resource():
        day, where = elicit.together(Question("When?", Day, key="day"), Question("Where to?", str, key="where"))
        return f"{where} on {day.first_day}"


@tool
def declared(
    bug: int,  # noqa: ARG001 - it stands in the message
    *,
    how: Annotated[Colour, Ask("How was bug {bug} resolved?")],
    elicit: Elicit,
    who: Annotated[str | None, Ask("Who did it?")],
) -> str:
    """Declare two questions, and ask a third."""
    with open_resource():
        name = who or "nobody"
        return f"{how.choice} by {name}: {elicit('thanks', f'Thank {name}?', bool)}"


# The actions of people.


@tool
def outcomes(*, elicit: Elicit) -> list[str]:
    """Choose a branch by the user's action."""
    with open_resource():
        things = []
        for number in range(3):
            match elicit.outcome(f"thing-{number}", f"Thing {number}?", str):
                case Declined():
                    things.append("declined")
                case Cancelled():
                    things.append("cancelled")
                case thing:
                    things.append(thing)
        return things


def name_or_nobody(elicit: Elicit, key: str) -> str:
    try:
        return elicit(key, f"{key}?", str)
    except Exception:  # noqa: BLE001 - as careless authors write
        return "nobody"


@tool
def careless(*, elicit: Elicit, step: Step) -> str:
    """Ask in a helper that catches too much, around steps that catch too much."""
    with open_resource():
        first = name_or_nobody(elicit, "first")
        try:
            receipt = step("tell", SERVICES.call, "tell", first)
        except Exception:  # noqa: BLE001 - as careless authors write
            receipt = "no receipt"
        return f"{first}, {name_or_nobody(elicit, 'second')}, {receipt}"


# Steps.


@dataclass(frozen=True)
class Flight:
    number: str
    day: date


def reserve(city: str, day: date) -> Flight:
    return Flight(SERVICES.call("reserve", city), day)


def charge(flight: Flight, euros: int, *, key: str) -> str:
    return SERVICES.call("charge", flight.number, euros, key=key)


@tool
def booking(city: str, *, elicit: Elicit, step: Step) -> str:
    """Hold a seat, reserve, confirm and charge."""
    with open_resource():
        seat = step.keyed("hold", lambda key: SERVICES.call("hold", city, key=key))
        day = elicit("day", "When?", Day).first_day
        flight = step("reserve", reserve, city, day)
        if not elicit("consent", f"{flight.number} on {flight.day:%d %b}, {seat}: 420 EUR?", bool):
            return "nothing was booked"
        receipt = step.keyed("charge", charge, flight, 420)
        thanks = elicit("thanks", "Thank you. How was it?", str)
        return f"{receipt} {thanks} {step('note', SERVICES.call, 'note', thanks)}"


@tool(name="booking")
def booking_with_insurance(city: str, *, elicit: Elicit, step: Step) -> str:
    """Do the same, with insurance, and other words."""
    with open_resource():
        seat = step.keyed("hold", lambda key: SERVICES.call("hold", city, key=key))
        day = elicit("day", "When?", Day).first_day
        flight = step("reserve", reserve, city, day)
        cover = step("insure", SERVICES.call, "insure", flight.number)
        if not elicit("consent", f"{flight.number}, {seat}, {cover}: 440 EUR?", bool):
            return "nothing was booked"
        return step.keyed("charge", charge, flight, 420)


def work(part: int) -> int:
    SERVICES.call("work", part, seconds=6)
    return part * part


@tool(max_sheds=9)
def long_computation(*, elicit: Elicit, step: Step) -> int:
    """Work for a minute, and ask in the middle of it."""
    with open_resource():
        total = sum(step(f"part-{n}", work, n) for n in range(6))
        total *= elicit("factor", f"It is {total} so far. Times?", Count).n
        return total + sum(step.within(10)(f"part-{n}", work, n) for n in range(6, 10))


@tool(max_sheds=9)
def by_hand(*, step: Step, elicit: Elicit) -> str:
    """End rounds by hand, whenever three steps more are done."""
    with open_resource():
        done = []
        for n in range(7):
            before = len(SERVICES.effects)
            done.append(step(f"part-{n}", SERVICES.call, "part", n))
            if n % 3 == 2 and len(SERVICES.effects) > before:
                step.shed()
        return f"{elicit('name', 'For whom?', str)}: {done}"


@tool
async def with_tasks(*, elicit: Elicit, step: Step) -> str:
    """Ask and work in tasks."""

    async def ask(key: str) -> str:
        await asyncio.sleep(0)
        return elicit(key, f"Task {key}?", str)

    async def measure(name: str) -> int:
        SERVICES.call("measure", name)
        for _ in range(3):
            await asyncio.sleep(0)
        return len(name)

    with open_resource():
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(ask(key)) for key in "ab"]
            group.create_task(step.wait("meanwhile", measure, "meanwhile"))
        names = [task.result() for task in asked]
        sizes = await asyncio.gather(*(step.wait(f"measure-{name}", measure, name) for name in sorted(set(names))))
        return f"{names} {sizes} {await ask('last')}"


def pack(things: tuple[str, ...]) -> Any:  # noqa: ANN401 - an annotation that says nothing
    return {"packed": [SERVICES.call("pack", *things)], "as": things}


@tool
async def spoiling(*, elicit: Elicit, step: Step, sample: Sample, list_roots: ListRoots) -> list[str]:
    """Change what a step, a list of roots and a model returned: the next round must read the original values."""
    with open_resource():
        readings = list[str]()

        async def read_and_change() -> None:
            bag = step("pack", pack, ("map", "rope"))
            folders = list_roots()
            message = sample("praise", "Praise travelling", max_tokens=50)
            readings.append(f"{bag} {folders} {message}")
            bag["packed"].append(bag["as"].pop())
            folders.append(folders[0].pop("uri"))
            message["content"].clear()

        await read_and_change()
        await asyncio.gather(read_and_change(), read_and_change())
        readings.append(elicit("last", f"{len(set(readings))} bag?", str))
        return readings


# Pages, models, folders.


@tool
def twice_on_a_page(user: str, *, elicit: Elicit) -> str:
    """Ask for a page until the user has opened it twice."""
    with open_resource():
        page = f"https://forge.example/{user}"
        while SERVICES.page_visits[page] < 2:
            elicit.url("page", "Please sign in", page)
        return f"welcome, {elicit('name', 'Who are you?', str)}"


@tool
def model_and_folders(*, sample: Sample, list_roots: ListRoots) -> str:
    """Ask the client's model about each of its folders, twice."""
    with open_resource():
        texts = [root["uri"] for root in list_roots()]
        for turn in (1, 2):
            message = sample(f"turn-{turn}", f"Turn {turn} of {texts[-1]}", max_tokens=50)
            texts.append(message["content"]["text"])
        return " ".join(texts)


# Prompts and resources.


@prompt
def briefing(topic: str, *, elicit: Elicit) -> str:
    """Ask for whom, then write."""
    with open_resource():
        audience = elicit("audience", f"Who reads about {topic}?", str)
        return f"On {topic}, for {audience}, in {elicit('minutes', 'How many minutes?', Count).n} minutes."


@resource("rules://house")
def rules(*, elicit: Elicit) -> str:
    """Ask for a language."""
    with open_resource():
        return f"The rules in {elicit('language', 'Which language?', Colour).choice}."


@resource("tickets://{project}/{number}")
def ticket(project: str, number: int, *, elicit: Elicit, step: Step) -> str:
    """Ask why, and leave a trace once."""
    with open_resource():
        trace = step("trace", SERVICES.call, "trace", project, number)
        return f"{trace}: {elicit('why', f'Why {project}-{number}?', str)}"


# The low level, and a state that changes its shape.


class Draft(BaseModel):
    where: str | None = None
    day: date | None = None


class LaterDraft(BaseModel):
    place: str | None = Field(default=None, alias="thePlace")
    day: date | None = None
    people: int | None = None

    @model_validator(mode="before")
    @classmethod
    def migrate(cls, data: dict[str, Any]) -> dict[str, Any]:
        return {**data, "thePlace": data["where"]} if "where" in data else data


@tool
def draft(days: int, *, responses: InputResponses, state: RequestState[Draft]) -> str | InputRequiredResult:
    """Keep the answers in a state."""
    with open_resource():
        draft = state.value
        day = responses.accepted("day", Day)
        draft.where = draft.where or responses.accepted("where", str)
        draft.day = draft.day or (day.first_day if day else None)
        if draft.where is None or draft.day is None:
            requests = {"where": Question("Where to?", str), "day": Question("When?", Day)}
            return InputRequiredResult({key: requests[key] for key in requests if getattr(draft, key) is None}, draft)
        return f"{days} days in {draft.where} from {draft.day}"


@tool(name="draft")
def draft_of_another_shape(
    days: int, *, responses: InputResponses, state: RequestState[LaterDraft]
) -> str | InputRequiredResult:
    """Keep more answers, under other names."""
    with open_resource():
        draft = state.value
        day, people = responses.accepted("day", Day), responses.accepted("people", Count)
        draft.place = draft.place or responses.accepted("where", str)
        draft.day = draft.day or (day.first_day if day else None)
        draft.people = draft.people or (people.n if people else None)
        missing: dict[str, Question[Any]] = {}
        if draft.place is None:
            missing["where"] = Question("Where to?", str)
        if draft.day is None:
            missing["day"] = Question("When?", Day)
        if draft.people is None:
            missing["people"] = Question("How many?", Count)
        if missing:
            return InputRequiredResult(missing, draft)
        return f"{days} days in {draft.place} from {draft.day}, {draft.people} of us"


CASES = [
    Case.of_tool(straight, straight_reworded, topic="law"),
    Case.of_tool(in_camel_case, topicName="law"),
    Case.of_tool(guests, guests_with_colours),
    Case.of_tool(branches),
    Case.of_tool(all_at_once, fewer_at_once),
    Case.of_tool(declared, bug=7),
    Case.of_tool(outcomes),
    Case.of_tool(careless),
    Case.of_tool(booking, booking_with_insurance, city="Lisbon"),
    Case.of_tool(long_computation),
    Case.of_tool(by_hand),
    Case.of_tool(with_tasks),
    Case.of_tool(spoiling),
    Case.of_tool(twice_on_a_page, user="ann"),
    Case.of_tool(model_and_folders),
    Case.of_tool(draft, draft_of_another_shape, may_decline=False, days=3),
    Case("briefing", (briefing,), "prompts/get", {"name": "briefing", "arguments": {"topic": "law"}}),
    Case("rules", (rules,), "resources/read", {"uri": "rules://house"}),
    Case("ticket", (ticket,), "resources/read", {"uri": "tickets://LAW/7"}),
]
