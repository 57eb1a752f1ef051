"""Signatures that the decorators refuse: the error names the file, the line and the function, and says what is wrong.

The functions at the top have one mistake each, which their names describe. They are decorated in the tests. (The module
has no `from __future__ import annotations`, because the decorators must find types in the annotations, and not text.)
"""

import functools
import sys
from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, Field

from mcp_functions import Ask, Elicit, Shared, prompt, resource, tool
from mcp_functions.annotated import Header
from mcp_functions.low_level import InputResponses, RequestState


class City(BaseModel):
    name: str


class Draft(BaseModel):
    step: int = 0


class Nested(BaseModel):
    city: City


class Full(BaseModel):
    step: int


class NeverCopied:
    """A class whose objects cannot be copied, and so cannot be defaults."""

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, _memo: object) -> None:
        message = "never"
        raise RuntimeError(message)


# Parameters and return types


def no_type(x) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001
def args(*xs: int) -> None: ...
def kwargs(**xs: int) -> None: ...
def positional_only(x: int, /) -> None: ...
def type_outside_json(x: Callable[[], int]) -> None: ...
def unknown_type(x: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821
def result_outside_json() -> Callable[[], int]: ...  # type: ignore[empty-body]
def list_as_return_type() -> [int]: ...  # type: ignore[valid-type, misc]
def float_header(x: Annotated[float, Header("X")]) -> None: ...
def same_header(x: Annotated[str, Header("X")], y: Annotated[str, Header("x")]) -> None: ...
def header_with_space(x: Annotated[str, Header("a b")]) -> None: ...


# Capabilities


def capability_before_star(elicit: Elicit) -> None: ...
def state_before_star(state: RequestState[Draft]) -> None: ...
def question_before_star(city: Annotated[City, Ask("Where?")]) -> None: ...
def shared_before_star(cache: Annotated[int, Shared(dict)]) -> None: ...
def shared_number(*, cache: Annotated[int, Shared(7)]) -> None: ...
def argument_after_star(*, x: int) -> None: ...
def untyped_after_star(*, x) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001
def default_after_star(*, x: bool = False) -> None: ...
def untyped_default_after_star(*, x=False) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001
def field_after_star(*, x: bool = Field(default=False)) -> None: ...
def annotated_after_star(*, x: Annotated[bool, Field(default=False)]) -> None: ...
def two_levels(*, elicit: Elicit, responses: InputResponses) -> None: ...
def state_without_model(*, state: RequestState) -> None: ...  # type: ignore[type-arg]
def state_without_beginning(*, state: RequestState[Full]) -> None: ...
def form_of_a_dict(*, city: Annotated[dict[str, City], Ask("Where?")]) -> None: ...
def nested_form(*, x: Annotated[Nested, Ask("Where?")]) -> None: ...


# Options of Field


def alias_choices(x: str = Field(validation_alias=AliasChoices("a", "b"))) -> None: ...
def alias_path(x: str = Field(validation_alias=AliasPath("a", "b"))) -> None: ...
def serialization_alias(x: str = Field(serialization_alias="y")) -> None: ...
def exclude(x: str = Field(exclude=True)) -> None: ...
def init(x: str = Field(init=False)) -> None: ...
def frozen(x: Annotated[str, Field(frozen=True)]) -> None: ...
def factory_of_data(x: list[str] = Field(default_factory=lambda data: [*data])) -> None: ...  # noqa: B008
def two_defaults(x: Annotated[int, Field(default=1)] = 2) -> None: ...
def default_and_factory(x: Annotated[int, Field(default_factory=int)] = Field(2)) -> None: ...
def default_inside_type(x: Annotated[int, Field(default=1)] | None) -> None: ...
def alias_inside_type(x: list[Annotated[int, Field(alias="y")]]) -> None: ...
def alias_of_another(y: str, x: str = Field(alias="y")) -> None: ...
def look_around(x: str = Field(pattern="(?=a)")) -> None: ...
def invalid_default(x: date = Field("soon", validate_default=True)) -> None: ...  # noqa: B008
def uncopied_default(x: Any = NeverCopied()) -> None: ...  # noqa: ANN401, B008


NAME_AND_TYPE = "every parameter needs a name (no *args, no /) and a type, which the client is told"
AFTER_STAR = (
    "x: after * a function takes capabilities (Elicit, Step, Sample, ListRoots, InputResponses, RequestState, Progress,"
    " Log, Caller); what the client sends is before"
)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (no_type, f"parameter 'x': {NAME_AND_TYPE}"),
        (args, f"parameter 'xs': {NAME_AND_TYPE}"),
        (kwargs, f"parameter 'xs': {NAME_AND_TYPE}"),
        (positional_only, f"parameter 'x': {NAME_AND_TYPE}"),
        (type_outside_json, "parameter 'x': collections.abc.Callable[[], int] cannot be written as JSON"),
        (unknown_type, "an annotation cannot be read: name 'Nowhere' is not defined"),
        (result_outside_json, "collections.abc.Callable[[], int] cannot be written as JSON"),
        (list_as_return_type, "[<class 'int'>] cannot be written as JSON"),
        (float_header, "x-mcp-header on 'x': only strings, integers and booleans may be repeated in a header"),
        (same_header, "x-mcp-header names must be unique, and two properties have"),
        (header_with_space, "x-mcp-header on 'x' must be an RFC 9110 token"),
        (capability_before_star, "elicit: a capability is a parameter after *, as in (…, *, elicit)"),
        (state_before_star, "state: a capability is a parameter after *, as in (…, *, state)"),
        (question_before_star, "city: a question to the user is a parameter after *"),
        (shared_before_star, "cache: a shared value is a parameter after *"),
        (shared_number, "cache: Shared takes a function"),
        (argument_after_star, AFTER_STAR),
        (untyped_after_star, AFTER_STAR),
        (default_after_star, AFTER_STAR),
        (untyped_default_after_star, AFTER_STAR),
        (field_after_star, AFTER_STAR),
        (annotated_after_star, AFTER_STAR),
        (
            two_levels,
            "InputResponses and RequestState are the low level: a function that uses them does not ask",
        ),
        (state_without_model, "state: RequestState needs its model in brackets, as in RequestState[Draft]"),
        (state_without_beginning, "state"),
        (form_of_a_dict, "parameter 'city': city: a form holds strings, numbers, booleans and choices; nothing nested"),
        (nested_form, "Nested.city: a form holds strings"),
        (alias_choices, "parameter 'x': an argument has one name, and not AliasChoices"),
        (alias_path, "parameter 'x': an argument has one name, and not AliasPath"),
        (serialization_alias, "Field(serialization_alias=…) names what is written, and a parameter is only read"),
        (exclude, "Field(exclude=…) means nothing for a parameter"),
        (init, "Field(init=…) means nothing for a parameter"),
        (frozen, "Field(frozen=…) means nothing for a parameter"),
        (factory_of_data, "its default_factory takes the validated data, and a parameter knows no other parameter"),
        (two_defaults, "parameter 'x': it has two defaults: write one"),
        (default_and_factory, "parameter 'x': it has two defaults: write one"),
        (default_inside_type, "a default inside a type means nothing: write it on the parameter itself"),
        (alias_inside_type, "The 'alias' attribute with value 'y' was provided to the `Field"),
        (alias_of_another, "have the same name on the wire, 'y': rename one"),
        (look_around, "look-around"),
        (invalid_default, "Input should be a valid date"),
        (uncopied_default, "its default cannot be copied for each call: never"),
    ],
)
def test_an_invalid_signature_is_refused_with_place_and_reason(function: Callable[..., Any], reason: str) -> None:
    with pytest.raises(TypeError) as error:
        tool(function)
    code = function.__code__
    assert str(error.value).startswith(f"{code.co_filename}:{code.co_firstlineno}: {function.__name__}(): ")
    assert reason in str(error.value)


