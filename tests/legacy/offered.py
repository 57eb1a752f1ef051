"""Handlers that a deployment offers to clients of 2025: plain ones, and ones that ask."""

from typing import Annotated, Literal

from pydantic import BaseModel

from mcp_functions import (
    Audio,
    Elicit,
    Header,
    ListRoots,
    Log,
    NotAnswered,
    Progress,
    Question,
    ResourceLink,
    Sample,
    Step,
    Titles,
    prompt,
    resource,
    tool,
)


class Why(BaseModel):
    why: Literal["Fixed", "Duplicate"]


class Original(BaseModel):
    number: int


class Seat(BaseModel):
    seat: Annotated[Literal["w", "a"], Titles("Window", "Aisle")] = "w"


@tool
def add(a: int, b: int, region: Annotated[str, Header("Region")] = "eu") -> int:
    """Add two numbers."""
    assert region
    return a + b


class Sum(BaseModel):
    total: int


@tool(title="A sum")
def summed(a: int, b: int) -> Sum:
    """Add two numbers, and name the sum."""
    return Sum(total=a + b)


@tool
def linked() -> list[ResourceLink | Audio]:
    """Point to a note."""
    return [ResourceLink("notes://ann", "ann"), Audio(b"la", "audio/wav")]


@tool
def told(*, progress: Progress, log: Log) -> str:
    """Report progress."""
    progress(0.5, total=1.0, message="half")
    log.info("told")
    return "done"


@tool
def resolve(bug: int, *, elicit: Elicit) -> str:
    """Resolve a bug: two questions, one after the other."""
    try:
        if elicit("why", f"How was bug {bug} resolved?", Why).why == "Fixed":
            return f"{bug} fixed"
        return f"{bug} duplicates {elicit('original', 'Which is the original?', Original).number}"
    except NotAnswered as unanswered:
        return f"{bug} stays: {type(unanswered).__name__}"


@tool
def seated(*, elicit: Elicit) -> str:
    """Ask for a seat."""
    return elicit("seat", "Where?", Seat).seat


@tool
def opened(*, elicit: Elicit) -> str:
    """Have a page opened."""
    elicit.url("page", "Sign in", "https://id.example/sign-in")
    return "signed in"


@tool
def sampled(*, sample: Sample) -> str:
    """Ask the model."""
    return str(sample("said", "Say a word", max_tokens=9)["content"]["text"])


@tool
def stepped(*, elicit: Elicit, step: Step) -> str:
    """Do something, ask, and do more."""
    first = step("first", lambda: "first")
    elicit("why", "Go on?", Why)
    return first + step("second", lambda: "second")


@tool
def rooted(*, list_roots: ListRoots) -> str:
    """Ask for the roots."""
    return ", ".join(root["uri"] for root in list_roots())


@tool
def both(*, elicit: Elicit) -> str:
    """Ask two things in one round."""
    why, original = elicit.together(Question("why", "Why?", Why), Question("original", "Which?", Original))
    return f"{why.why} {original.number}"


@tool
def talkative(*, elicit: Elicit, progress: Progress) -> str:
    """Report progress, and ask."""
    progress(0.5)
    return elicit("why", "Go on?", Why).why


@tool
def large(*, elicit: Elicit) -> str:
    """Ask, and say very much."""
    elicit("why", "Go on?", Why)
    return "x" * 500_000


@prompt
def brief(topic: str, *, elicit: Elicit) -> str:
    """Write a briefing, for a reason."""
    return f"{topic}: {elicit('why', 'Why?', Why).why}"


@prompt
def plain(topic: str) -> str:
    """Write a briefing."""
    return topic


@plain.complete("topic")
def _topics(value: str, _arguments: object) -> list[str]:
    return [value + "!"]


@resource("notes://{owner}")
def note(owner: str) -> str:
    """Read a note."""
    return f"{owner}'s note"


@resource("secrets://{owner}")
def secret(owner: str, *, elicit: Elicit) -> str:
    """Read a secret, for a reason."""
    return f"{owner}: {elicit('why', 'Why?', Why).why}"


ALL = (
    add, both, brief, large, linked, note, opened, plain, resolve, rooted, sampled, seated, secret, stepped, summed,
    talkative, told,
)  # fmt: skip
