"""Signatures are read as pydantic reads them, and held to the schema that is published of them.

No `from __future__ import annotations` here: the functions below are read as an author writes them.
"""

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, BeforeValidator, Field, StringConstraints

import mcp_functions
from mcp_functions import Ask, Header, Number, prompt, resource, serve, tool
from mcp_functions.handlers import injection, signatures
from mcp_functions.handlers.base import FunctionHandler, Handler
from mcp_functions.rounds import capabilities
from mcp_functions.schemas.parameters import docstring
from tests.support import wire

TOLD = "The folder"


class Colour(StrEnum):
    RED = "red"


class Place(BaseModel):
    town: str = "Ely"


def ask(handler: Handler[..., Any], method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Send one request, as an event, and return the response's result or error."""
    response = serve(handler)(wire.event(wire.message(method, params)), wire.Context())
    message = wire.read(response, method)
    result: dict[str, Any] = message.get("result") or message["error"]
    return result


def call(handler: Handler[..., Any], **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON is any value
    return ask(handler, "tools/call", {"name": handler.name, "arguments": arguments})


def answer(handler: Handler[..., Any], **arguments: Any) -> Any:  # noqa: ANN401 - as above
    result = call(handler, **arguments)
    assert not result.get("isError"), result
    return result.get("structuredContent", result["content"][0]["text"])


def refusal(handler: Handler[..., Any], **arguments: Any) -> str:  # noqa: ANN401 - as above
    result = call(handler, **arguments)
    assert result["isError"], result
    return str(result["content"][0]["text"])


def schema(handler: Handler[..., Any]) -> dict[str, Any]:
    (listed,) = ask(handler, "tools/list", {})["tools"]
    found: dict[str, Any] = listed["inputSchema"]
    return found


# ---- Field


@tool
def delete(path: str = Field(description=TOLD), force: bool = Field(default=False)) -> str:  # noqa: FBT001
    return f"{path} {force!r}"


@tool
def delete_annotated(
    path: Annotated[str, Field(description=TOLD)],
    force: Annotated[bool, Field(default=False)],
) -> str:
    return f"{path} {force!r}"


@tool
def delete_ellipsis(path: str = Field(..., description=TOLD), force: bool = Field(False)) -> str:  # noqa: FBT001, FBT003
    return f"{path} {force!r}"


@pytest.mark.parametrize("handler", [delete, delete_annotated, delete_ellipsis])
def test_a_field_declares_required_arguments_and_defaults(handler: Handler[..., Any]) -> None:
    found = schema(handler)
    assert found["required"] == ["path"]
    assert found["properties"]["path"] == {"type": "string", "description": TOLD}
    assert found["properties"]["force"] == {"type": "boolean", "default": False}
    assert answer(handler, path="/x") == "/x False"
    assert answer(handler, path="/x", force=True) == "/x True"
    assert refusal(handler, force=True) == "Argument 'path': it is missing"


@pytest.mark.parametrize("handler", [delete, delete_annotated])
def test_a_direct_call_gets_the_fields_defaults(handler: FunctionHandler[..., Any]) -> None:
    assert handler("/x", force=False) == "/x False"
    if handler is delete:
        assert handler("/x") == handler(path="/x") == "/x False"
        with pytest.raises(TypeError, match="missing required argument: 'path'"):
            handler(force=True)


def test_an_ellipsis_means_required() -> None:
    @tool
    def look(path: str = ...) -> str:  # type: ignore[assignment]
        return path

    assert schema(look)["required"] == ["path"]
    assert refusal(look) == "Argument 'path': it is missing"


def test_limits_are_published_and_enforced_wherever_the_field_is_written() -> None:
    @tool
    def order(
        count: int = Field(1, ge=1, le=9),
        code: Annotated[str, Field(pattern="^[A-Z]+$", max_length=3)] = "A",
        both: Annotated[int, Field(ge=1)] = Field(5, le=9, title="Both", examples=[3], deprecated=True),
    ) -> str:
        return f"{count} {code} {both}"

    found = schema(order)["properties"]
    assert found["count"] == {"type": "integer", "minimum": 1, "maximum": 9, "default": 1}
    assert found["code"] == {"type": "string", "pattern": "^[A-Z]+$", "maxLength": 3, "default": "A"}
    said = {"title": "Both", "examples": [3], "deprecated": True, "default": 5}
    assert found["both"] == {"type": "integer", "minimum": 1, "maximum": 9, **said}
    assert answer(order) == "1 A 5"
    assert refusal(order, count=10) == "Argument 'count': must be at most 9"
    assert refusal(order, both=0) == "Argument 'both': should be greater than or equal to 1"
    assert refusal(order, count="3") == "Argument 'count': must be an integer"  # never coerced


def test_a_default_factory_makes_a_default_for_every_call() -> None:
    made = iter(range(9))

    @tool
    def draw(number: int = Field(default_factory=lambda: next(made))) -> str:
        return str(number)

    assert schema(draw) == {
        "type": "object",
        "properties": {"number": {"type": "integer"}},
        "additionalProperties": False,
    }
    assert [answer(draw), answer(draw), answer(draw, number=7), draw()] == ["0", "1", "7", "2"]


def test_a_validated_default_is_the_validators_result() -> None:
    @tool
    def on(day: date = Field("2026-07-28", validate_default=True)) -> str:  # noqa: B008
        return type(day).__name__

    assert schema(on)["properties"]["day"]["default"] == "2026-07-28"
    assert answer(on) == "date"


@pytest.mark.parametrize("camel_case", [False, True])
def test_an_alias_is_the_name_on_the_wire(camel_case: bool) -> None:  # noqa: FBT001
    @tool(camel_case=camel_case)
    def find(from_town: str = Field(alias="from"), to: str = Field("Ely", validation_alias="to-town")) -> str:
        return f"{from_town} {to}"

    assert schema(find)["required"] == ["from"]
    assert list(schema(find)["properties"]) == ["from", "to-town"]
    assert answer(find, **{"from": "Ely", "to-town": "Wells"}) == "Ely Wells"
    assert refusal(find, from_town="Ely") == "Unknown argument 'from_town'; known are: from, to-town"


def test_an_alias_and_a_header_may_be_combined() -> None:
    @tool
    def find(town: Annotated[str, Header("Town"), Field(alias="city")]) -> str:
        return town

    assert schema(find)["properties"] == {"city": {"type": "string", "x-mcp-header": "Town"}}


def test_a_prompt_reads_fields_too() -> None:
    @prompt
    def write(
        to: str = Field(alias="whom", description="Who reads it", title="To"),
        copies: int = Field(1, le=3),
        tags: list[str] = Field(default_factory=list),  # noqa: B008
    ) -> str:
        return f"{to} {copies!r} {tags}"

    (listed,) = ask(write, "prompts/list", {})["prompts"]
    assert listed["arguments"][0] == {"name": "whom", "title": "To", "description": "Who reads it", "required": True}
    assert [argument["required"] for argument in listed["arguments"]] == [True, False, False]

    def text(**arguments: str) -> str:
        result = ask(write, "prompts/get", {"name": "write", "arguments": arguments})
        return str(result.get("message") or result["messages"][0]["content"]["text"])

    assert text(whom="Ann") == "Ann 1 []"
    assert text(whom="Ann", copies="3") == "Ann 3 []"
    assert "must be at most 3" in text(whom="Ann", copies="4")
    assert "'whom': it is missing" in text(copies="2")


def test_the_variable_of_a_template_may_be_an_alias_and_has_limits() -> None:
    @resource("towns://{class}/{number}")
    def town(kind: str = Field(alias="class"), number: float = Field(gt=0)) -> str:
        return f"{kind} {number!r}"

    def read(uri: str) -> str:
        result = ask(town, "resources/read", {"uri": uri})
        return str(result.get("message") or result["contents"][0]["text"])

    assert read("towns://port/1") == "port 1.0"
    assert "must be more than 0" in read("towns://port/0")


def after_field(path: str, *, force: bool = Field(default=False)) -> str: ...  # type: ignore[empty-body]
def after_annotated(*, force: Annotated[bool, Field(default=False)]) -> str: ...  # type: ignore[empty-body]
def after_plain(*, force: bool = False) -> str: ...  # type: ignore[empty-body]
def after_untyped(*, force=False) -> str: ...  # type: ignore[empty-body, no-untyped-def]  # noqa: ANN001


@pytest.mark.parametrize("function", [after_field, after_annotated, after_plain, after_untyped])
def test_a_keyword_only_parameter_that_is_no_capability_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"force.*: after \* a function takes capabilities"):
        tool(function)


class Plain(TypedDict):
    towns: set[str]


class Stubborn:
    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, _known: object) -> None:
        message = "never"
        raise RuntimeError(message)


