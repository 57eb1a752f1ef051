"""Handlers as authors write them, each in the versions that a rolling upgrade runs side by side."""

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
    ElicitRequest,
    InputRequiredResult,
    InputResponses,
    ListRoots,
    Question,
    RequestState,
    RootsQuestion,
    Sample,
    SampleQuestion,
    Step,
    prompt,
    resource,
    tool,
)
from mcp_functions.rounds.client_questions import CreateMessageRequest
from tests.laws.world import WORLD, open_resource

if TYPE_CHECKING:
    from mcp_functions.handlers.base import Handler


class Name(BaseModel):
    name: str = Field(max_length=40)


class Ok(BaseModel):
    ok: bool


class Count(BaseModel):
    n: int = Field(ge=1, le=3)


class Colour(BaseModel):
    choice: Literal["red", "green", "blue"]


class Day(BaseModel):
    first_day: date
    extras: list[Literal["bike", "boat", "bus"]] = []


class Case(NamedTuple):
    """One handler in its versions, and the request that calls it."""

    name: str
    versions: tuple[Handler[..., Any], ...]
    method: str
    params: dict[str, Any]
    moods: bool = True  # whether people may say no: at the low level that is asked again for ever

    @classmethod
    def of_tool(cls, *versions: Handler[..., Any], moods: bool = True, **arguments: object) -> Case:
        name = versions[0].name
        return cls(name, versions, "tools/call", {"name": name, "arguments": arguments}, moods)


# One question after the other.


@tool
def straight(topic: str, *, elicit: Elicit) -> str:
    """Ask two things."""
    with open_resource():
        who = elicit("who", f"Who writes about {topic}?", Name)
        return f"{who.name}, {elicit('colour', 'Which colour?', Colour).choice}"


@tool(name="straight")
def straight_reworded(topic: str, *, elicit: Elicit) -> str:
    """Ask the same in other words, and one thing more."""
    with open_resource():
        size = elicit("size", "How large?", Count)
        who = elicit("who", f"Who writes about {topic}?", Name)
        return f"{who.name}, {elicit('colour', 'In which colour, please?', Colour).choice}, {size.n}"


@tool(camel_case=True)
def in_camel_case(topic_name: str, *, elicit: Elicit) -> str:
    """Ask in camelCase."""
    with open_resource():
        day = elicit("whatDay", f"{topic_name}: when?", Day)
        return f"{day.first_day:%d %b %Y} {day.extras}"


# Questions that depend on answers.


@tool
def guests(*, elicit: Elicit) -> list[str]:
    """Ask as many questions as an answer says."""
    with open_resource():
        count = elicit("count", "How many are coming?", Count).n
        return [elicit(f"guest-{n}", f"Who is guest {n}?", Name).name for n in range(count)]


@tool(name="guests")
def guests_with_colours(*, elicit: Elicit) -> list[str]:
    """Ask two questions for each, at once."""
    with open_resource():
        count, found = elicit("count", "How many are coming?", Count).n, []
        for n in range(count):
            who = Question(f"guest-{n}", f"Who is guest {n}?", Name)
            name, colour = elicit.together(who, Question(f"colour-{n}", f"What does guest {n} wear?", Colour))
            found.append(f"{name.name} in {colour.choice}")
        return found


@tool
def branches(*, elicit: Elicit) -> str:
    """Ask this or that."""
    with open_resource():
        match elicit("choice", "Red, green or blue?", Colour).choice:
            case "red":
                if elicit("sure", "Red, really?", Ok).ok:
                    return "red"
                return elicit("instead", "What instead of red?", Name).name
            case "green":
                return " ".join(elicit(f"shade-{n}", f"Shade {n}?", Name).name for n in (1, 2))
        return "blue"


# Several at once.


@tool
def all_at_once(*, elicit: Elicit) -> str:
    """Ask the user, the model and the client in one round."""
    with open_resource():
        where, day, roots, said = elicit.together(
            Question("where", "Where to?", Name),
            Question("day", "When?", Day),
            RootsQuestion(),
            SampleQuestion("said", CreateMessageRequest("Praise travelling", 100)),
        )
        asked = f"{where.name} on {day.first_day}: shall we?"
        fine = elicit("fine", asked, Ok).ok
        return f"{asked} {fine} {day.extras} {roots[0]['uri']} {said['content']['text']}"


