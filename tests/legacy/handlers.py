"""Tools, prompts and resources for clients of 2025: some ask their user questions, some do not."""

from typing import Annotated, Literal

from pydantic import BaseModel

from mcp_functions import Elicit, Log, NotAnswered, Progress, Question, Sample, prompt, resource, tool
from mcp_functions.annotated import Header
from mcp_functions.content import Audio, ResourceLink
from tests.legacy.clients import Client, read_question


class Why(BaseModel):
    why: Literal["Fixed", "Duplicate"]


class Original(BaseModel):
    number: int


@tool
def add(a: int, b: int, region: Annotated[str, Header("Region")] = "eu") -> int:
    """Add two numbers."""
    assert region
    return a + b


class Sum(BaseModel):
    total: int


@tool(title="A sum")
def add_structured(a: int, b: int) -> Sum:
    """Add two numbers, and name the sum."""
    return Sum(total=a + b)


@tool
def link_note() -> list[ResourceLink | Audio]:
    """Point to a note."""
    return [ResourceLink("notes://ann", "ann"), Audio(b"la", "audio/wav")]


@tool
def report(*, progress: Progress, log: Log) -> str:
    """Report progress."""
    progress(0.5, total=1.0, message="half")
    log.info("report")
    return "done"


@tool
def resolve(bug: int, *, elicit: Elicit) -> str:
    """Ask how a bug was resolved and, for a duplicate, ask for the original bug."""
    try:
        if elicit("why", f"How was bug {bug} resolved?", Why).why == "Fixed":
            return f"{bug} fixed"
        return f"{bug} duplicates {elicit('original', 'Which is the original?', Original).number}"
    except NotAnswered as unanswered:
        return f"{bug} stays: {type(unanswered).__name__}"


def start_resolving(client: Client, bug: int = 7) -> str:
    """Call `resolve`, and return the id of its first question."""
    question = read_question(client.call("resolve", bug=bug))
    assert question["params"]["message"] == f"How was bug {bug} resolved?"
    return str(question["id"])


@tool
def sign_in(*, elicit: Elicit) -> str:
    """Have a page opened."""
    elicit.url("page", "Sign in", "https://id.example/sign-in")
    return "signed in"


@tool
def ask_model(*, sample: Sample) -> str:
    """Ask the model."""
    return str(sample("said", "Say a word", max_tokens=9)["content"]["text"])


@tool
def ask_both(*, elicit: Elicit) -> str:
    """Ask two things in one round."""
    why, original = elicit.together(Question("Why?", Why, key="why"), Question("Which?", Original, key="original"))
    return f"{why.why} {original.number}"


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


ALL_HANDLERS = (
    add, add_structured, ask_both, ask_model, brief, link_note, note, plain, report, resolve, secret, sign_in,
)  # fmt: skip