def r_choices(x: str = Field(validation_alias=AliasChoices("a", "b"))) -> str: ...  # type: ignore[empty-body]
def r_path(x: str = Field(validation_alias=AliasPath("a", "b"))) -> str: ...  # type: ignore[empty-body]
def r_serialization(x: str = Field(serialization_alias="y")) -> str: ...  # type: ignore[empty-body]
def r_exclude(x: str = Field(exclude=True)) -> str: ...  # type: ignore[empty-body]
def r_init(x: str = Field(init=False)) -> str: ...  # type: ignore[empty-body]
def r_frozen(x: Annotated[str, Field(frozen=True)]) -> str: ...  # type: ignore[empty-body]
def r_factory(x: list[str] = Field(default_factory=lambda data: [*data])) -> str: ...  # type: ignore[empty-body]  # noqa: B008
def r_twice(x: Annotated[int, Field(default=1)] = 2) -> str: ...  # type: ignore[empty-body]
def r_twice_made(x: Annotated[int, Field(default_factory=int)] = Field(2)) -> str: ...  # type: ignore[empty-body]
def r_inside(x: Annotated[int, Field(default=1)] | None) -> str: ...  # type: ignore[empty-body]
def r_inside_alias(x: list[Annotated[int, Field(alias="y")]]) -> str: ...  # type: ignore[empty-body]
def r_same(y: str, x: str = Field(alias="y")) -> str: ...  # type: ignore[empty-body]
def r_look(x: str = Field(pattern="(?=a)")) -> str: ...  # type: ignore[empty-body]
def r_default(x: date = Field("soon", validate_default=True)) -> str: ...  # type: ignore[empty-body]  # noqa: B008
def r_copy(x: Any = Stubborn()) -> str: ...  # type: ignore[empty-body]  # noqa: ANN401, B008
def r_asked(*, x: Annotated[dict[str, str], Ask("?")]) -> str: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (r_choices, "an argument has one name, and not AliasChoices"),
        (r_path, "an argument has one name, and not AliasPath"),
        (r_serialization, r"Field\(serialization_alias=…\) names what is written, and a parameter is only read"),
        (r_exclude, r"Field\(exclude=…\) means nothing for a parameter"),
        (r_init, r"Field\(init=…\) means nothing for a parameter"),
        (r_frozen, r"Field\(frozen=…\) means nothing for a parameter"),
        (r_factory, "its default_factory takes the validated data, and a parameter knows no other parameter"),
        (r_twice, "it has two defaults: write one"),
        (r_twice_made, "it has two defaults: write one"),
        (r_inside, "a default inside a type means nothing: write it on the parameter itself"),
        (r_inside_alias, "The 'alias' attribute with value 'y' was provided to the `Field.*` function, which has no"),
        (r_same, "have the same name on the wire, 'y': rename one"),
        (r_look, "cannot be checked: .*look-around"),
        (r_default, "Input should be a valid date"),
        (r_copy, "its default cannot be copied for each call: never"),
        (r_asked, "x: a form holds"),
    ],
)
def test_an_unsupported_field_option_is_refused_with_file_line_function_and_parameter(
    function: Callable[..., Any], reason: str
) -> None:
    with pytest.raises(TypeError, match=f"(?s){reason}") as caught:
        tool(function)
    code = function.__code__
    assert str(caught.value).startswith(f"{code.co_filename}:{code.co_firstlineno}: {function.__name__}(): parameter")
    assert "'x'" in str(caught.value)


