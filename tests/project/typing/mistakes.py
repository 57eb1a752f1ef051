# mypy: ignore-errors
"""Mistakes that a type checker reports: every line marked `E:` is an error, and no other line is.

The first line excludes this file from `make check`; tests/project/test_typing.py removes that line. This file never
runs.
"""
# ruff: noqa: ANN401, B018, RUF059 - the file consists of mistakes

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel

import mcp_functions
from mcp_functions import Elicit, Log, Progress, Question, Sample, SampleQuestion, Step, prompt, resource, serve, tool
from mcp_functions.low_level import InputRequiredResult, InputResponses, RequestState


class City(BaseModel):
    name: str


class Draft(BaseModel):
    step: int = 0


class Plain:
    name = "not a form"


@tool
def add(a: int, b: int) -> int:
    return a + b


@prompt
def brief(topic: str) -> str:
    return topic


@resource("a://{x}")
def read(x: str) -> str:
    return x


def reserve(city: str) -> City:
    return City(name=city)


mcp_functions.tol  # E: attr-defined

add("1", 2)  # E: arg-type
add(1)  # E: call-arg
add(1, 2, 3)  # E: call-arg
add(a=1, c=2)  # E: call-arg
text: str = add(1, 2)  # E: assignment
add(1, 2).upper()  # E: attr-defined
brief(topic=7)  # E: arg-type
number: int = brief("tea")  # E: assignment
read()  # E: call-arg

tool(title=7)(reserve)  # E: call-overload
tool(readonly=True)(reserve)  # E: call-overload
tool(annotations={"readOnlyHint": "yes"})(reserve)  # E: call-overload
prompt(input_schema={})(reserve)  # E: call-overload
resource()(reserve)  # E: call-arg
resource("a://b", size="7")(reserve)  # E: arg-type
resource("a://b", cache_scope="shared")(reserve)  # E: arg-type
tool("name")  # E: call-overload
serve(reserve)  # E: arg-type
serve("add")  # E: arg-type


@brief.complete("topic")  # E: type-var
def topics(value: str) -> list[str]:
    return [value]


@brief.complete("topic")  # E: type-var
def numbers(value: str, arguments: Mapping[str, str]) -> int:
    return len(value) + len(arguments)


@tool
def asking(*, elicit: Elicit, sample: Sample, log: Log, progress: Progress) -> str:
    elicit("seat", "Where?", ["window", "aisle"])  # E: arg-type
    elicit("seat", "Where?", Literal["window"]).city  # E: attr-defined
    elicit("city", "Where?", City(name="Rome"))  # E: arg-type
    elicit("city", "Where?")  # E: call-arg
    elicit("city", "Where?", City).nme  # E: attr-defined
    elicit.outcome("city", "Where?", City).name  # E: union-attr
    where, when = Question("A?", City, key="a"), Question("B?", City, key="b")
    elicit.together(where, when)[2]  # E: misc
    elicit.together(where, when)[1].size  # E: attr-defined
    one, two = elicit.together(where, when, where)  # E: misc
    elicit.together("a", "b")  # E: call-overload
    elicit.url("login", "Please sign in")  # E: call-arg
    elicit.possible()  # E: operator
    sample("m", "Hi")  # E: call-arg
    sample("m", 7, max_tokens=1)  # E: arg-type
    log.shout("no")  # E: attr-defined
    progress("half")  # E: arg-type
    return elicit("city", "Where?", City)  # E: return-value


@tool
def stepping(*, step: Step) -> str:
    step("reserve", reserve, 7)  # E: arg-type
    step("reserve", reserve)  # E: call-arg
    step("reserve", reserve, "Rome").size  # E: attr-defined
    step(reserve, "Rome")  # E: arg-type
    step.within("soon")  # E: arg-type
    step.within(8)("reserve", reserve, 7)  # E: arg-type
    step.key = "mine"  # E: misc
    return step("reserve", reserve, "Rome")  # E: return-value


@tool
def low(*, responses: InputResponses, state: RequestState[Draft]) -> str | InputRequiredResult:
    state.value.stp  # E: attr-defined
    responses["city"] = {}  # E: index
    responses.accepted("city", City).name  # E: union-attr
    responses.accepted("city", 7)  # E: arg-type
    InputRequiredResult({"city": "Where?"})  # E: dict-item
    InputRequiredResult({}, {"step": 1})  # E: arg-type
    Question("Where?")  # E: call-arg
    SampleQuestion("Hi")  # E: call-arg
    return InputRequiredResult({"city": Question("Where?", City)}, Draft(step="1"))  # E: arg-type


def stateless(state: RequestState[Plain]) -> Any:  # E: type-var
    return state.value
