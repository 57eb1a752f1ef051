"""A tool's parameters: what `tools/list` publishes of them, and the values that the function gets.

The functions here are written as authors write them: with `Field` of pydantic, defaults and annotations. A call goes
over the wire, as JSON.

(This module has no `from __future__ import annotations`, because the decorators must find types in the annotations, and
not text.)
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest
from pydantic import BaseModel, BeforeValidator, Field, StringConstraints

import mcp_functions
from mcp_functions import low_level, prompt, resource, tool
from mcp_functions.annotated import Header, Number
from mcp_functions.handlers import injection
from mcp_functions.handlers.base import Handler
from mcp_functions.protocol.wire_types import Schema
from mcp_functions.rounds import capabilities
from tests.support.conversations import talk_to

DESCRIPTION = "The folder"


class Colour(StrEnum):
    RED = "red"


class Place(BaseModel):
    town: str = "Ely"


def call_text(handler: Handler[..., Any], **arguments: object) -> str:
    """Call a tool as a client does. Return the text of the result, which may be that of an error."""
    return talk_to(handler).call(**arguments).text


def published_schema(handler: Handler[..., Any]) -> Schema:
    return handler.describe()["inputSchema"]


# Field: three ways to write the same parameters


@tool
def delete(path: str = Field(description=DESCRIPTION), force: bool = Field(default=False)) -> str:  # noqa: FBT001
    return f"{path} {force!r}"


@tool
def delete_annotated(
    path: Annotated[str, Field(description=DESCRIPTION)],
    force: Annotated[bool, Field(default=False)],
) -> str:
    return f"{path} {force!r}"


@tool
def delete_ellipsis(path: str = Field(..., description=DESCRIPTION), force: bool = Field(False)) -> str:  # noqa: FBT001, FBT003
    return f"{path} {force!r}"


every_delete = pytest.mark.parametrize("handler", [delete, delete_annotated, delete_ellipsis])


@every_delete
def test_a_field_without_a_default_is_a_required_argument(handler: Handler[..., Any]) -> None:
    assert published_schema(handler)["required"] == ["path"]
    assert published_schema(handler)["properties"]["path"] == {"type": "string", "description": DESCRIPTION}
    assert call_text(handler, force=True) == "Argument 'path': it is missing"


@every_delete
def test_the_default_of_a_field_is_published_and_used(handler: Handler[..., Any]) -> None:
    assert published_schema(handler)["properties"]["force"] == {"type": "boolean", "default": False}
    assert call_text(handler, path="/x") == "/x False"
    assert call_text(handler, path="/x", force=True) == "/x True"


def test_a_direct_call_uses_the_default_of_a_field() -> None:
    assert delete("/x") == "/x False"
    assert delete(path="/x") == "/x False"


def test_a_direct_call_without_a_required_argument_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="missing required argument: 'path'"):
        delete(force=True)


def test_an_ellipsis_as_default_means_required() -> None:
    @tool
    def look(path: str = ...) -> str:  # type: ignore[assignment]
        return path

    assert published_schema(look)["required"] == ["path"]
    assert call_text(look) == "Argument 'path': it is missing"


# Field: limits, aliases and factories


@tool
def order(
    count: int = Field(1, ge=1, le=9),
    code: Annotated[str, Field(pattern="^[A-Z]+$", max_length=3)] = "A",
    both: Annotated[int, Field(ge=1)] = Field(5, le=9, title="Both", examples=[3], deprecated=True),
) -> str:
    return f"{count} {code} {both}"


def test_limits_are_published_wherever_the_field_is_written() -> None:
    properties = published_schema(order)["properties"]
    described = {"title": "Both", "examples": [3], "deprecated": True}
    assert properties["count"] == {"type": "integer", "minimum": 1, "maximum": 9, "default": 1}
    assert properties["code"] == {"type": "string", "pattern": "^[A-Z]+$", "maxLength": 3, "default": "A"}
    assert properties["both"] == {"type": "integer", "minimum": 1, "maximum": 9, "default": 5, **described}


def test_limits_are_enforced_and_values_are_never_converted() -> None:
    assert call_text(order) == "1 A 5"
    assert call_text(order, count=10) == "Argument 'count': must be at most 9"
    assert call_text(order, both=0) == "Argument 'both': must be at least 1"
    assert call_text(order, count="3") == "Argument 'count': must be an integer"


def test_a_default_factory_makes_a_default_for_every_call() -> None:
    numbers = iter(range(9))

    @tool
    def draw(number: int = Field(default_factory=lambda: next(numbers))) -> str:
        return str(number)

    assert published_schema(draw)["properties"] == {"number": {"type": "integer"}}
    assert "required" not in published_schema(draw)
    assert [call_text(draw), call_text(draw), call_text(draw, number=7), draw()] == ["0", "1", "7", "2"]


def test_a_validated_default_is_the_result_of_its_validator() -> None:
    @tool
    def on(day: date = Field("2026-07-28", validate_default=True)) -> str:  # noqa: B008
        return type(day).__name__

    assert published_schema(on)["properties"]["day"]["default"] == "2026-07-28"
    assert call_text(on) == "date"


@pytest.mark.parametrize("camel_case", [False, True])
def test_an_alias_is_the_name_on_the_wire(*, camel_case: bool) -> None:
    @tool(camel_case=camel_case)
    def find(from_town: str = Field(alias="from"), to: str = Field("Ely", validation_alias="to-town")) -> str:
        return f"{from_town} {to}"

    assert published_schema(find)["required"] == ["from"]
    assert list(published_schema(find)["properties"]) == ["from", "to-town"]
    assert call_text(find, **{"from": "Ely", "to-town": "Wells"}) == "Ely Wells"
    assert call_text(find, from_town="Ely") == "Unknown argument 'from_town'; known are: from, to-town"


def test_an_alias_and_a_header_may_be_combined() -> None:
    @tool
    def find(town: Annotated[str, Header("Town"), Field(alias="city")]) -> str:
        return town

    assert published_schema(find)["properties"] == {"city": {"type": "string", "x-mcp-header": "Town"}}


@prompt
def write(
    to: str = Field(alias="whom", description="Who reads it", title="To"),
    copies: int = Field(1, le=3),
    tags: list[str] = Field(default_factory=list),  # noqa: B008
) -> str:
    return f"{to} {copies!r} {tags}"


def test_a_prompt_publishes_its_fields() -> None:
    to, copies, tags = write.describe()["arguments"]
    assert to == {"name": "whom", "title": "To", "description": "Who reads it", "required": True}
    assert not copies["required"]
    assert not tags["required"]


def test_a_prompt_enforces_its_fields() -> None:
    assert talk_to(write).get(whom="Ann").text == "Ann 1 []"
    assert talk_to(write).get(whom="Ann", copies="3").text == "Ann 3 []"
    assert "must be at most 3" in talk_to(write).get(whom="Ann", copies="4").error["message"]
    assert "'whom': it is missing" in talk_to(write).get(copies="2").error["message"]


def test_the_variable_of_a_template_may_have_an_alias_and_limits() -> None:
    @resource("towns://{class}/{number}")
    def town(kind: str = Field(alias="class"), number: float = Field(gt=0)) -> str:
        return f"{kind} {number!r}"

    assert talk_to(town).read("towns://port/1").text == "port 1.0"
    assert "must be more than 0" in talk_to(town).read("towns://port/0").error["message"]


# Defaults


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
    """Return the arguments, and then change each of them."""
    before = repr([names, counts, place.town, spot.tags, sorted(marks), pairs])
    names.append("x")
    counts["a"].append(1)
    place.town = "Wells"
    spot.tags.append("x")
    marks.add(1)
    pairs[0].append(1)
    return before


def test_a_default_is_fresh_in_every_call() -> None:
    fresh = "[[], {'a': []}, 'Ely', [], [], ([],)]"
    assert [call_text(collect), call_text(collect), collect(), collect()] == [fresh] * 4
    assert published_schema(collect)["properties"]["names"]["default"] == []


def test_an_immutable_default_is_not_copied() -> None:
    absent = object()

    @tool
    def look(x: Any = absent, y: str | None = None) -> str:  # noqa: ANN401
        return f"{x is absent} {y}"

    assert call_text(look) == "True None"
    assert look() == "True None"


class Level(IntEnum):
    LOW = 1


class Range(NamedTuple):
    low: int
    high: int = 9


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


DEFAULTS_IN_JSON: dict[str, object] = {
    "a": [], "b": {}, "c": "/x", "d": "2026-07-28", "e": "red", "f": [1, "x"], "g": {"town": "Bath"},
    "h": [{"town": "Ely"}], "i": "1.50", "j": ["a", "b", "c"], "k": [1, 9], "m": 1.5, "n": 1, "o": "red", "p": None,
    "q": {"tags": ["x"]}, "r": {"1": "x"},
}  # fmt: skip


def test_the_schema_shows_every_default_as_a_client_would_send_it() -> None:
    schema = published_schema(many)
    assert "required" not in schema
    assert {name: member["default"] for name, member in schema["properties"].items()} == DEFAULTS_IN_JSON


def test_every_published_default_is_a_valid_argument() -> None:
    assert call_text(many, **DEFAULTS_IN_JSON) == call_text(many)


# Floats


def test_a_float_argument_is_a_float_in_every_json_notation() -> None:
    class Price(BaseModel):
        amount: float

    @tool
    def pay(  # noqa: PLR0913, PLR0917 - one of each kind
        one: float,
        several: list[float],
        named: dict[str, float],
        optional: float | None,
        mixed: float | str,
        limited: Annotated[float, Field(ge=0)],
        price: Price,
        pair: tuple[float, float],
        described: float = Field(description="How much"),
    ) -> str:
        return repr([one, several, named, optional, mixed, limited, price.amount, pair, described])

    scalars = {"one": 1, "optional": 1, "mixed": 1, "limited": 1, "described": 1.0}
    nested = {"several": [1, 2.5], "named": {"a": 1}, "price": {"amount": 1}, "pair": [1, 2]}
    floats = "[1.0, [1.0, 2.5], {'a': 1.0}, 1.0, 1.0, 1.0, 1.0, (1.0, 2.0), 1.0]"
    assert call_text(pay, **scalars, **nested) == floats


def test_the_default_of_a_float_is_a_float() -> None:
    @tool
    def pay(amount: float = 5, either: Number = 5) -> str:
        return repr([amount, either])

    assert call_text(pay) == "[5.0, 5]"


def test_a_number_keeps_the_type_in_which_it_arrived() -> None:
    @tool
    def pay(a: int | float, b: Number, c: float | int | None, d: list[int | float]) -> str:  # noqa: PYI041
        return repr([a, b, c, d])

    assert call_text(pay, a=1, b=2, c=3, d=[4, 5.5]) == "[1, 2, 3, [4, 5.5]]"
    assert call_text(pay, a=1.5, b=2.5, c=None, d=[]) == "[1.5, 2.5, None, []]"


def test_a_float_variable_of_a_template_is_a_float() -> None:
    @resource("prices://{amount}")
    def price(amount: float) -> str:
        return repr(amount)

    assert talk_to(price).read("prices://1").text == "1.0"


def test_a_returned_integer_is_sent_unchanged_where_a_float_is_declared() -> None:
    @tool
    def total() -> float:
        return 3

    _event, response = talk_to(total).call().rounds[-1]
    assert '"structuredContent":3,' in response["body"]


# How a function is read


def test_an_authors_validator_may_change_a_value() -> None:
    def split(value: object) -> object:
        return set(value.split(",")) if isinstance(value, str) else value

    @tool
    def tag(
        names: Annotated[set[str], BeforeValidator(split, json_schema_input_type=str | set[str])],
        code: Annotated[str, StringConstraints(to_upper=True)],
    ) -> str:
        return f"{sorted(names)} {code}"

    assert call_text(tag, names="b,a", code="x") == "['a', 'b'] X"


def test_the_error_for_a_misplaced_parameter_lists_every_capability() -> None:
    public = [getattr(module, name) for module in (mcp_functions, low_level) for name in module.__all__]
    capability_names = {value.__name__ for value in public if is_capability(value)}
    assert set(injection.CAPABILITY_NAMES.split(", ")) == capability_names


def is_capability(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, capabilities.Capability)


def test_a_decorated_function_has_the_parameters_of_the_original_function() -> None:
    def twice(function: Callable[..., str]) -> Callable[..., str]:
        @functools.wraps(function)
        def call_twice(*args: object, **kwargs: object) -> str:
            return function(*args, **kwargs) * 2

        return call_twice

    @tool
    @twice
    def greet(name: str, mark: str = "!") -> str:
        return name + mark

    assert call_text(greet, name="Ely") == "Ely!Ely!"
    assert call_text(greet) == "Argument 'name': it is missing"
