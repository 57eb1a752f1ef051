"""The tools that the tests of tasks call.

Each step appends its name to `STARTED_STEPS`, so that a test notices a step that runs twice. Then it calls each
function in `STEP_HOOKS`. With them a test does something to the worker in the middle of the step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable  # noqa: TC003 - as an author writes it
from typing import Annotated, Any, Literal

from pydantic import BaseModel

from mcp_functions import Ask, Caller, Elicit, Progress, Question, Sample, Step, ToolError, tool
from mcp_functions.content import Text
from mcp_functions.low_level import InputRequiredResult, InputResponses, RequestState

STARTED_STEPS: list[str] = []
STEP_HOOKS: list[Callable[[list[str]], object]] = []  # each is called with STARTED_STEPS


class Killed(KeyboardInterrupt):
    """The process of a worker has ended. Not an Exception: no code of the toolkit or of a tool may catch it."""


def kill_process(*_ignored: object) -> Any:  # noqa: ANN401 - for any hook
    """End the process of the worker that runs."""
    raise Killed


def do(what: str) -> str:
    """Run one step; return its result."""
    STARTED_STEPS.append(what)
    for hook in STEP_HOOKS:
        hook(STARTED_STEPS)
    return what.upper()


class Yes(BaseModel):
    yes: bool


class Name(BaseModel):
    name: str


class Count(BaseModel):
    count: int = 0


@tool(task="allowed")
def publish(title: str, *, step: Step, elicit: Elicit, progress: Progress) -> str:
    """Draft, ask, publish."""
    draft = step("draft", do, f"draft {title}")
    progress(1, total=2, message="drafted")
    if not elicit("approve", f"Publish {title!r}?", Yes).yes:
        return "Kept."
    return f"{draft}, {step('publish', do, f'publish {title}')}"


@tool(task="required", task_ttl=60)
def required(*, step: Step) -> str:
    """Work, as a task or not at all."""
    return step("work", do, "work")


def long_enough(count: int) -> Literal["allowed", "required"] | None:
    """Decide whether a call becomes a task, by its arguments."""
    if count < 2:
        return None
    return "allowed" if count < 5 else "required"


@tool(task=long_enough)
def counted(count: int, *, step: Step, progress: Progress) -> int:
    """Work as often as one says."""
    parts = list[str]()
    for part in range(count):
        progress(part, total=count)
        parts.append(step(f"part-{part}", do, f"part {part}"))
    return len(parts)


@tool(task="allowed")
def both(*, elicit: Elicit) -> str:
    """Ask two things at once."""
    first, second = elicit.together(Question("A?", Name, key="a"), Question("B?", Name, key="b"))
    return f"{first.name} {second.name}"


@tool(task="required")
def named(greeting: str, *, who: Annotated[Name, Ask("Who are you?")], caller: Caller, elicit: Elicit) -> str:
    """Ask before the task, and in it."""
    sure = elicit("sure", f"{who.name}, are you sure?", Yes).yes
    return f"{greeting}, {who.name} ({caller.subject}): {sure}"


@tool(task="allowed", scopes=["work:write"])
def scoped() -> str:
    """Need a scope."""
    return "done"


@tool(task="allowed")
def broken(how: str, *, step: Step) -> Any:  # noqa: ANN401 - some values are no results
    """Fail in one of many ways."""
    match how:
        case "tool":
            message = "no paper"
            raise ToolError(message)
        case "bug":
            message = "secret of the author"
            raise RuntimeError(message)
        case "exit":
            message = "secret of the author"
            raise SystemExit(message)
        case "meta":
            return Text("x", meta={"x": object()})
        case "large":
            return "x" * 500_000
        case "steps":
            return "".join(step(f"s{number}", do, "x" * 7000) for number in range(60))
        case "rule":
            step("same", do, "a")
            return step("same", do, "b")
    return how


@tool(task="allowed")
def sampled(*, sample: Sample) -> str:
    """Ask the client's model."""
    return str(sample("word", "A word?", max_tokens=5)["content"])


@tool(task="allowed", requires=["sampling"])
def demanding(*, sample: Sample) -> str:
    """Ask the client's model, which it cannot do without."""
    return str(sample("word", "A word?", max_tokens=5)["content"])


@tool(task="allowed")
def low(*, input_responses: InputResponses, request_state: RequestState[Count]) -> str | InputRequiredResult:
    """Return a new state for each round, and from the third round on the same state for ever."""
    if "x" in input_responses:
        return "x"
    count = request_state.value.count
    return InputRequiredResult(request_state=Count(count=min(count + 1, 3)))


@tool(task="allowed")
async def parallel(*, step: Step) -> str:
    """Do two things at once."""

    async def work(what: str) -> str:
        await asyncio.sleep(0)
        return do(what)

    left, right = await asyncio.gather(step.wait("left", work, "left"), step.wait("right", work, "right"))
    return f"{left} {right}"


@tool(task="allowed")
def keyed(*, step: Step, elicit: Elicit) -> str:
    """Charge once, and ask."""

    def charge(amount: int, *, key: str) -> str:
        STARTED_STEPS.append(f"charge {key}")
        return f"{amount}"

    charged = step.keyed("charge", charge, 5)
    return f"{charged} {elicit('ok', 'Ok?', Yes).yes}"


@tool(task="allowed")
def musing(then: str, *, step: Step, elicit: Elicit) -> str:
    """Work outside of a step, and then do what makes the worker write its task: see SLEEPS in test_workers."""
    do("think")
    match then:
        case "record" | "renew":
            step("act", do, "act")
        case "pause":
            step("act", do, "act")
            do("think again")
            step.shed()  # leave the rest to another round
        case "ask":
            return f"{elicit('ok', 'Ok?', Yes).yes}"
        case "fail":
            raise RuntimeError
    return "thought"


@tool(task="allowed", task_ttl=7 * 24 * 3600)
def saga(tag: str, *, step: Step, elicit: Elicit) -> str:
    """Act, ask, act, ask two things, act."""
    step("s1", do, f"{tag} s1")
    first = elicit("q1", "First?", Name).name
    step("s2", do, f"{tag} s2")
    left, right = elicit.together(Question("Left?", Name, key="q2"), Question("Right?", Name, key="q3"))
    step("s3", do, f"{tag} s3")
    return f"{tag}: {first} {left.name} {right.name}"


@tool(task="allowed", scopes=["read"])
def granted(*, caller: Caller, elicit: Elicit, step: Step) -> str:
    """Return the scopes of each round: the one with the first two questions, the one with the third, and the last."""

    def read_scopes() -> str:
        return do(" ".join(sorted(caller.scopes)))

    first = step("first", read_scopes)
    elicit.together(Question("A?", Yes, key="a"), Question("B?", Yes, key="b"))
    second = step("second", read_scopes)
    elicit("c", "C?", Yes)
    return f"{first} | {second} | {read_scopes()}".lower()


JOBS = (
    publish,
    required,
    counted,
    both,
    named,
    scoped,
    broken,
    sampled,
    demanding,
    low,
    parallel,
    keyed,
    musing,
    granted,
)