def test_an_unsupported_typed_dict_is_refused_with_pydantics_hint() -> None:
    def visit(place: Plain) -> str: ...  # type: ignore[empty-body]

    if sys.version_info >= (3, 12):
        assert tool(visit)
    else:
        with pytest.raises(TypeError, match=r"parameter 'place': .*Please use `typing_extensions.TypedDict`"):
            tool(visit)


# ---- Defaults


@dataclass
class Spot:
    tags: list[str]


@tool
def collect(  # noqa: PLR0913, PLR0917 - one of each kind
    names: list[str] = [],  # noqa: B006
    counts: dict[str, list[int]] = {"a": []},  # noqa: B006
    place: Place = Place(),  # noqa: B008
    spot: Spot = Spot([]),  # noqa: B008
    marks: set[int] = Field(set()),  # noqa: B008
    pairs: tuple[list[int], ...] = ([],),
) -> str:
    before = [len(names), len(counts["a"]), place.town, len(spot.tags), len(marks), len(pairs[0])]
    names.append("x")
    counts["a"].append(1)
    place.town = "Wells"
    spot.tags.append("x")
    marks.add(1)
    pairs[0].append(1)
    return repr(before)


def test_a_default_is_fresh_in_every_call() -> None:
    fresh = "[0, 0, 'Ely', 0, 0, 0]"
    assert [answer(collect), answer(collect), collect(), collect()] == [fresh] * 4


