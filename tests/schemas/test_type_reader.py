"""A type is read in the same way by our readers and by pydantic."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import InitVar, dataclass, field
from datetime import date, datetime
from enum import Enum, Flag, IntEnum, StrEnum
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NotRequired,
    Required,
    TypedDict,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

import annotated_types as limits
import pydantic
import pytest
import typing_extensions
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from typing_extensions import ReadOnly

from mcp_functions.protocol import json_reader, json_writer
from mcp_functions.schemas.json_types import Number
from mcp_functions.schemas.parameters import to_camel_case
from mcp_functions.schemas.type_reader import read_type

pytestmark = pytest.mark.filterwarnings("ignore:Item 'e' on TypedDict class 'Note' is using the `ReadOnly` qualifier")

EXACT = 2**53
integers = st.integers(-EXACT, EXACT)
scalars: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=5),
    int: integers,
    float: integers | st.floats(-EXACT, EXACT),
    bool: st.booleans(),
    type(None): st.none(),
}
values = st.recursive(
    st.one_of(*scalars.values()) | st.sampled_from(["", "1", "true", "a", 0, 1, True, False, 1.5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


class Colour(StrEnum):
    """A colour."""

    RED = "red"
    GREEN = "green"


class Level(IntEnum):
    LOW = 1
    HIGH = 2
    TOP = 2


class Mixed(Enum):
    ONE = 1
    TEXT = "1"


@dataclass
class Spot:
    """A spot."""

    x: int
    tags: list[Colour] = field(default_factory=lambda: [Colour.GREEN])
    day: date | None = None
    colour: Colour = Colour.RED
    since: date = date(2026, 7, 28)

    def __post_init__(self) -> None:
        if self.x == 0:
            message = "must not be the origin"
            raise ValueError(message)
        assert self.x != 1, "nor beside it"
        self.seen = self.x


@dataclass(frozen=True, slots=True)
class Leg:
    to: Annotated[str, limits.MinLen(1)]
    price: float = 1.5


@dataclass(kw_only=True)
class Trip(Spot):
    legs: list[Leg]
    best: Leg | None = Leg("Ely")


@dataclass(init=False)
class Own:
    x: int
    y: int = 2

    def __init__(self) -> None:
        """Take nothing: an instance is made by its fields."""


class Part(typing_extensions.TypedDict, total=False):
    """A part."""

    a: Required[int]
    b: str


class Note(Part):
    c: NotRequired[date]
    d: Annotated[Leg, "Where to"]
    e: ReadOnly[Annotated[NotRequired[datetime], "When"]]


DAYS = ["2026-07-28", "2026-02-29", "20260728", "2026-W01-1", "2026-209", "0000-01-01", "2026-7-8", "2026-07-28 "]
TIMES = ["10:00", "10:00:00", "10:00:00.5", "10:00:00,123456789", "24:00", "10", "10:00:60", "1000", "10:00:00."]
OFFSETS = ["", "Z", "z", "+02:00", "-0030", "\u221223:59", "+24:00", "+02", "+02:60", "+02:00:30", " Z"]
LEGS = st.fixed_dictionaries({"to": st.text(max_size=2)}, optional={"price": st.sampled_from([1, 2.5, "1"])})
NOTES = st.fixed_dictionaries(
    {"d": LEGS},
    optional={"a": integers, "b": st.text(max_size=2) | st.none(), "c": st.sampled_from(DAYS), "z": st.none()},
)
SPOT = {
    "day": st.sampled_from([*DAYS, None]),
    "colour": st.sampled_from(["red", "blue"]),
    "tags": st.lists(st.sampled_from(["red", "blue"]), max_size=2),
    "z": st.none(),
}
RECORDS: dict[Any, st.SearchStrategy[Any]] = {
    Spot: st.fixed_dictionaries({"x": st.integers(-1, 3)}, optional=SPOT),
    Leg: LEGS,
    Trip: st.fixed_dictionaries(
        {"x": st.integers(1, 3), "legs": st.lists(LEGS, max_size=2)},
        optional={"best": LEGS | st.none(), **SPOT},
    ),
    Own: st.fixed_dictionaries({}, optional={"x": integers, "y": integers}),
    Part: st.fixed_dictionaries({}, optional={"a": integers, "b": st.text(max_size=2), "z": st.none()}),
    Note: NOTES,
}
CLASSES: dict[Any, st.SearchStrategy[Any]] = {
    Colour: st.sampled_from(["red", "green", "RED"]),
    Level: st.sampled_from([1, 2, 3, "1"]),
    Mixed: st.sampled_from([1, "1", 2]),
    date: st.dates().map(str) | st.sampled_from(DAYS),
    datetime: (
        st.datetimes(timezones=st.none() | st.timezones()).map(lambda moment: moment.isoformat(timespec="microseconds"))
        | st.tuples(*map(st.sampled_from, (DAYS[:2], "Tt _X", TIMES, OFFSETS))).map("".join)
    ),
    **RECORDS,
    Annotated[int, limits.Ge(1), limits.Lt(4)]: st.integers(0, 5),
    Annotated[float, "A part", limits.Interval(gt=0, le=1)]: st.sampled_from([0, 0.5, 1, 1.5]),
    Annotated[str, limits.Len(1, 2)]: st.text(max_size=3),
    Annotated[list[int], limits.MinLen(1)]: st.lists(integers, max_size=2),
    Annotated[dict[str, date], limits.MaxLen(1)]: st.dictionaries(st.text(max_size=2), st.just(DAYS[0]), max_size=2),
}  # fmt: skip


def literal(choices: list[Any]) -> Any:  # noqa: ANN401 - an annotation
    return Literal.__getitem__(tuple(choices))


def union(members: list[Any]) -> Any:  # noqa: ANN401 - an annotation
    return Union.__getitem__(tuple(members))


def typed(choices: list[Any]) -> st.SearchStrategy[Any]:
    """Draw annotations that are read natively, their literals made of `choices`."""
    literals = st.lists(st.sampled_from(choices), min_size=1, max_size=4).map(literal)
    return st.recursive(
        st.sampled_from([*scalars, Any, object, list, dict]) | literals | st.sampled_from([*CLASSES]),
        lambda inner: (
            st.lists(inner, min_size=1, max_size=3).map(union)
            | inner.map(lambda item: list[item])  # type: ignore[valid-type]
            | inner.map(lambda member: dict[str, member])  # type: ignore[valid-type]
        ),
        max_leaves=4,
    )


def fitting(annotation: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401 - an annotation
    """Draw values that the annotation should accept."""
    origin, args = get_origin(annotation), get_args(annotation)
    if annotation in (known := {**scalars, **CLASSES}):
        return known[annotation]
    if origin is Literal:
        return st.sampled_from(args)
    if origin is Union:
        return st.one_of(*map(fitting, args))
    if origin is list:
        return st.lists(fitting(args[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(st.text(max_size=3), fitting(args[1]), max_size=3)
    return values


def pairs(choices: list[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    """Pair an annotation with a value that fits it, or perhaps does not."""
    return typed(choices).flatmap(lambda annotation: st.tuples(st.just(annotation), fitting(annotation) | values))


PLAIN = ["a", "b", "", "1", 2, -3, None]
CONFUSED = [*PLAIN, 0, 1, True, False]  # to pydantic, true is 1 in a Literal


def shown(value: Any) -> str:  # noqa: ANN401 - what an annotation allows
    """Write a value with its types, and equal moments alike in whatever time zone."""
    if isinstance(value, list):
        return str([*map(shown, value)])
    if isinstance(value, dict):
        return str({name: shown(member) for name, member in value.items()})
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)] + [*getattr(value, "__dict__", ())]
        return f"{type(value)} {[(name, shown(getattr(value, name))) for name in names]}"
    return f"datetime {value.isoformat()}" if isinstance(value, datetime) else repr(value)


def pydantic_reads(annotation: Any, value: object) -> str | None:  # noqa: ANN401 - an annotation
    try:
        return shown(TypeAdapter(annotation).validate_json(json_writer.dumps(value), strict=True))
    except ValidationError:
        return None


def native_reads(annotation: Any, value: object) -> str | None:  # noqa: ANN401 - an annotation
    try:
        return shown(read_type(annotation).read(value))
    except ValueError:
        return None


@example((int, True))
@example((bool, 0))
@example((float, 1))
@example((int, 1.0))
@example((list[int] | list[float], [1, 2.5]))
@example((dict[str, int], {"a": True}))
@example((bool | int, 1))
@settings(max_examples=200)
@given(pairs(PLAIN))
def test_the_native_check_and_pydantic_agree(pair: tuple[Any, Any]) -> None:
    annotation, value = pair[0], json_reader.loads(json.dumps(pair[1]))  # a number without a fraction is an int
    assert native_reads(annotation, value) == pydantic_reads(annotation, value)


@settings(max_examples=200)
@given(pairs(CONFUSED))
def test_a_schema_accepts_what_the_check_accepts(pair: tuple[Any, Any]) -> None:
    annotation, value = pair[0], json_reader.loads(json.dumps(pair[1]))
    schema = read_type(annotation).schema
    Draft202012Validator.check_schema(schema)
    accepted, valid = native_reads(annotation, value) is not None, Draft202012Validator(schema).is_valid(value)
    assert valid or not accepted
    assert accepted or not valid or '"format"' in json.dumps(schema)  # which `jsonschema` does not look at
    official = TypeAdapter(annotation).json_schema() if annotation is not object else {}
    assert Draft202012Validator(official).is_valid(value) is Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(("annotation", "value"), [(Literal[1], True), (Literal[True], 1), (Literal[0, "a"], False)])
def test_where_pydantic_takes_true_for_1_the_native_check_keeps_to_the_schema(annotation: Any, value: Any) -> None:  # noqa: ANN401
    assert pydantic_reads(annotation, value) is not None
    assert not Draft202012Validator(TypeAdapter(annotation).json_schema()).is_valid(value)
    assert native_reads(annotation, value) is None


def inlined(schema: Any, definitions: dict[str, Any]) -> Any:  # noqa: ANN401 - a part of a schema
    """Write a schema of pydantic's without references, and without the titles that it makes of names."""
    if isinstance(schema, list):
        return [inlined(part, definitions) for part in schema]
    if not isinstance(schema, dict):
        return schema
    target = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else {}
    parts = {**target, **schema}
    return {name: inlined(part, definitions) for name, part in parts.items() if name not in ("$defs", "$ref", "title")}