class PlaceDict(TypedDict):
    towns: set[str]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic reads typing.TypedDict from Python 3.12 on")
def test_a_typed_dict_that_pydantic_cannot_read_is_refused_with_its_hint() -> None:
    def visit(place: PlaceDict) -> None: ...

    with pytest.raises(TypeError, match=r"parameter 'place': .*Please use `typing_extensions.TypedDict`"):
        tool(visit)


# Names, options and objects


def no_mistake() -> None: ...


@pytest.mark.parametrize("name", ["has space", "ż", "x" * 129, "a/b"])
def test_a_name_must_fit_in_a_header(name: str) -> None:
    with pytest.raises(TypeError, match=r"must be 1 to 128 of A-Z a-z 0-9 _ - \."):
        tool(name=name)(no_mistake)


@pytest.mark.parametrize(
    ("decorate", "name"),
    [(tool, "tool"), (prompt, "prompt"), (functools.partial(resource, "a://b"), "resource")],
    ids=["tool", "prompt", "resource"],
)
def test_an_unknown_option_is_refused_in_the_name_of_the_decorator(decorate: Any, name: str) -> None:  # noqa: ANN401
    with pytest.raises(TypeError) as error:
        decorate(colour="red")(no_mistake)
    assert str(error.value).endswith(f": no_mistake(): @{name} got an unexpected keyword argument 'colour'")


class CallableClass:
    def __call__(self) -> str:
        return "x"


@pytest.mark.parametrize("value", [CallableClass, "x", print, [].append, functools.partial(print)])
def test_only_what_is_written_with_def_is_a_handler(value: Any) -> None:  # noqa: ANN401
    with pytest.raises(TypeError, match="a handler is a function written with def, a method of an object"):
        tool(value)


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
def test_the_parameters_of_a_template_are_its_variables(uri: str, reason: str) -> None:
    def read(x: str) -> str:
        return x

    with pytest.raises(TypeError, match=reason):
        resource(uri)(read)
