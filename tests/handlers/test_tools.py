"""A tool: its entry in `tools/list`, and the result that a client gets for what the function returns or raises.

Most tests call a tool over the wire, as a client does: `talk_to(tool).call(…)`.

(This module has no `from __future__ import annotations`, because the decorators must find types in the annotations, and
not text.)
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, RootModel

from mcp_functions import (
    Ask,
    Elicit,
    ListRoots,
    Log,
    Progress,
    RootsQuestion,
    Sample,
    Step,
    ToolError,
    prompt,
    resource,
    tool,
)
from mcp_functions.content import CallToolResult, Text
from mcp_functions.handlers.base import Handler
from mcp_functions.low_level import InputRequiredResult, InputResponses, RequestState
from mcp_functions.protocol.errors import DeveloperError
from tests.support.conversations import talk_to


class City(BaseModel):
    name: str


class Colour(StrEnum):
    RED = "red"


class Draft(BaseModel):
    step: int = 0


class Total(BaseModel):
    total: int


@tool
def add(a: int, b: int) -> Total:
    """Add."""
    return Total(total=a + b)


# The entry in tools/list


def test_decorating_leaves_the_function_callable_as_it_was() -> None:
    assert add(1, b=2) == Total(total=3)
    assert add.__doc__ == "Add."
    assert add.__module__ == __name__


def test_a_tool_is_described_by_its_signature_and_docstring() -> None:
    @tool
    def where_is(city: str, country: str = "PL", *, elicit: Elicit) -> str:
        """Find a city.

        In any country.
        """
        elicit("sure", "Sure?", bool)
        return f"{city}, {country}"

    assert where_is.describe() == {
        "name": "where_is",
        "description": "Find a city.\n\nIn any country.",
        "inputSchema": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "country": {"type": "string", "default": "PL"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    }


def test_an_author_can_declare_everything_about_a_tool() -> None:
    @tool(
        name="get-weather.v2",
        title="Weather",
        description="By hand",
        annotations={"readOnlyHint": True},
        icons=[{"src": "https://x.example/i.png"}],
        meta={"com.example/k": 1},
        camel_case=True,
        answer_within=86_400,
    )
    def weather(zip_code: str) -> str:
        """Never shown."""
        return zip_code

    entry = weather.describe()
    input_schema = entry.pop("inputSchema")
    assert entry == {
        "name": "get-weather.v2",
        "title": "Weather",
        "description": "By hand",
        "annotations": {"readOnlyHint": True},
        "icons": [{"src": "https://x.example/i.png"}],
        "_meta": {"com.example/k": 1},
    }
    assert list(input_schema["properties"]) == ["zipCode"]
    assert weather.answer_within == 86_400  # seconds


def test_a_function_without_a_docstring_has_no_description() -> None:
    @tool
    def silent() -> str:
        return ""

    assert "description" not in silent.describe()


# The output schema


def returning(annotation: object, *values: object) -> Handler[..., Any]:
    """Make a tool with this return type. Its argument chooses which of the values it returns."""

    def choose(number: int = 0):  # type: ignore[no-untyped-def]  # noqa: ANN202 - the next line sets it
        return values[number]

    choose.__annotations__["return"] = annotation
    return tool(choose)


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (int, {"type": "integer"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Total | InputRequiredResult, Total.model_json_schema()),
    ],
)
def test_the_return_type_of_a_tool_is_its_output_schema(annotation: object, schema: dict[str, Any]) -> None:
    assert returning(annotation).describe()["outputSchema"] == schema


@pytest.mark.parametrize(
    "annotation",
    [
        None, str | Text, list[Text], CallToolResult, str | InputRequiredResult, InputRequiredResult, Total | None,
        int | None, dict[str, Any] | None, Any, object, int | Any,
    ],
)  # fmt: skip
def test_a_return_type_without_structure_or_with_none_gives_no_output_schema(annotation: object) -> None:
    assert "outputSchema" not in returning(annotation).describe()


def test_a_function_without_a_return_type_has_no_output_schema() -> None:
    def untyped(): ...  # type: ignore[no-untyped-def]  # noqa: ANN202

    assert "outputSchema" not in tool(untyped).describe()


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int | list[int], 1),
        (int | list[int], [1]),
        (list[Any], [None]),
        (dict[str, Any], {"a": None}),
        (Annotated[int | None, "how many, where that is known"], None),
        (RootModel[int | None], RootModel[int | None](None)),
        (RootModel[int | None], 1),
    ],
)
def test_structured_content_conforms_to_the_output_schema(annotation: object, value: object) -> None:
    handler = returning(annotation, value)
    structured = talk_to(handler).call().result["structuredContent"]
    # "Servers MUST provide structured results that conform to this schema."
    Draft202012Validator(handler.describe()["outputSchema"]).validate(structured)


# Results


def test_structured_content_comes_with_its_text() -> None:
    result = talk_to(add).call(a=1, b=2).result
    assert result["content"] == [{"type": "text", "text": '{"total":3}'}]
    assert result["structuredContent"] == {"total": 3}
    assert result["isError"] is False


@pytest.mark.parametrize(
    ("annotation", "value", "json_value"),
    [
        (date, date(2026, 7, 28), "2026-07-28"),
        (UUID, UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (Colour, Colour.RED, "red"),
        (Literal["red", "blue"], "red", "red"),
        (Annotated[str, Field(max_length=3)], "red", "red"),
        (date | int, date(2026, 7, 28), "2026-07-28"),
    ],
)
def test_a_value_that_json_writes_as_text_is_structured_content(
    annotation: object, value: object, json_value: str
) -> None:
    result = talk_to(returning(annotation, value)).call().result
    assert result["structuredContent"] == json_value
    assert result["content"] == [{"type": "text", "text": f'"{json_value}"'}]


@pytest.mark.parametrize("annotation", [Any, object, None], ids=str)
@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (None, []),
        ("text", ["text"]),
        (Text("content"), ["content"]),
        ([Text("a"), Text("list")], ["a", "list"]),
        (CallToolResult(["all of it"]), ["all of it"]),
    ],
    ids=["none", "text", "content", "list", "result"],
)
def test_a_function_without_a_structured_type_may_return_anything(
    annotation: object, value: object, texts: list[str]
) -> None:
    result = talk_to(returning(annotation, value)).call().result
    assert [block["text"] for block in result["content"]] == texts
    assert "structuredContent" not in result


def test_a_field_may_have_the_name_of_a_member_of_content() -> None:
    @dataclass
    class Transfer:
        wire: bool = True

    transfer = returning(list[Transfer], [Transfer()])
    assert talk_to(transfer).call().result["structuredContent"] == [{"wire": True}]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"total": "hunter2"}, "something else than its signature promises: it total should be a valid"),
        ("text", "something else than its signature promises: it"),
        (None, "something else than its signature promises: it"),
        (CallToolResult(["x"]), "promises structured content in its signature and returned none"),
        (object(), "something else than its signature promises: it"),
    ],
    ids=["another field type", "text", "none", "no structured content", "not JSON"],
)
def test_a_result_that_violates_its_return_type_is_the_developers_error(value: object, reason: str) -> None:
    talk = talk_to(returning(Total, value)).call()
    assert isinstance(talk.raised, DeveloperError)
    assert reason in str(talk.raised)
    assert "hunter2" not in str(talk.raised)


# Errors


def test_an_error_result_need_not_have_the_return_type() -> None:
    failed = returning(Total, CallToolResult(["no"], is_error=True))
    assert talk_to(failed).call().result["isError"] is True


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"a": 1}, "Argument 'b': it is missing"),
        ({}, "Argument 'a': it is missing"),
        ({"a": 1, "b": "hunter2"}, "Argument 'b': must be an integer"),
        ({"a": 1, "b": 2, "c": 3}, "Unknown argument 'c'; known are: a, b"),
    ],
)
def test_invalid_arguments_are_an_error_that_the_model_can_read(arguments: dict[str, object], reason: str) -> None:
    result = talk_to(add).call(**arguments).result
    assert result["content"] == [{"type": "text", "text": reason}]
    assert result["isError"] is True


def test_a_tool_error_is_an_error_the_model_can_read() -> None:
    @tool
    def failing() -> Total:
        message = "No such flight"
        raise ToolError(message)

    result = talk_to(failing).call().result
    assert result["content"] == [{"type": "text", "text": "No such flight"}]
    assert result["isError"] is True


def test_the_text_of_any_other_exception_is_hidden_from_the_client() -> None:
    @tool
    def broken() -> str:
        message = "secret"
        raise LookupError(message)

    talk = talk_to(broken).call()
    assert isinstance(talk.raised, LookupError)
    assert talk.text == "The tool broken failed unexpectedly. The server's log says why."


# Questions. tests/rounds tests how they are asked and answered.


def test_a_question_in_the_signature_is_no_argument_and_may_quote_defaults() -> None:
    @tool
    def visit(country: str = "France", *, city: Annotated[City, Ask("Where in {country}?")]) -> str:
        return f"{city.name}, {country}"

    assert list(visit.describe()["inputSchema"]["properties"]) == ["country"]
    talk = talk_to(visit).call()
    assert talk.messages == {"city": "Where in France?"}
    assert talk.accept(city="Nice").text == "Nice, France"


def test_camel_case_applies_to_the_keys_and_forms_of_questions() -> None:
    class Address(BaseModel):
        zip_code: str

    @tool(camel_case=True)
    def visit(*, post_office: Annotated[Address, Ask("Where?")]) -> str:
        return post_office.zip_code

    talk = talk_to(visit).call()
    assert talk.asked == ["postOffice"]
    assert talk.accept(postOffice={"zipCode": "06000"}).text == "06000"


def test_a_result_that_asks_needs_a_parameter_for_the_answers() -> None:
    @tool
    def ask() -> str | InputRequiredResult:
        return InputRequiredResult({"roots": RootsQuestion()})

    talk = talk_to(ask).call()
    assert isinstance(talk.raised, DeveloperError)
    assert "to ask, it takes an InputResponses after" in str(talk.raised)


def ask_nothing() -> str: ...  # type: ignore[empty-body]
def report(*, progress: Progress, log: Log) -> str: ...  # type: ignore[empty-body]
def elicit_answer(*, elicit: Elicit) -> str: ...  # type: ignore[empty-body]
def declare_question(*, city: Annotated[City, Ask("Where?")]) -> str: ...  # type: ignore[empty-body]
def ask_model(*, sample: Sample) -> str: ...  # type: ignore[empty-body]
def list_roots(*, roots: ListRoots) -> str: ...  # type: ignore[empty-body]
def run_step(*, step: Step) -> str: ...  # type: ignore[empty-body]
def read_responses(*, responses: InputResponses) -> str: ...  # type: ignore[empty-body]
def keep_state(*, state: RequestState[Draft]) -> str: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    "function", [elicit_answer, declare_question, ask_model, list_roots, run_step, read_responses, keep_state]
)
def test_a_function_that_may_ask_or_keep_a_state_needs_the_key(function: Callable[..., str]) -> None:
    assert tool(function).needs_state
    assert prompt(function).needs_state
    assert resource("a://b")(function).needs_state


@pytest.mark.parametrize("function", [ask_nothing, report])
def test_a_function_without_such_parameters_needs_no_key(function: Callable[..., str]) -> None:
    assert not tool(function).needs_state
    assert not prompt(function).needs_state
    assert not resource("a://b")(function).needs_state
