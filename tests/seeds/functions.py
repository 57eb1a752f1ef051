"""The functions in the examples of the proposals ("seeds") that no sample has; most use the low-level API."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from mcp_functions import Elicit, Progress, Question, RootsQuestion, SampleQuestion, Step, prompt, resource, serve, tool
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.low_level import InputRequest, InputRequiredResult, InputResponses, RequestState


class Name(BaseModel):
    name: str


class Region(BaseModel):
    region: str


class Sum(BaseModel):
    done: int = 0
    total: int = 0


GITHUB = Question("Please provide your GitHub username", Name)

# the draft page and SEP-2322 show the same question with and without preferences
PREFERENCES: dict[str, Any] = {
    "modelPreferences": {
        "hints": [{"name": "claude-3-sonnet"}],
        "intelligencePriority": 0.8,
        "speedPriority": 0.5,
    }
}


def capital(*, preferences: bool) -> SampleQuestion:
    options = {"systemPrompt": "You are a helpful assistant."} | (PREFERENCES if preferences else {})
    return SampleQuestion("What is the capital of France?", 100, options)


@tool
def core_types(preferences: bool = True, *, input_responses: InputResponses) -> str | InputRequiredResult:  # noqa: FBT001, FBT002 - what the model sends stands before `*`
    """Ask the user and the client's model in one round."""
    wanted = {
        "github_login": GITHUB,
        "capital_of_france": capital(preferences=preferences),
    }
    if missing := {key: asked for key, asked in wanted.items() if key not in input_responses}:
        return InputRequiredResult(missing)
    login = input_responses.accepted("github_login", Name)
    return f"{login.name if login else 'Nobody'}: {input_responses['capital_of_france']['content']['text']}"


@tool
def region_of(service: str, *, input_responses: InputResponses) -> str | InputRequiredResult:
    """Ask for a region as the Python SDK's page does: a guard that asks instead of answering."""
    region = input_responses.accepted("region", Region)
    if region is None:
        return InputRequiredResult({"region": Question("Which region?", Region)})
    return f"{service} in {region.region}"


@prompt(name="region_of")
def prompt_of_the_same_name(service: str, *, elicit: Elicit) -> str:
    """Ask as the tool does that has this name: what differs is the method."""
    return f"{service} in {elicit('region', 'Which region?', Region).region}"


@prompt
def greeting(*, input_responses: InputResponses) -> str | InputRequiredResult:
    """Write a prompt once its language is known."""
    language = input_responses.accepted("language", Name)
    return (
        f"Say hello in {language.name}."
        if language
        else InputRequiredResult({"language": Question("Which language?", Name)})
    )


@resource("reports://{year}")
def report(year: int, *, input_responses: InputResponses) -> str | InputRequiredResult:
    """Read a report after the user has given a name."""
    reader = input_responses.accepted("reader", Name)
    return f"{year}, read by {reader.name}" if reader else InputRequiredResult({"reader": GITHUB})


@report.complete("year")
def years(_value: str, _arguments: Mapping[str, str]) -> list[str]:
    return ["2025", "2026"]


@resource("reports://latest")
def latest_report(*, elicit: Elicit) -> str:
    """Ask before a resource without any variable is read."""
    return f"read by {elicit('reader', 'Who reads?', Name).name}"


@tool
def counted(*, progress: Progress, elicit: Elicit) -> str:
    """Report progress, and ask."""
    progress(1, total=2)
    return elicit("login", "Please provide your GitHub username", Name).name


@tool(requires=["elicitation", "sampling", "roots"])
def asks_for(kind: str, *, input_responses: InputResponses) -> str | InputRequiredResult:
    """Ask for one kind of thing, whatever the client can do."""
    search = {"name": "search", "inputSchema": {"type": "object"}}
    kinds: dict[str, InputRequest[Any]] = {
        "form": GITHUB,
        "url": Question.url("Please sign in", "https://example.com/sign-in"),
        "sampling": capital(preferences=False),
        "sampling.tools": SampleQuestion("What is new?", 100, {"tools": [search]}),
        "roots": RootsQuestion(),
    }
    return InputRequiredResult({"asked": kinds[kind]}) if "asked" not in input_responses else "answered"