@pytest.mark.parametrize("annotation", [Colour, Mixed, Spot, Leg, Trip, Part, list[Leg], Leg | None])
def test_a_class_has_the_schema_that_pydantic_writes(annotation: Any) -> None:  # noqa: ANN401
    official = TypeAdapter(annotation).json_schema()
    assert read_type(annotation).schema == inlined(official, official.get("$defs", {}))


def test_a_string_describes_a_member() -> None:
    properties = read_type(Note).schema["properties"]
    assert [name for name, schema in properties.items() if schema.get("description")] == ["d", "e"]
    assert properties["e"] == {"type": "string", "format": "date-time", "description": "When"}


class Plain(TypedDict):
    town: str
    since: NotRequired[date]


def test_a_typed_dict_of_typing_is_read_on_every_python() -> None:
    found = read_type(Plain)
    assert found.read({"town": "Ely", "since": "2026-07-28", "z": 1}) == {"town": "Ely", "since": date(2026, 7, 28)}
    assert found.schema["required"] == ["town"]


@dataclass
class Waiting:
    x: int
    later: InitVar[int] = 3
    y: int = field(init=False, default=4)


@dataclass
class Tree:
    x: int
    left: Tree | None = None


Member = TypeVar("Member")


@dataclass
class Box(Generic[Member]):
    inside: Member


