"""The function that the tests of dialects call: it asks in every possible way."""

from typing import Annotated

from pydantic import BaseModel, field_validator

from functions.get_weather.app import get_weather
from functions.update_work_item.app import update_work_item
from mcp_functions import Ask, Elicit, Progress, Question, Sample, Step, prompt, resource, tool
from tests.dialects.echo.app import echo

WORKED: list[int] = []


class Name(BaseModel):
    name: str


class Amount(BaseModel):
    amount: int

    @field_validator("amount")
    @classmethod
    def _not_below_nothing(cls, amount: int) -> int:
        if amount < 0:
            message = "nobody pays less than nothing"
            raise ValueError(message)
        return amount


@tool
def both(*, elicit: Elicit) -> str:
    """Ask two things in one round, and a third."""
    first, second = elicit.together(Question("A?", Name, key="a"), Question("B?", Name, key="b"))
    return f"{first.name} {second.name} {elicit('c', 'C?', Name).name}"


@tool
def unnamed(*, elicit: Elicit) -> str:
    """Ask under the empty key."""
    return elicit("", "Z?", Name).name


@tool
def sheds(*, step: Step) -> str:
    """Work in rounds without a question."""

    def work(part: int) -> int:
        WORKED.append(part)
        return part

    return f"{sum(step.within(60)(f'part-{part}', work, part) for part in (1, 2))}"


@tool
def sampled(*, sample: Sample, progress: Progress) -> str:
    """Report progress, and ask the client's model."""
    progress(1, total=2)
    word = str(sample("word", "A word?", max_tokens=5)["content"]["text"])
    progress(2, total=2)
    return word


@tool
def long(text: str, *, elicit: Elicit) -> str:
    """Accept a long text, and ask."""
    return f"{len(text)} {elicit('sure', 'Sure?', Name).name}"


@tool
def plain(number: int) -> int:
    """Ask nothing."""
    return number


@tool(task="required")
def paid(*, elicit: Elicit) -> int:
    """Ask for an amount, as a task."""
    return elicit("amount", "How much?", Amount).amount


@tool(task="allowed")
def signed(*, who: Annotated[Name, Ask("Who are you?")], step: Step) -> str:
    """Ask before the task."""
    return f"signed by {step('sign', str, who.name)}"


@tool(task="required")
def broken(*, step: Step) -> str:
    """Fail as a bug does."""
    step("work", str, "work")
    raise RuntimeError


@prompt
def greeting(*, elicit: Elicit) -> str:
    """Write a prompt for a person."""
    return f"Say hello to {elicit('who', 'To whom?', Name).name}."


@resource("reports://{year}")
def report(year: int, *, elicit: Elicit) -> str:
    """Read a report under a name."""
    return f"{year}, read by {elicit('reader', 'Who reads?', Name).name}"


@resource("long://{text}")
def page(text: str, *, elicit: Elicit) -> str:
    """Read a page with a long name."""
    return f"{len(text)} {elicit('reader', 'Who reads?', Name).name}"


ALL_HANDLERS = (both, unnamed, sheds, sampled, long, plain, greeting, report, page, get_weather, update_work_item)
TASKS = (echo, paid, signed, broken, plain)