@tool
def asks_nothing_at_all(*, input_responses: InputResponses) -> str | InputRequiredResult:
    """End a round with neither a question nor a state."""
    return "done" if input_responses else InputRequiredResult()


@tool(answer_within=60)
def hasty(*, elicit: Elicit) -> str:
    """Wait a minute for an answer, and no longer."""
    return elicit("login", "Please provide your GitHub username", Name).name


@tool
def guessing(*, input_responses: InputResponses) -> str | InputRequiredResult:
    """Ask under one key until the answer is right."""
    guess = input_responses.accepted("guess", Name)
    if guess and guess.name == "Rumpelstiltskin":
        return "That is it!"
    asked = f"Not {guess.name}. What is my name?" if guess else "What is my name?"
    return InputRequiredResult({"guess": Question(asked, Name)})


NAMES_OF_ACT: list[str] = []


@tool
def act(*, elicit: Elicit) -> str:
    """Count a call after the user has given a name."""
    NAMES_OF_ACT.append(elicit("login", "Who are you?", Name).name)
    return "done"


@tool
def sheds_once(*, input_responses: InputResponses, request_state: RequestState[Sum]) -> str | InputRequiredResult:
    """Ask, shed its load before it has read the answer, and only then read it."""
    if "login" not in input_responses:
        return InputRequiredResult({"login": GITHUB})
    if not request_state.value.done:
        return InputRequiredResult(request_state=Sum(done=1))
    login = input_responses.accepted("login", Name)
    return login.name if login else "nobody"


# One Lambda for all of them; a test that needs another container serves its function itself.
handler = serve(
    core_types,
    region_of,
    prompt_of_the_same_name,
    greeting,
    guessing,
    report,
    latest_report,
    counted,
    asks_for,
    asks_nothing_at_all,
    act,
    sheds_once,
)


PROCESSED_NUMBERS: list[int] = []  # every number that any instance of `summing` has worked on


@cache
def make_instance(name: str, *, capacity: int) -> LambdaFunction:
    """Return an instance of a tool that adds up to a number, and sheds its load after `capacity` of them."""

    @tool(name="summing")
    def summing(upto: int, *, request_state: RequestState[Sum]) -> str | InputRequiredResult:
        so_far = request_state.value
        for number in range(so_far.done + 1, upto + 1)[:capacity]:
            PROCESSED_NUMBERS.append(number)
            so_far = Sum(done=number, total=so_far.total + number)
        if so_far.done < upto:
            return InputRequiredResult(request_state=so_far)
        return f"{name}: the sum is {so_far.total}."

    return serve(summing)


@cache
def make_instance_with_steps(name: str) -> LambdaFunction:
    """Return an instance that does the same in steps, none of which ends before its round does but the first."""

    def work_on(number: int) -> int:
        PROCESSED_NUMBERS.append(number)
        return number

    @tool(name="summing")
    def summing(upto: int, *, step: Step) -> str:
        numbers = [step.within(60)(f"number-{number}", work_on, number) for number in range(1, upto + 1)]
        return f"{name}: the sum is {sum(numbers)}."

    return serve(summing)


@cache
def make_version(*wanted: str, inline: bool = False, words: str = "Please provide your {} username") -> LambdaFunction:
    """Return one version of a tool that needs logins: `version("github", "google")` asks for both in one round.

    Args:
        wanted: whose logins.
        inline: whether it asks one after the other, with `elicit`.
        words: what it asks.

    """
    asked = {f"{name}_login": words.format(name.capitalize()) for name in wanted}

    @tool(name="link_accounts")
    def at_once(*, input_responses: InputResponses) -> str | InputRequiredResult:
        known = {key: login.name for key in asked if (login := input_responses.accepted(key, Name))}
        missing = {key: Question(text, Name) for key, text in asked.items() if key not in known}
        return InputRequiredResult(missing) if missing else " and ".join(known.values()) or "nobody was asked"

    @tool(name="link_accounts")
    def one_by_one(*, elicit: Elicit) -> str:
        return " and ".join([elicit(key, text, Name).name for key, text in asked.items()])

    return serve(one_by_one if inline else at_once)