@tool(name="all_at_once")
def fewer_at_once(*, elicit: Elicit) -> str:
    """Ask less of it, in another order."""
    with open_resource():
        day, where = elicit.together(Question("day", "When?", Day), Question("where", "Where to?", Name))
        return f"{where.name} on {day.first_day}"


@tool
def declared(
    bug: int,  # noqa: ARG001 - it stands in the message
    *,
    how: Annotated[Colour, Ask("How was bug {bug} resolved?")],
    elicit: Elicit,
    who: Annotated[Name | None, Ask("Who did it?")],
) -> str:
    """Declare two questions, and ask a third."""
    with open_resource():
        by = who.name if who else "nobody"
        return f"{how.choice} by {by}: {elicit('thanks', f'Thank {by}?', Ok).ok}"


# The actions of people.


@tool
def outcomes(*, elicit: Elicit) -> list[str]:
    """Choose a branch by the user's action."""
    with open_resource():
        found = []
        for number in range(3):
            match elicit.outcome(f"thing-{number}", f"Thing {number}?", Name):
                case Declined():
                    found.append("declined")
                case Cancelled():
                    found.append("cancelled")
                case thing:
                    found.append(thing.name)
        return found


def name_or_nobody(elicit: Elicit, key: str) -> str:
    try:
        return elicit(key, f"{key}?", Name).name
    except Exception:  # noqa: BLE001 - as careless authors write
        return "nobody"


@tool
def careless(*, elicit: Elicit, step: Step) -> str:
    """Ask in a helper that catches too much, around steps that catch too much."""
    with open_resource():
        first = name_or_nobody(elicit, "first")
        try:
            told = step("tell", WORLD.do, "tell", first)
        except Exception:  # noqa: BLE001 - as careless authors write
            told = "not told"
        return f"{first}, {name_or_nobody(elicit, 'second')}, {told}"


# Steps.


@dataclass(frozen=True)
class Flight:
    number: str
    day: date


def reserve(city: str, day: date) -> Flight:
    return Flight(WORLD.do("reserve", city), day)


def charge(flight: Flight, euros: int, *, key: str) -> str:
    return WORLD.do("charge", flight.number, euros, key=key)


@tool
def booking(city: str, *, elicit: Elicit, step: Step) -> str:
    """Hold a seat, reserve, confirm and charge."""
    with open_resource():
        seat = step.keyed("hold", lambda key: WORLD.do("hold", city, key=key))
        day = elicit("day", "When?", Day).first_day
        flight = step("reserve", reserve, city, day)
        if not elicit("consent", f"{flight.number} on {flight.day:%d %b}, {seat}: 420 EUR?", Ok).ok:
            return "nothing was booked"
        receipt = step.keyed("charge", charge, flight, 420)
        thanks = elicit("thanks", "Thank you. How was it?", Name).name
        return f"{receipt} {thanks} {step('note', WORLD.do, 'note', thanks)}"


@tool(name="booking")
def booking_with_insurance(city: str, *, elicit: Elicit, step: Step) -> str:
    """Do the same, with insurance, and other words."""
    with open_resource():
        seat = step.keyed("hold", lambda key: WORLD.do("hold", city, key=key))
        day = elicit("day", "When?", Day).first_day
        flight = step("reserve", reserve, city, day)
        cover = step("insure", WORLD.do, "insure", flight.number)
        if not elicit("consent", f"{flight.number}, {seat}, {cover}: 440 EUR?", Ok).ok:
            return "nothing was booked"
        return step.keyed("charge", charge, flight, 420)


def work(part: int) -> int:
    WORLD.do("work", part, seconds=6)
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
            before = len(WORLD.effects)
            done.append(step(f"part-{n}", WORLD.do, "part", n))
            if n % 3 == 2 and len(WORLD.effects) > before:
                step.shed()
        return f"{elicit('name', 'For whom?', Name).name}: {done}"


@tool
async def with_tasks(*, elicit: Elicit, step: Step) -> str:
    """Ask and work in tasks."""

    async def ask(key: str) -> str:
        await asyncio.sleep(0)
        return elicit(key, f"Task {key}?", Name).name

    async def measure(name: str) -> int:
        WORLD.do("measure", name)
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
    return {"packed": [WORLD.do("pack", *things)], "as": things}


