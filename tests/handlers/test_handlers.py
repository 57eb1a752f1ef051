"""An author's function: its description for clients, and how a request calls it.

No `from __future__ import annotations` here, because most authors' modules have none.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

import mcp_types
import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, RootModel

from mcp_functions import (
    Ask,
    CallToolResult,
    Cancelled,
    Declined,
    Elicit,
    Header,
    InputRequiredResult,
    InputResponses,
    ListRoots,
    ListRootsRequest,
    Log,
    NotAnswered,
    Progress,
    RequestState,
    Sample,
    Step,
    Text,
    ToolError,
    prompt,
    resource,
    tool,
)
from mcp_functions.handlers.base import Handler
from mcp_functions.handlers.runner import run_round
from mcp_functions.protocol.errors import DeveloperError, HandlerError, InputRequired, InvalidParams
from mcp_functions.rounds.round import Round, RoundRequest


class City(BaseModel):
    name: str


class Colour(StrEnum):
    """A text that has a name."""

    RED = "red"


class Draft(BaseModel):
    step: int = 0


class Total(BaseModel):
    total: int


def call(handler: Handler[..., Any], arguments: dict[str, Any] | None = None, round_: Round | None = None) -> Any:  # noqa: ANN401
    return handler.call({"name": handler.name, "arguments": arguments}, round_ or Round())


def run(handler: Handler[..., Any], arguments: dict[str, Any] | None = None, round_: Round | None = None) -> Any:  # noqa: ANN401
    """Call a handler whose exceptions may become a result."""
    return run_round(handler, {"name": handler.name, "arguments": arguments}, round_ or Round())


def talk(handler: Handler[..., Any], *responses: dict[str, Any], arguments: dict[str, Any] | None = None) -> Any:  # noqa: ANN401
    """Hold a conversation of one round more than there are responses; all but the last round have to ask."""
    round_ = Round(RoundRequest(camel_case=handler.camel_case))
    for response in responses:
        with pytest.raises(InputRequired):
            call(handler, arguments, round_)
        record, asked = round_.next_record(), round_.questions.open_fingerprints()
        round_ = Round(RoundRequest(responses=response, camel_case=handler.camel_case), record, asked)
    return run(handler, arguments, round_)


def accept(**content: object) -> dict[str, Any]:
    return {"action": "accept", "content": content}


def text(result: Mapping[str, Any]) -> str:
    (block,) = result["content"]
    return str(block["text"])


@tool
def where_is(city: str, country: str = "PL", *, elicit: Elicit) -> str:
    """Find a city.

    In any country.
    """
    found = elicit("which", f"Which {city}?", City)
    return f"{found.name}, {country}"


@tool
def add(a: int, b: int) -> Total:
    """Add."""
    return Total(total=a + b)


def test_decorating_leaves_the_function_callable_as_it_was() -> None:
    assert add(1, b=2) == Total(total=3)
    assert (add.__doc__, add.__module__) == ("Add.", __name__)


def test_a_tool_is_described_by_its_signature_and_docstring() -> None:
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

    described = weather.describe()
    assert described == {
        "name": "get-weather.v2",
        "title": "Weather",
        "description": "By hand",
        "inputSchema": described["inputSchema"],
        "annotations": {"readOnlyHint": True},
        "icons": [{"src": "https://x.example/i.png"}],
        "_meta": {"com.example/k": 1},
    }
    assert list(described["inputSchema"]["properties"]) == ["zipCode"]
    assert weather.answer_within == 86_400


def test_a_function_without_a_docstring_has_no_description() -> None:
    @tool
    def silent() -> str:
        return ""

    assert "description" not in silent.describe()


def nothing() -> None: ...
def untyped(): ...  # type: ignore[no-untyped-def]  # noqa: ANN201
def text_or_content() -> str | Text: ...  # type: ignore[empty-body]
def contents() -> list[Text]: ...  # type: ignore[empty-body]
def whole() -> CallToolResult: ...  # type: ignore[empty-body]
def asking() -> str | InputRequiredResult: ...  # type: ignore[empty-body]
def only_asking() -> InputRequiredResult: ...  # type: ignore[empty-body]
def perhaps() -> Total | None: ...
def anything() -> Any: ...  # noqa: ANN401 - what it is about
def any_object() -> object: ...
def number_or_anything() -> int | Any: ...  # noqa: ANN401 - likewise


@pytest.mark.parametrize(
    "function",
    [
        nothing,
        untyped,
        text_or_content,
        contents,
        whole,
        asking,
        only_asking,
        perhaps,
        anything,
        any_object,
        number_or_anything,
    ],
)
def test_a_tool_without_a_structured_return_type_has_no_output_schema(function: Callable[..., Any]) -> None:
    assert "outputSchema" not in tool(function).describe()


def number() -> int: ...  # type: ignore[empty-body]
def numbers() -> list[int]: ...  # type: ignore[empty-body]
def either() -> Total | InputRequiredResult: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("function", "schema"),
    [
        (number, {"type": "integer"}),
        (numbers, {"type": "array", "items": {"type": "integer"}}),
        (either, Total.model_json_schema()),
    ],
)
def test_a_tools_return_type_is_its_output_schema(function: Callable[..., Any], schema: dict[str, Any]) -> None:
    assert tool(function).describe()["outputSchema"] == schema


def test_structured_content_comes_with_its_text() -> None:
    assert call(add, {"a": 1, "b": 2}) == {
        "content": [{"type": "text", "text": '{"total":3}'}],
        "structuredContent": {"total": 3},
        "isError": False,
    }


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"a": 1}, "Argument 'b': it is missing"),
        (None, "Argument 'a': it is missing"),
        ({"a": 1, "b": "hunter2"}, "Argument 'b': must be an integer"),
        ({"a": 1, "b": 2, "c": 3}, "Unknown argument 'c'; known are: a, b"),
    ],
)
def test_invalid_arguments_are_an_error_that_the_model_can_read(arguments: Any, reason: str) -> None:  # noqa: ANN401
    assert run(add, arguments) == {"content": [{"type": "text", "text": reason}], "isError": True}


def test_a_tool_error_is_an_error_the_model_can_read() -> None:
    @tool
    def failing() -> Total:
        message = "No such flight"
        raise ToolError(message)

    assert run(failing) == {"content": [{"type": "text", "text": "No such flight"}], "isError": True}


def test_a_handler_passes_every_other_exception_on() -> None:
    @tool
    def broken() -> str:
        message = "secret"
        raise LookupError(message)

    with pytest.raises(LookupError):
        call(broken)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (
            {"total": "hunter2"},
            "promiser returned something else than its signature promises: it total should be a valid",
        ),
        ("text", "promiser returned something else than its signature promises: it"),
        (None, "promiser returned something else than its signature promises: it"),
        (CallToolResult(["x"]), "promiser promises structured content in its signature and returned none"),
    ],
)
def test_a_result_that_violates_its_return_type_is_the_developers_error(value: Any, reason: str) -> None:  # noqa: ANN401
    @tool
    def promiser() -> Total:
        return value  # type: ignore[no-any-return]

    with pytest.raises(DeveloperError) as caught:
        call(promiser)
    assert str(caught.value).startswith(reason)
    assert "hunter2" not in str(caught.value)


def test_a_value_that_json_cannot_hold_is_reported_before_its_type_is_checked() -> None:
    @tool
    def promiser() -> Total:
        return object()  # type: ignore[return-value]

    with pytest.raises(DeveloperError, match=r"^JSON cannot carry what the function returned \(object\): "):
        call(promiser)


@pytest.mark.parametrize(
    ("promised", "value", "plain"),
    [
        (date, date(2026, 7, 28), "2026-07-28"),
        (UUID, UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (Colour, Colour.RED, "red"),
        (Literal["red", "blue"], "red", "red"),
        (Annotated[str, Field(max_length=3)], "red", "red"),
        (date | int, date(2026, 7, 28), "2026-07-28"),
    ],
)
def test_a_value_that_is_text_only_in_json_satisfies_its_structured_type(
    promised: Any,  # noqa: ANN401 - an annotation
    value: object,
    plain: str,
) -> None:
    def promiser():  # type: ignore[no-untyped-def]  # noqa: ANN202 - the next line says it
        """Promise."""
        return value

    promiser.__annotations__["return"] = promised
    expected = {"content": [{"type": "text", "text": f'"{plain}"'}], "structuredContent": plain, "isError": False}
    assert call(tool(promiser)) == expected


@pytest.mark.parametrize(
    ("returns", "promised", "values"),
    [
        (None, False, [None, 1]),
        (Any, False, [None, 1, [], {"a": None}, Total(total=1)]),
        (object, False, [None, 1, [], {"a": None}, Total(total=1)]),
        (int | None, False, [None, 1]),
        (dict[str, Any] | None, False, [None, {"a": 1}]),
        (Total | None, False, [None, Total(total=1)]),
        (int | list[int], True, [1, [1]]),
        (list[Any], True, [[], [None]]),
        (dict[str, Any], True, [{}, {"a": None}]),
        (Annotated[int | None, "how many, where that is known"], True, [None, 1]),
        (RootModel[int | None], True, [RootModel[int | None](None), None, 1]),
    ],
)
def test_a_result_matches_the_schema_in_the_list_of_tools(
    returns: Any,  # noqa: ANN401 - an annotation
    values: list[object],
    *,
    promised: bool,
) -> None:
    def returner(which: int):  # type: ignore[no-untyped-def]  # noqa: ANN202 - the next line says it
        return values[which]

    returner.__annotations__["return"] = returns
    handler = tool(returner)
    described = handler.describe()
    assert ("outputSchema" in described) == promised
    for which in range(len(values)):
        result = call(handler, {"which": which})
        # If there is an output schema, "servers MUST provide structured results that conform to this schema".
        if promised:
            Draft202012Validator(described["outputSchema"]).validate(result["structuredContent"])


@pytest.mark.parametrize("function", [anything, any_object, untyped, nothing])
def test_a_function_without_a_return_type_may_return_anything(function: Callable[..., Any]) -> None:
    def returner(which: int):  # type: ignore[no-untyped-def]  # noqa: ANN202 - the next line says it
        return [None, "text", Text("content"), [Text("a list")], CallToolResult(["all of it"])][which]

    returner.__annotations__ |= {"return": function.__annotations__.get("return")}
    told = [call(tool(returner), {"which": which}) for which in range(5)]
    assert all("structuredContent" not in result and not result["isError"] for result in told)
    assert [[block["text"] for block in result["content"]] for result in told] == [
        [],
        ["text"],
        ["content"],
        ["a list"],
        ["all of it"],
    ]


def test_a_field_may_have_the_name_of_a_member_of_content() -> None:
    @dataclass
    class Transfer:
        wire: bool = True

    @tool
    def transfer() -> list[Transfer]:
        return [Transfer()]

    assert transfer.describe()["outputSchema"]["type"] == "array"
    assert call(transfer)["structuredContent"] == [{"wire": True}]


def test_a_failed_result_need_not_match_the_return_type() -> None:
    @tool
    def promiser() -> Total:
        return CallToolResult(["no"], is_error=True)  # type: ignore[return-value]

    assert call(promiser)["isError"] is True


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ({"which": {"action": "decline"}}, "The user declined to answer: Which Nice?"),
        ({"which": {"action": "cancel"}}, "The user dismissed without answering: Which Nice?"),
    ],
)
def test_an_uncaught_refusal_is_reported_to_the_model(response: dict[str, Any], expected: str) -> None:
    result = talk(where_is, response, arguments={"city": "Nice"})
    assert (result["isError"], text(result)) == (True, expected)


def test_a_tool_that_asks_goes_on_with_the_answer() -> None:
    result = talk(where_is, {"which": accept(name="Nice")}, arguments={"city": "Nice", "country": "FR"})
    assert text(result) == "Nice, FR"


@pytest.mark.parametrize(("action", "kind"), [("decline", Declined), ("cancel", Cancelled)])
def test_a_refusal_can_be_caught(action: str, kind: type[NotAnswered]) -> None:
    @tool
    def patient(*, elicit: Elicit) -> str:
        try:
            elicit("which", "Which?", City)
        except NotAnswered as refusal:
            return f"{type(refusal).__name__} {refusal.key}"
        return "answered"

    assert text(talk(patient, {"which": {"action": action}})) == f"{kind.__name__} which"


def test_a_question_in_the_signature_is_asked_before_the_function_runs() -> None:
    ran = []

    @tool
    def visit(country: str, *, city: Annotated[City, Ask("Where in {country}?")]) -> str:
        ran.append(country)
        return city.name

    assert visit.needs_state
    assert list(visit.describe()["inputSchema"]["properties"]) == ["country"]
    round_ = Round()
    with pytest.raises(InputRequired):
        call(visit, {"country": "France"}, round_)
    asked: Any = round_.requests["city"]
    assert asked["params"]["message"] == "Where in France?"
    assert ran == []
    assert text(talk(visit, {"city": accept(name="Nice")}, arguments={"country": "France"})) == "Nice"


def test_a_question_in_the_signature_may_use_defaults_of_arguments() -> None:
    @tool
    def visit(country: str = "France", *, city: Annotated[City, Ask("Where in {country}?")]) -> str:
        return f"{city.name}, {country}"

    assert text(talk(visit, {"city": accept(name="Nice")})) == "Nice, France"


def test_a_question_that_may_be_declined_gives_none() -> None:
    @tool
    def visit(*, city: Annotated[City | None, Ask("Where?")]) -> str:
        return "nowhere" if city is None else city.name

    assert text(talk(visit, {"city": {"action": "decline"}})) == "nowhere"
    assert text(talk(visit, {"city": accept(name="Nice")})) == "Nice"


def test_the_forms_and_keys_of_a_signature_have_the_tools_case() -> None:
    class Zip(BaseModel):
        zip_code: str

    @tool(camel_case=True)
    def visit(*, post_office: Annotated[Zip, Ask("Where?")]) -> str:
        return post_office.zip_code

    assert text(talk(visit, {"postOffice": accept(zipCode="06000")})) == "06000"


def test_a_bare_except_does_not_keep_a_round_from_ending() -> None:
    @tool
    def greedy(*, elicit: Elicit) -> str:
        try:
            return elicit("which", "Which?", City).name
        except:  # noqa: E722 - as a careless author writes
            return "swallowed"

    round_ = Round()
    call(greedy, round_=round_)
    assert round_.input_required  # the server looks at this before it looks at the result


def test_an_async_function_is_a_handler_too() -> None:
    @tool
    async def slow(*, elicit: Elicit) -> str:
        return elicit("which", "Which?", City).name

    assert text(talk(slow, {"which": accept(name="Nice")})) == "Nice"


def test_a_low_level_function_ends_its_round_by_its_return_value() -> None:
    @tool
    def low(*, responses: InputResponses, state: RequestState[Draft]) -> str | InputRequiredResult:
        if "roots" not in responses:
            return InputRequiredResult({"roots": ListRootsRequest()}, Draft(step=state.value.step + 1))
        return f"{state.value.step} {responses['roots']['roots'][0]['uri']}"

    assert text(talk(low, {"roots": {"roots": [{"uri": "file:///a"}]}})) == "1 file:///a"


def test_a_tool_that_may_not_ask_cannot_end_a_round() -> None:
    @tool
    def sly() -> str | InputRequiredResult:
        return InputRequiredResult({"roots": ListRootsRequest()})

    with pytest.raises(DeveloperError, match="to ask, it takes an InputResponses after"):
        call(sly)


def t_nothing() -> str: ...  # type: ignore[empty-body]
def t_elicit(*, elicit: Elicit) -> str: ...  # type: ignore[empty-body]
def t_ask(*, city: Annotated[City, Ask("Where?")]) -> str: ...  # type: ignore[empty-body]
def t_sample(*, sample: Sample) -> str: ...  # type: ignore[empty-body]
def t_roots(*, roots: ListRoots) -> str: ...  # type: ignore[empty-body]
def t_step(*, step: Step) -> str: ...  # type: ignore[empty-body]
def t_low(*, responses: InputResponses) -> str: ...  # type: ignore[empty-body]
def t_state(*, state: RequestState[Draft]) -> str: ...  # type: ignore[empty-body]
def t_report(*, progress: Progress, log: Log) -> str: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("function", "asks"),
    [
        (t_nothing, False),
        (t_report, False),
        *((function, True) for function in (t_elicit, t_ask, t_sample, t_roots, t_step, t_low, t_state)),
    ],
)
def test_a_signature_says_whether_its_lambda_needs_the_key(function: Callable[..., str], asks: bool) -> None:  # noqa: FBT001
    assert tool(function).needs_state is asks
    assert prompt(function).needs_state is asks
    assert resource("a://b")(function).needs_state is asks


# Signatures that are refused, and the error messages.

CONTRACT = "Elicit, Step, Sample, ListRoots, InputResponses, RequestState, Progress, Log, Caller"
NAMES = "every parameter needs a name (no *args, no /) and a type, which the client is told"


def e_untyped(x) -> str: ...  # type: ignore[empty-body, no-untyped-def]  # noqa: ANN001
def e_args(*xs: int) -> str: ...  # type: ignore[empty-body]
def e_kwargs(**xs: int) -> str: ...  # type: ignore[empty-body]
def e_positional(x: int, /) -> str: ...  # type: ignore[empty-body]
def e_opaque(x: Callable[[], int]) -> str: ...  # type: ignore[empty-body]
def e_before(elicit: Elicit) -> str: ...  # type: ignore[empty-body]
def e_before_state(state: RequestState[Draft]) -> str: ...  # type: ignore[empty-body]
def e_before_ask(city: Annotated[City, Ask("Where?")]) -> str: ...  # type: ignore[empty-body]
def e_after(*, x: int) -> str: ...  # type: ignore[empty-body]
def e_after_untyped(*, x) -> str: ...  # type: ignore[empty-body, no-untyped-def]  # noqa: ANN001
def e_levels(*, elicit: Elicit, responses: InputResponses) -> str: ...  # type: ignore[empty-body]
def e_state(*, state: RequestState) -> str: ...  # type: ignore[empty-body, type-arg]
def e_form(*, city: Annotated[dict[str, City], Ask("Where?")]) -> str: ...  # type: ignore[empty-body]
def e_unknown(x: "Nowhere") -> str: ...  # type: ignore[empty-body, name-defined]  # noqa: F821
def e_returns() -> Callable[[], int]: ...  # type: ignore[empty-body]
def e_header(x: Annotated[float, Header("X")]) -> str: ...  # type: ignore[empty-body]
def e_headers(x: Annotated[str, Header("X")], y: Annotated[str, Header("x")]) -> str: ...  # type: ignore[empty-body]
def e_header_name(x: Annotated[str, Header("a b")]) -> str: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (e_untyped, f"parameter 'x': {NAMES}"),
        (e_args, f"parameter 'xs': {NAMES}"),
        (e_kwargs, f"parameter 'xs': {NAMES}"),
        (e_positional, f"parameter 'x': {NAMES}"),
        (e_opaque, "parameter 'x': collections.abc.Callable[[], int] cannot be written as JSON"),
        (e_before, "elicit: a capability is a parameter after *, as in (…, *, elicit)"),
        (e_before_state, "state: a capability is a parameter after *, as in (…, *, state)"),
        (e_before_ask, "city: a question to the user is a parameter after *"),
        (e_after, f"x: after * a function takes capabilities ({CONTRACT}); what the client sends is before"),
        (e_after_untyped, f"x: after * a function takes capabilities ({CONTRACT}); what the client sends is before"),
        (e_levels, "InputResponses and RequestState are the low level: a function that uses them does not ask inline"),
        (e_state, "state: RequestState needs its model in brackets, as in RequestState[Draft]"),
        (
            e_form,
            "parameter 'city': city: a form holds strings, numbers, booleans and choices; nothing nested",
        ),
        (e_unknown, "parameter 'x': name 'Nowhere' is not defined"),
        (e_returns, "collections.abc.Callable[[], int] cannot be written as JSON"),
        (e_header, "x-mcp-header on 'x': only strings, integers and booleans may be repeated in a header"),
        (e_headers, "x-mcp-header names must be unique, and may only stand on properties reached through `properties`"),
        (e_header_name, "x-mcp-header on 'x' must be an RFC 9110 token"),
    ],
)
def test_an_invalid_signature_is_refused_with_place_and_fix(function: Callable[..., Any], reason: str) -> None:
    code = function.__code__
    with pytest.raises(TypeError) as caught:
        tool(function)
    place = f"{code.co_filename}:{code.co_firstlineno}: {function.__name__}(): "
    assert (
        str(caught.value)
        .removeprefix(place)
        .replace("tests.handlers.test_handlers", "test_handlers")
        .startswith(reason)
    )
    assert str(caught.value).startswith(place)


def test_a_state_that_cannot_begin_empty_is_refused() -> None:
    class Full(BaseModel):
        x: int

    def stateful(*, state: RequestState[Full]) -> str: ...  # type: ignore[empty-body]

    with pytest.raises(TypeError, match="stateful"):
        tool(stateful)


def test_a_question_with_a_form_that_no_client_can_show_is_refused() -> None:
    class Nested(BaseModel):
        city: City

    def asking(*, nested: Annotated[Nested, Ask("Where?")]) -> str: ...  # type: ignore[empty-body]

    with pytest.raises(TypeError, match=r"Nested.city: a form holds strings"):
        tool(asking)


@pytest.mark.parametrize("name", ["has space", "ż", "x" * 129, "a/b"])
def test_a_name_must_fit_in_a_header(name: str) -> None:
    with pytest.raises(TypeError, match=r"must be 1 to 128 of A-Z a-z 0-9 _ - \."):
        tool(name=name)(t_nothing)


@pytest.mark.parametrize(
    ("decorate", "name"),
    [(tool, "tool"), (prompt, "prompt"), (lambda **options: resource("a://b", **options), "resource")],
)
def test_an_unknown_option_is_refused_in_the_name_of_the_decorator(decorate: Any, name: str) -> None:  # noqa: ANN401
    with pytest.raises(TypeError) as refused:
        decorate(colour="red")(t_nothing)
    assert str(refused.value).endswith(f": t_nothing(): @{name} got an unexpected keyword argument 'colour'")


def test_a_list_in_the_place_of_a_return_type_is_refused_by_what_is_written() -> None:
    def numbers() -> [int]:  # type: ignore[valid-type, misc]
        return [1]

    with pytest.raises(TypeError, match=r"numbers\(\): \[<class 'int'>\] cannot be written as JSON"):
        tool(numbers)


class Callme:
    def __call__(self) -> str:
        return "x"


@pytest.mark.parametrize("thing", [Callme, "x", print, [].append, functools.partial(print)])
def test_only_what_is_written_with_def_is_a_handler(thing: Any) -> None:  # noqa: ANN401
    with pytest.raises(TypeError, match="a handler is a function written with def, a method of an object"):
        tool(thing)


def test_a_custom_schema_is_published_and_enforced() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "$defs": {"x": {}}, "required": ["n"]}

    @tool(input_schema=schema)
    def raw(arguments: dict[str, Any]) -> str:
        return str(arguments["n"])

    assert raw.describe()["inputSchema"] == schema
    assert text(call(raw, {"n": 7})) == "7"
    assert run(raw, {"n": "x"})["isError"] is True


# Prompts


@prompt(title="Brief")
def briefing(topic: Annotated[str, "What about"], minutes: int = 5, tone: Literal["dry", "warm"] = "dry") -> str:
    """Write a briefing."""
    return f"{topic} {minutes + 1} {tone}"


def test_a_prompt_is_described_with_its_arguments() -> None:
    assert briefing.describe() == {
        "name": "briefing",
        "title": "Brief",
        "description": "Write a briefing.",
        "arguments": [
            {"name": "topic", "description": "What about", "required": True},
            {"name": "minutes", "required": False},
            {"name": "tone", "required": False},
        ],
    }


def test_a_prompts_arguments_are_text_and_are_read_by_their_types() -> None:
    assert call(briefing, {"topic": "5", "minutes": "9"}) == {
        "description": "Write a briefing.",
        "messages": [{"role": "user", "content": {"type": "text", "text": "5 10 dry"}}],
    }


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "Argument 'topic': it is missing"),
        ({"topic": "x", "minutes": "many"}, "Argument 'minutes': must be an integer"),
        ({"topic": "x", "tone": "hunter2"}, 'Argument \'tone\': must be one of "dry", "warm"'),
        ({"topic": "x", "more": ""}, "Unknown argument 'more'; known are: minutes, tone, topic"),
    ],
)
def test_invalid_arguments_of_a_prompt_are_invalid_params(arguments: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        run(briefing, arguments)
    assert (caught.value.code, caught.value.message) == (-32602, reason)


@pytest.mark.parametrize("failure", [ToolError("Nobody there"), Declined("k", "Nobody there")])
def test_a_prompt_that_fails_states_the_reason(failure: Exception) -> None:
    @prompt
    def failing() -> str:
        raise failure

    with pytest.raises(HandlerError, match="Nobody there"):
        run(failing)


# Resources


@resource("config://app", name="config", mime_type="application/json", size=7, ttl_ms=1000, cache_scope="public")
def config() -> dict[str, int]:
    """Read the configuration."""
    return {"a": 1}


@resource("tickets://{project}/{number}", title="Ticket", annotations={"audience": ["user"]})
def ticket(project: str, number: int) -> str:
    """Read a ticket."""
    return f"{project} {number + 1}"


def test_a_resource_is_described_by_its_uri() -> None:
    assert config.describe() == {
        "uri": "config://app",
        "name": "config",
        "description": "Read the configuration.",
        "mimeType": "application/json",
        "size": 7,
    }


def test_a_template_is_described_by_its_uri_template() -> None:
    assert ticket.describe() == {
        "uriTemplate": "tickets://{project}/{number}",
        "name": "ticket",
        "title": "Ticket",
        "description": "Read a ticket.",
        "annotations": {"audience": ["user"]},
    }


def test_a_resource_is_read_with_its_cache_lifetime() -> None:
    assert config.call({"uri": "config://app"}, Round()) == {
        "contents": [{"uri": "config://app", "mimeType": "application/json", "text": '{"a":1}'}],
        "ttlMs": 1000,
        "cacheScope": "public",
    }


def test_a_template_is_read_with_the_variables_of_the_uri_and_is_private_by_default() -> None:
    assert ticket.call({"uri": "tickets://A%2FB/16"}, Round()) == {
        "contents": [{"uri": "tickets://A%2FB/16", "mimeType": "text/plain", "text": "A/B 17"}],
        "ttlMs": 0,
        "cacheScope": "private",
    }


def test_an_invalid_variable_is_invalid_params() -> None:
    with pytest.raises(InvalidParams, match="Argument 'number': must be an integer"):
        run_round(ticket, {"uri": "tickets://A/x"}, Round())


def test_camel_case_is_for_forms_and_never_for_a_templates_variables() -> None:
    class Reason(BaseModel):
        why_now: str

    @resource("items://{item_id}", camel_case=True)
    def item(item_id: int, *, elicit: Elicit) -> str:
        return f"{item_id} {elicit('why', 'Why?', Reason).why_now}"

    round_ = Round(RoundRequest(camel_case=True))
    with pytest.raises(InputRequired):
        item.call({"uri": "items://7"}, round_)
    answered = Round(
        RoundRequest(responses={"why": accept(whyNow="now")}, camel_case=True),
        asked=round_.questions.open_fingerprints(),
    )
    assert item.call({"uri": "items://7"}, answered)["contents"][0]["text"] == "7 now"


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("a://{y}", r"its parameters before \* must be the variables of 'a://{y}': \['y'\], not \['x'\]"),
        ("a://{x}/{y}", r"its parameters before \* must be the variables of 'a://{x}/{y}': \['x', 'y'\], not \['x'\]"),
        ("a://b", r"its parameters before \* must be the variables of 'a://b': \[\], not \['x'\]"),
        ("a://{x*}", r"only {name} and {\+name} can be matched back from a URI"),
        ("a://{x}{x}", "uses a variable twice"),
    ],
)
def test_a_templates_variables_are_the_functions_parameters(uri: str, reason: str) -> None:
    def one(x: str) -> str:
        return x

    with pytest.raises(TypeError, match=reason):
        resource(uri)(one)


# Completion


def test_the_declared_completer_completes_an_argument() -> None:
    @prompt
    def greet(language: str, name: str = "") -> str:
        return f"{language} {name}"

    @greet.complete("language")
    def languages(value: str, arguments: Mapping[str, str]) -> list[str]:
        return [known for known in ("polish", "portuguese", arguments.get("name", "")) if known.startswith(value)]

    assert greet.has_completers
    assert greet.find_completions("language", "po", {"name": "pod"}) == {
        "completion": {"values": ["polish", "portuguese", "pod"], "total": 3, "hasMore": False}
    }
    assert greet.find_completions("name", "x", {}) == {"completion": {"values": [], "total": 0, "hasMore": False}}
    assert languages("pol", {}) == ["polish"]
    with pytest.raises(InvalidParams, match="names no argument of this reference"):
        greet.find_completions("colour", "x", {})


def test_a_hundred_completions_are_sent_and_the_rest_is_counted() -> None:
    @ticket.complete("project")
    def projects(_value: str, _arguments: Mapping[str, str]) -> list[str]:
        return [str(number) for number in range(101)]

    found = ticket.find_completions("project", "", {})["completion"]
    assert (len(found["values"]), found["total"], found["hasMore"]) == (100, 101, True)
    assert projects("", {})[100] == "100"


class Tone(Enum):
    MILD = "mild"


def test_numbers_and_choices_complete_as_their_text() -> None:
    assert completions([3, 0.5, Tone.MILD, "x"]) == ["3", "0.5", "mild", "x"]


@pytest.mark.parametrize(
    ("completed", "named"),
    [
        ("abc", "returned str"),
        ({"a": 1}, "returned dict"),
        (mcp_types.Completion(values=["a"]), "holds tuple"),
        ([mcp_types.TextContent(type="text", text="a")], "holds mcp_types._types.TextContent"),
        ([b"a"], "holds bytes"),
        ([None], "holds NoneType"),
        ([True], "holds bool"),
    ],
)
def test_only_text_is_offered_as_a_completion(completed: Any, named: str) -> None:  # noqa: ANN401
    with pytest.raises(DeveloperError, match=f"a completer returns a list of texts, and this one {named}$"):
        completions(completed)


def completions(completed: Any) -> list[str]:  # noqa: ANN401
    @prompt
    def offering(tone: str) -> str:
        return tone

    offering.complete("tone")(lambda _value, _arguments: completed)
    values: list[str] = offering.find_completions("tone", "", {})["completion"]["values"]
    return values


def test_only_an_argument_can_be_completed() -> None:
    with pytest.raises(TypeError, match="briefing has no argument 'x' to complete; it has: topic, minutes, tone"):
        briefing.complete("x")


def test_models_as_arguments_are_checked_by_pydantic() -> None:
    class Range(BaseModel):
        low: int = Field(ge=0)

    @tool
    def pick(within: Range) -> str:
        return str(within.low)

    assert text(call(pick, {"within": {"low": 3}})) == "3"
    assert text(run(pick, {"within": {"low": -3}})) == "Argument 'within': low should be greater than or equal to 0"