@dataclass
class Rule:
    x: int

    @pydantic.field_validator("x")
    @classmethod
    def double(cls, x: int) -> int:
        return 2 * x


@pydantic.dataclasses.dataclass
class Alias:
    x: int = Field(alias="y")


class Forgiving(StrEnum):
    RED = "red"

    @classmethod
    def _missing_(cls, _value: object) -> Forgiving:
        return cls.RED


class Bits(Flag):
    ONE = 1


class Closed(typing_extensions.TypedDict, closed=True):
    x: int


class Half:
    """Reads half of what came."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, handler: Any) -> Any:  # noqa: ANN401
        return pydantic.AfterValidator(lambda x: x // 2).__get_pydantic_core_schema__(int, handler)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Waiting, {"x": 1, "later": 2}),
        (Waiting, {"x": 1, "y": 5}),
        (Tree, {"x": 1, "left": {"x": 2}}),
        (Tree, {"x": 1, "left": {"x": "2"}}),
        (Box[int], {"inside": 1}),
        (Box[int], {"inside": "1"}),
        (Rule, {"x": 1}),
        (Alias, {"y": 1}),
        (Forgiving, "blue"),
        (Bits, 1),
        (Closed, {"x": 1, "y": 2}),
        (Half, 4),
        (Annotated[int, Half()], 4),
        (list[Half | None], [4, None]),
        (Spot | Leg, {"x": 5, "to": "Ely"}),
        (str | date, "2026-07-28"),
        (date | str, "2026-07-28"),
        (Colour | str, "red"),
        (union([float, Any]), 1),
        (Annotated[int, limits.MultipleOf(2)], 3),
        (Annotated[date, limits.Ge(date(2026, 7, 28))], "2026-07-27"),
        (Annotated[int, limits.Ge(3), limits.Ge(1)], 2),
        (Annotated[int | None, limits.Ge(1)], 0),
    ],
)
def test_a_class_with_a_special_rule_is_read_by_pydantic(annotation: Any, value: object) -> None:  # noqa: ANN401
    assert native_reads(annotation, value) == pydantic_reads(annotation, value)


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Number, {"type": "number"}),
        (Any, {}),
        (list, {"type": "array"}),
        (list[Any], {"type": "array"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (dict, {"type": "object"}),
        (
            dict[str, list[int]],
            {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}},
        ),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (Annotated[str, "A town"], {"type": "string", "description": "A town"}),
        (Annotated[str | None, "A town"], {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "A town"}),
        (Annotated[int, Field(ge=1, le=9)], {"type": "integer", "minimum": 1, "maximum": 9}),
    ],
)
def test_a_type_is_written_as_a_schema(annotation: Any, schema: dict[str, Any]) -> None:  # noqa: ANN401
    assert read_type(type(None) if annotation is None else annotation).schema == schema


@pytest.mark.parametrize("annotation", [Annotated[str, "A town"], Annotated[str, Field(description="A town")]])
def test_a_description_is_known_however_it_was_written(annotation: Any) -> None:  # noqa: ANN401
    found = read_type(annotation)
    assert found.schema["description"] == "A town"


class Point(BaseModel):
    x: int
    y: int = 0


def test_pydantic_reads_other_types() -> None:
    assert read_type(Point).read({"x": 1}) == Point(x=1)
    assert read_type(date).read("2026-07-28") == date(2026, 7, 28)
    assert read_type(list[Point]).read([{"x": 1, "y": 2}]) == [Point(x=1, y=2)]


@pytest.mark.parametrize("value", [{"x": "1"}, {"x": 1.5}, {}, [], "x", None])
def test_a_models_check_is_strict(value: object) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_type(Point).read(value)


@pytest.mark.parametrize(
    ("annotation", "value", "reason"),
    [
        (str, 5, "must be a string"),
        (int, "5", "must be an integer"),
        (int, True, "must be an integer"),
        (float, "x", "must be a number"),
        (Literal["a", "b"], "c", 'must be one of "a", "b"'),
        (list[int], "x", "must be an array"),
        (list[int], [1, "x"], "item 1 must be an integer"),
        (dict[str, int], {"hunter2": "x"}, "a value must be an integer"),
        (str | None, 5, "must be a string or must be a null"),
        (Point, {"x": "hunter2"}, "x should be a valid integer"),
        (Colour, "hunter2", 'must be one of "red", "green"'),
        (date, "hunter2", "must be a date, such as 2026-07-28"),
        (datetime, "hunter2", "must be a date and a time, such as 2026-07-28T09:30:00Z"),
        (Spot, "hunter2", "must be an object"),
        (Trip, {"x": 2}, "legs is missing"),
        (Trip, {"x": 2, "legs": [{"to": "Ely", "price": "hunter2"}]}, "legs item 0 price must be a number"),
        (Spot, {"x": 0}, "must not be the origin"),
        (Annotated[int, limits.Le(4)], 5, "must be at most 4"),
        (Annotated[str, limits.MaxLen(4)], "hunter2", "must have at most 4 characters"),
        (Annotated[int, Field(ge=1)], 0, "should be greater than or equal to 1"),
    ],
)
def test_a_refusal_names_place_and_reason_but_not_the_value(annotation: Any, value: object, reason: str) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match=r"\w") as caught:
        read_type(annotation).read(value)
    assert str(caught.value) == reason
    assert "hunter2" not in repr(caught.value.__cause__)


class Opaque:
    """A class that cannot become JSON."""


@pytest.mark.parametrize("annotation", [Opaque, list[Opaque], Opaque | None])
def test_a_type_that_json_cannot_carry_is_named(annotation: Any) -> None:  # noqa: ANN401
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        read_type(annotation)


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (str, "5", "5"),
        (str, "null", "null"),
        (int, "5", 5),
        (int, "5.0", 5),
        (float, "1.5", 1.5),
        (bool, "true", True),
        (int | None, "null", None),
        (str | int, "5", "5"),
        (Literal["1", "2"], "1", "1"),
        (Literal[1, 2], "1", 1),
        (date, "2026-07-28", date(2026, 7, 28)),
        (Annotated[int, Field(ge=1)], "7", 7),
    ],
)
def test_text_is_read_as_the_type_says(annotation: Any, text: str, value: object) -> None:  # noqa: ANN401
    read = read_type(annotation).read_text(text)
    assert (type(read), read) == (type(value), value)


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (int, "five"),
        (int, "1.5"),
        (int, ""),
        (bool, "True"),
        (bool, "1"),
        (int, "NaN"),
        (dict, "{}"),
        (list, "[]"),
        (int, '"5"'),
    ],
)
def test_text_that_is_no_value_of_the_type_is_refused(annotation: Any, text: str) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match="must be"):
        read_type(annotation).read_text(text)


@pytest.mark.parametrize(
    ("name", "wire"),
    [("work_item_id", "workItemId"), ("x", "x"), ("from_", "from"), ("a1_b2", "a1B2"), ("aB_c", "aBC")],
)
def test_a_name_in_camel_case(name: str, wire: str) -> None:
    assert to_camel_case(name) == wire