@tool
async def spoiling(*, elicit: Elicit, step: Step, sample: Sample, list_roots: ListRoots) -> list[str]:
    """Change everything that is read, in every round."""
    with open_resource():
        found = list[str]()

        async def read() -> None:
            bag = step("pack", pack, ("map", "rope"))
            folders, said = list_roots(), sample("praise", "Praise travelling", max_tokens=50)
            found.append(f"{bag} {folders} {said}")
            bag["packed"].append(bag["as"].pop())
            folders.append(folders[0].pop("uri"))
            said["content"].clear()

        await read()
        await asyncio.gather(read(), read())
        found.append(elicit("last", f"{len(set(found))} bag?", Name).name)
        return found


# Pages, models, folders.


@tool
def twice_on_a_page(user: str, *, elicit: Elicit) -> str:
    """Ask for a page until the user has opened it twice."""
    with open_resource():
        page = f"https://forge.example/{user}"
        while WORLD.opened[page] < 2:
            elicit.url("page", "Please sign in", page)
        return f"welcome, {elicit('name', 'Who are you?', Name).name}"


@tool
def model_and_folders(*, sample: Sample, list_roots: ListRoots) -> str:
    """Ask the client's model about each of its folders, twice."""
    with open_resource():
        found = [root["uri"] for root in list_roots()]
        for turn in (1, 2):
            found.append(sample(f"turn-{turn}", f"Turn {turn} of {found[-1]}", max_tokens=50)["content"]["text"])
        return " ".join(found)


# Prompts and resources.


@prompt
def briefing(topic: str, *, elicit: Elicit) -> str:
    """Ask for whom, then write."""
    with open_resource():
        audience = elicit("audience", f"Who reads about {topic}?", Name).name
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
        trace = step("trace", WORLD.do, "trace", project, number)
        return f"{trace}: {elicit('why', f'Why {project}-{number}?', Name).name}"


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
    def migrate(cls, found: dict[str, Any]) -> dict[str, Any]:
        return {**found, "thePlace": found["where"]} if "where" in found else found


@tool
def draft(
    days: int, *, input_responses: InputResponses, request_state: RequestState[Draft]
) -> str | InputRequiredResult:
    """Keep what is known in a state."""
    with open_resource():
        known = request_state.value
        where, day = input_responses.accepted("where", Name), input_responses.accepted("day", Day)
        known.where = known.where or (where.name if where else None)
        known.day = known.day or (day.first_day if day else None)
        asked = {"where": ElicitRequest("Where to?", Name), "day": ElicitRequest("When?", Day)}
        if missing := {key: request for key, request in asked.items() if getattr(known, key) is None}:
            return InputRequiredResult(missing, known)
        return f"{days} days in {known.where} from {known.day}"


@tool(name="draft")
def draft_of_another_shape(
    days: int, *, input_responses: InputResponses, request_state: RequestState[LaterDraft]
) -> str | InputRequiredResult:
    """Keep more, under other names."""
    with open_resource():
        known = request_state.value
        if where := input_responses.accepted("where", Name):
            known.place = known.place or where.name
        if day := input_responses.accepted("day", Day):
            known.day = known.day or day.first_day
        if people := input_responses.accepted("people", Count):
            known.people = known.people or people.n
        asked = {
            "where": (known.place, ElicitRequest("Where to?", Name)),
            "day": (known.day, ElicitRequest("When?", Day)),
            "people": (known.people, ElicitRequest("How many?", Count)),
        }
        if missing := {key: request for key, (value, request) in asked.items() if value is None}:
            return InputRequiredResult(missing, known)
        return f"{days} days in {known.place} from {known.day}, {known.people} of us"


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
    Case.of_tool(draft, draft_of_another_shape, moods=False, days=3),
    Case("briefing", (briefing,), "prompts/get", {"name": "briefing", "arguments": {"topic": "law"}}),
    Case("rules", (rules,), "resources/read", {"uri": "rules://house"}),
    Case("ticket", (ticket,), "resources/read", {"uri": "tickets://LAW/7"}),
]