def test_an_immutable_default_is_not_copied() -> None:
    absent = object()

    @tool
    def look(x: Any = absent, y: str | None = None) -> str:  # noqa: ANN401
        return f"{x is absent} {y}"

    assert answer(look) == look() == "True None"


class Level(IntEnum):
    LOW = 1


class Range(NamedTuple):
    low: int
    high: int = 9


def test_the_schema_shows_every_default_as_a_client_would_send_it() -> None:
    @tool
    def many(  # noqa: PLR0913, PLR0917 - one of each kind
        a: list[str] = [],  # noqa: B006
        b: dict[str, int] = {},  # noqa: B006
        c: Path = Path("/x"),
        d: date = date(2026, 7, 28),
        e: Colour = Colour.RED,
        f: tuple[int, str] = (1, "x"),
        g: Place = Place(town="Bath"),  # noqa: B008
        h: list[Place] = [Place()],  # noqa: B006, B008
        i: Decimal = Decimal("1.50"),
        j: set[str] = {"c", "a", "b"},  # noqa: B006
        k: Range = Range(1),  # noqa: B008
        m: float = 1.5,
        n: Level = Level.LOW,
        o: str = Colour.RED,
        p: int | None = None,
        q: Spot = Spot(["x"]),  # noqa: B008
        r: dict[int, str] = Field({1: "x"}),  # noqa: B008
    ) -> str:
        return repr((a, b, c, d, e, f, g, h, i, sorted(j), k, m, n, str(o), p, q, r))

    found = schema(many)
    assert "required" not in found
    defaults = {name: value["default"] for name, value in found["properties"].items()}
    assert defaults == {
        "a": [], "b": {}, "c": "/x", "d": "2026-07-28", "e": "red", "f": [1, "x"], "g": {"town": "Bath"},
        "h": [{"town": "Ely"}], "i": "1.50", "j": ["a", "b", "c"], "k": [1, 9], "m": 1.5, "n": 1, "o": "red", "p": None,
        "q": {"tags": ["x"]}, "r": {"1": "x"},
    }  # fmt: skip
    assert answer(many, **defaults) == answer(many)  # each of them is an argument, too


def test_a_published_default_is_not_changed_by_a_call() -> None:
    answer(collect)
    assert schema(collect)["properties"]["names"]["default"] == []


# ---- Floats


def test_a_float_argument_is_a_float_in_every_json_notation() -> None:
    class Price(BaseModel):
        amount: float

    @tool
    def pay(  # noqa: PLR0913, PLR0917 - one of each kind
        one: float,
        many: list[float],
        named: dict[str, float],
        perhaps: float | None,
        mixed: float | str,
        limited: Annotated[float, Field(ge=0)],
        price: Price,
        pair: tuple[float, float],
        asked: float = Field(description="How much"),
    ) -> str:
        return repr([one, many, named, perhaps, mixed, limited, price.amount, pair, asked])

    said = "[1.0, [1.0, 2.5], {'a': 1.0}, 1.0, 1.0, 1.0, 1.0, (1.0, 2.0), 1.0]"
    arguments = {"one": 1, "many": [1, 2.5], "named": {"a": 1}, "perhaps": 1, "mixed": 1, "limited": 1, "asked": 1.0}
    assert answer(pay, **arguments, price={"amount": 1}, pair=[1, 2]) == said


def test_a_number_keeps_the_type_in_which_it_arrived() -> None:
    @tool
    def pay(a: int | float, b: Number, c: float | int | None, d: list[int | float]) -> str:  # noqa: PYI041
        return repr([a, b, c, d])

    assert answer(pay, a=1, b=2, c=3, d=[4, 5.5]) == "[1, 2, 3, [4, 5.5]]"
    assert answer(pay, a=1.5, b=2.5, c=None, d=[]) == "[1.5, 2.5, None, []]"


def test_a_float_variable_of_a_template_is_a_float() -> None:
    @resource("prices://{amount}")
    def price(amount: float) -> str:
        return amount.hex()

    assert ask(price, "resources/read", {"uri": "prices://1"})["contents"][0]["text"] == "0x1.0000000000000p+0"


def test_a_returned_float_is_sent_unchanged() -> None:
    @tool
    def total() -> float:
        return 3

    response = serve(total)(wire.event(wire.message("tools/call", {"name": "total"})), wire.Context())
    assert '"structuredContent":3,' in response["body"]


# ---- Validators


def test_an_authors_validator_may_change_a_value() -> None:
    def split(value: object) -> object:
        return set(value.split(",")) if isinstance(value, str) else value

    @tool
    def tag(
        names: Annotated[set[str], BeforeValidator(split)], code: Annotated[str, StringConstraints(to_upper=True)]
    ) -> str:
        return f"{sorted(names)} {code}"

    assert answer(tag, names="b,a", code="x") == "['a', 'b'] X"


# ---- Capabilities


def test_the_refusal_of_a_parameter_names_every_capability() -> None:
    public = {name for name in mcp_functions.__all__ if is_capability(getattr(mcp_functions, name))}
    assert set(injection.CAPABILITIES.split(", ")) == public


def is_capability(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, capabilities.Capability)


def test_the_default_of_a_float_is_a_float_too() -> None:
    @tool
    def pay(amount: float = 5, either: Number = 5) -> str:
        return f"{amount.hex()} {type(either).__name__}"

    assert answer(pay) == f"{(5.0).hex()} int"


# ---- Functions


def described(first: int, second: str = "x", *, third: int, fourth: float = 2.0) -> str:
    """Go there.

        Twice, if need be.

    Or not.
    """
    return f"{first}{second}{third}{fourth}"


def test_a_plain_function_is_read_as_inspect_reads_it() -> None:
    expected = [
        (each.name, ... if each.default is each.empty else each.default)
        for each in inspect.signature(described).parameters.values()
        if each.kind is not each.KEYWORD_ONLY
    ]
    before, after = signatures.list_parameters(described)
    assert [each[:2] for each in before] == expected
    assert after == ["third", "fourth"]
    assert docstring(described) == inspect.getdoc(described)
    assert docstring(call) is None


def test_a_decorated_function_takes_what_the_function_behind_it_takes() -> None:
    def twice(function: Callable[..., str]) -> Callable[..., str]:
        @functools.wraps(function)
        def call_twice(*args: object, **kwargs: object) -> str:
            return function(*args, **kwargs) * 2

        return call_twice

    @tool
    @twice
    def greet(name: str, mark: str = "!") -> str:
        return name + mark

    assert answer(greet, name="Ely") == "Ely!Ely!"
    assert refusal(greet) == "Argument 'name': it is missing"
