"""`read_type` reads simple types without pydantic, exactly as pydantic would, and leaves all other types to pydantic.

Hypothesis draws an annotation and a JSON value; `read_natively` and `read_with_pydantic` read the value and describe
what they made of it.
"""

from __future__ import annotations

import builtins
import dataclasses
import json
import re
import typing
from collections.abc import Iterable
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
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from typing_extensions import ReadOnly

from mcp_functions.protocol import json_reader, json_writer
from mcp_functions.schemas.annotations import Between, Format, Length, Title, Titles
from mcp_functions.schemas.json_types import NeedsPydantic, Number
from mcp_functions.schemas.parameters import to_camel_case
from mcp_functions.schemas.type_reader import read_type, read_without_pydantic

pytestmark = pytest.mark.filterwarnings("ignore:Item 'e' on TypedDict class 'Note' is using the `ReadOnly` qualifier")

LARGEST = 2**53
INTEGERS = st.integers(-LARGEST, LARGEST)
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=5),
    int: INTEGERS,
    float: INTEGERS | st.floats(-LARGEST, LARGEST),
    bool: st.booleans(),
    type(None): st.none(),
}
JSON_VALUES = st.recursive(
    st.one_of(*SCALARS.values()) | st.sampled_from(["", "1", "true", "a", 0, 1, True, False, 1.5]),
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
class NoInit:
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
    optional={"a": INTEGERS, "b": st.text(max_size=2) | st.none(), "c": st.sampled_from(DAYS), "z": st.none()},
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
    NoInit: st.fixed_dictionaries({}, optional={"x": INTEGERS, "y": INTEGERS}),
    Part: st.fixed_dictionaries({}, optional={"a": INTEGERS, "b": st.text(max_size=2), "z": st.none()}),
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
    Annotated[list[int], limits.MinLen(1)]: st.lists(INTEGERS, max_size=2),
    Annotated[dict[str, date], limits.MaxLen(1)]: st.dictionaries(st.text(max_size=2), st.just(DAYS[0]), max_size=2),
}  # fmt: skip


def literal(choices: list[Any]) -> Any:  # noqa: ANN401 - an annotation
    return Literal.__getitem__(tuple(choices))


def union(members: list[Any]) -> Any:  # noqa: ANN401 - an annotation
    return Union.__getitem__(tuple(members))


def types_with(choices: list[Any]) -> st.SearchStrategy[Any]:
    """Draw annotations that are read natively; their literals have some of the choices."""
    literals = st.lists(st.sampled_from(choices), min_size=1, max_size=4).map(literal)
    return st.recursive(
        st.sampled_from([*SCALARS, Any, object, list, dict]) | literals | st.sampled_from([*CLASSES]),
        lambda inner: (
            st.lists(inner, min_size=1, max_size=3).map(union)
            | inner.map(lambda item: list[item])  # type: ignore[valid-type]
            | inner.map(lambda member: dict[str, member])  # type: ignore[valid-type]
        ),
        max_leaves=4,
    )


def values_of(annotation: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401 - an annotation
    """Draw values that the annotation should accept."""
    known = {**SCALARS, **CLASSES}
    if annotation in known:
        return known[annotation]
    arguments = get_args(annotation)
    match get_origin(annotation):
        case typing.Literal:
            return st.sampled_from(arguments)
        case typing.Union:
            return st.one_of(*map(values_of, arguments))
        case builtins.list:
            return st.lists(values_of(arguments[0]), max_size=3)
        case builtins.dict:
            return st.dictionaries(st.text(max_size=3), values_of(arguments[1]), max_size=3)
        case _:
            return JSON_VALUES


@st.composite
def annotations_with_values(draw: st.DrawFn, choices: list[Any]) -> tuple[Any, Any]:
    """Draw an annotation, and a value that fits it or any other value."""
    annotation = draw(types_with(choices))
    value = draw(values_of(annotation) | JSON_VALUES)
    # pydantic reads "1" as a datetime, a second after 1970. The published format, date-time, does not allow it.
    assume("datetime" not in str(annotation) or not re.search(r'"-?[0-9.]+"', json.dumps(value)))
    return annotation, json_reader.loads(json.dumps(value))  # as the gateway reads it: 1.0 is an int


LITERALS = ["a", "b", "", "1", 2, -3, None]
LITERALS_WITH_BOOLEANS = [*LITERALS, 0, 1, True, False]  # pydantic accepts true for 1 in a Literal


def describe(value: Any) -> str:  # noqa: ANN401 - what an annotation allows
    """Describe a value and its types; equal times have one description, in whatever class of time zone."""
    if isinstance(value, list):
        return str([*map(describe, value)])
    if isinstance(value, dict):
        return str({name: describe(member) for name, member in value.items()})
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)] + [*getattr(value, "__dict__", ())]
        return f"{type(value)} {[(name, describe(getattr(value, name))) for name in names]}"
    return f"datetime {value.isoformat()}" if isinstance(value, datetime) else repr(value)


def read_with_pydantic(annotation: Any, value: object) -> str | None:  # noqa: ANN401 - an annotation
    try:
        return describe(TypeAdapter(annotation).validate_json(json_writer.dumps(value), strict=True))
    except ValidationError:
        return None


def read_natively(annotation: Any, value: object) -> str | None:  # noqa: ANN401 - an annotation
    try:
        return describe(read_type(annotation).read(value))
    except ValueError:
        return None


def needs_pydantic(annotation: Any) -> bool:  # noqa: ANN401 - an annotation
    try:
        read_without_pydantic(annotation)
    except NeedsPydantic:
        return True
    return False


@example((int, True))
@example((bool, 0))
@example((float, 1))
@example((int, 1.0))
@example((list[int] | list[float], [1, 2.5]))
@example((dict[str, int], {"a": True}))
@example((bool | int, 1))
@settings(max_examples=100)
@given(annotations_with_values(LITERALS))
def test_the_native_reader_agrees_with_pydantic(pair: tuple[Any, Any]) -> None:
    annotation, value = pair
    assert read_natively(annotation, value) == read_with_pydantic(annotation, value)


@settings(max_examples=100)
@given(annotations_with_values(LITERALS_WITH_BOOLEANS))
def test_the_schema_allows_every_value_that_the_native_reader_accepts(pair: tuple[Any, Any]) -> None:
    annotation, value = pair
    assume(not needs_pydantic(annotation))
    schema = read_type(annotation).schema
    Draft202012Validator.check_schema(schema)
    assert read_natively(annotation, value) is None or Draft202012Validator(schema).is_valid(value)


@settings(max_examples=100)
@given(annotations_with_values(LITERALS_WITH_BOOLEANS))
def test_the_native_reader_accepts_every_value_that_the_schema_allows(pair: tuple[Any, Any]) -> None:
    annotation, value = pair
    assume(not needs_pydantic(annotation))
    schema = read_type(annotation).schema
    assume('"format"' not in json.dumps(schema))  # the validator ignores formats
    assert not Draft202012Validator(schema).is_valid(value) or read_natively(annotation, value) is not None


@settings(max_examples=100)
@given(annotations_with_values(LITERALS_WITH_BOOLEANS))
def test_the_schema_allows_the_values_that_the_schema_of_pydantic_allows(pair: tuple[Any, Any]) -> None:
    annotation, value = pair
    assume(annotation is not object)  # pydantic has no schema for it
    official = Draft202012Validator(TypeAdapter(annotation).json_schema())
    assert Draft202012Validator(read_type(annotation).schema).is_valid(value) is official.is_valid(value)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(Literal[1], True), (Literal[True], 1), (Literal[0, "a"], False), (Literal[1, "a"] | None, True)],
)
def test_the_native_reader_does_not_accept_true_for_1_as_pydantic_does(annotation: Any, value: Any) -> None:  # noqa: ANN401
    assert read_with_pydantic(annotation, value) is not None
    assert not Draft202012Validator(TypeAdapter(annotation).json_schema()).is_valid(value)
    assert read_natively(annotation, value) is None


def without_references(schema: Any, definitions: dict[str, Any]) -> Any:  # noqa: ANN401 - a part of a schema
    """Return a schema of pydantic without references and titles, which our schemas do not have."""
    if isinstance(schema, list):
        return [without_references(part, definitions) for part in schema]
    if not isinstance(schema, dict):
        return schema
    target = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else {}
    members = {**target, **schema}
    for name in ("$defs", "$ref", "title"):
        members.pop(name, None)
    return {name: without_references(member, definitions) for name, member in members.items()}


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Annotated[int, Title("Work item"), "As in the list"], 7),
        (Annotated[int, Between(1, 30)], 7),
        (Annotated[float | None, Between(0, 1), Title("Share")], 0.5),
        (Annotated[str, Length(1, 5)], "Ely"),
        (Annotated[str, Length(None, 5)], ""),
        (Annotated[list[Colour], Length(1, 2)], ["red"]),
        (Annotated[dict[str, int], limits.MaxLen(1)], {"a": 1}),
        (Annotated[Literal["a", "b"], Titles("One", "Two")], "a"),
        (Annotated[Colour, Titles("Red", "Green")], "green"),
        (Annotated[str, Format("email")], "ann@example.org"),
        (date | None, "2026-07-28"),
        (datetime, "2026-07-28T10:00:00Z"),
    ],
)
def test_a_field_of_a_form_is_read_without_pydantic(annotation: Any, value: object) -> None:  # noqa: ANN401
    described = describe(read_without_pydantic(annotation).read(value))
    assert described == read_with_pydantic(annotation, value)


@pytest.mark.parametrize("annotation", [Literal[1, 2], IntEnum("Size", {"SMALL": 1, "LARGE": 2})])
def test_titles_keep_the_type_of_the_choices(annotation: Any) -> None:  # noqa: ANN401
    titled = Annotated[annotation, Titles("One", "Two")]
    choices = [{"const": 1, "title": "One"}, {"const": 2, "title": "Two"}]
    assert read_type(titled).schema == TypeAdapter(titled).json_schema() == {"type": "integer", "oneOf": choices}


@pytest.mark.parametrize("annotation", [Colour, Mixed, Spot, Leg, Trip, Part, list[Leg], Leg | None])
def test_the_schema_of_a_class_is_the_one_that_pydantic_writes(annotation: Any) -> None:  # noqa: ANN401
    official = TypeAdapter(annotation).json_schema()
    assert read_type(annotation).schema == without_references(official, official.get("$defs", {}))


def test_a_text_in_annotated_describes_a_member() -> None:
    properties = read_type(Note).schema["properties"]
    assert [name for name, schema in properties.items() if schema.get("description")] == ["d", "e"]
    assert properties["e"] == {"type": "string", "format": "date-time", "description": "When"}


class Plain(TypedDict):
    town: str
    since: NotRequired[date]


def test_a_typed_dict_of_typing_is_read_on_every_python() -> None:
    reader = read_type(Plain)
    assert reader.read({"town": "Ely", "since": "2026-07-28", "z": 1}) == {"town": "Ely", "since": date(2026, 7, 28)}
    assert reader.schema["required"] == ["town"]


@dataclass
class WithInitVar:
    x: int
    later: InitVar[int] = 3
    y: int = field(init=False, default=4)


@dataclass
class Recursive:
    x: int
    left: Recursive | None = None


Member = TypeVar("Member")


@dataclass
class GenericBox(Generic[Member]):
    inside: Member


@dataclass
class WithValidator:
    x: int

    @pydantic.field_validator("x")
    @classmethod
    def double(cls, x: int) -> int:
        return 2 * x


@pydantic.dataclasses.dataclass
class WithAlias:
    x: int = Field(alias="y")


class WithMissing(StrEnum):
    RED = "red"

    @classmethod
    def _missing_(cls, _value: object) -> WithMissing:
        return cls.RED


def test_a_value_that_only_missing_of_an_enum_would_accept_is_refused_because_the_schema_does_not_have_it() -> None:
    assert read_type(WithMissing).read("red") is WithMissing.RED
    with pytest.raises(ValueError, match='must be one of "red"'):
        read_type(WithMissing).read("blue")


class Bits(Flag):
    ONE = 1


class Closed(typing_extensions.TypedDict, closed=True):
    x: int


class Halved:
    """A class with its own schema of pydantic: it halves the value."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, handler: Any) -> Any:  # noqa: ANN401
        return pydantic.AfterValidator(lambda x: x // 2).__get_pydantic_core_schema__(int, handler)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (WithInitVar, {"x": 1, "later": 2}),
        (WithInitVar, {"x": 1, "y": 5}),
        (Recursive, {"x": 1, "left": {"x": 2}}),
        (Recursive, {"x": 1, "left": {"x": "2"}}),
        (GenericBox[int], {"inside": 1}),
        (GenericBox[int], {"inside": "1"}),
        (WithValidator, {"x": 1}),
        (WithAlias, {"y": 1}),
        (Bits, 1),
        (Closed, {"x": 1, "y": 2}),
        (Halved, 4),
        (Annotated[int, Halved()], 4),
        (list[Halved | None], [4, None]),
        (Spot | Leg, {"x": 5, "to": "Ely"}),
        (str | date, "2026-07-28"),
        (date | str, "2026-07-28"),
        (Colour | str, "red"),
        (Literal[Colour.RED], "red"),
        (Literal[b"a"], "a"),
        (Annotated[Colour, limits.MinLen(4)], "red"),
        (Annotated[list[int] | None, limits.MinLen(1)], []),
        (union([float, Any]), 1),
        (Annotated[int, limits.MultipleOf(2)], 3),
        (Annotated[date, limits.Ge(date(2026, 7, 28))], "2026-07-27"),
        (Annotated[int, limits.Ge(3), limits.Ge(1)], 2),
        (Annotated[int | None, limits.Ge(1)], 0),
        (Annotated[int | float, limits.Ge(1)], 1.5),
    ],
)
def test_an_unusual_type_is_read_as_pydantic_reads_it(annotation: Any, value: object) -> None:  # noqa: ANN401
    assert read_natively(annotation, value) == read_with_pydantic(annotation, value)


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (type(None), {"type": "null"}),
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
        (Annotated[str, Field(description="A town")], {"type": "string", "description": "A town"}),
        (Annotated[int, Field(ge=1, le=9)], {"type": "integer", "minimum": 1, "maximum": 9}),
    ],
)
def test_a_type_has_its_json_schema(annotation: Any, schema: dict[str, Any]) -> None:  # noqa: ANN401
    assert read_type(annotation).schema == schema


@pytest.mark.parametrize(("name", "schema"), [("List", {"type": "array"}), ("Dict", {"type": "object"})])
def test_the_older_names_of_list_and_dict_need_no_brackets(name: str, schema: dict[str, Any]) -> None:
    assert read_type(getattr(typing, name)).schema == schema


@pytest.mark.parametrize("annotation", [Literal, Union])
def test_a_choice_without_members_is_refused(annotation: object) -> None:
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        read_type(annotation)


class Point(BaseModel):
    x: int
    y: int = 0


def test_a_model_is_read_by_pydantic() -> None:
    assert read_type(Point).read({"x": 1}) == Point(x=1)
    assert read_type(list[Point]).read([{"x": 1, "y": 2}]) == [Point(x=1, y=2)]


@pytest.mark.parametrize("value", [{"x": "1"}, {"x": 1.5}, {}, [], "x", None])
def test_a_model_does_not_convert_a_value_of_another_json_type(value: object) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_type(Point).read(value)


def refuse(_value: int) -> int:
    """Refuse each value, as an author does."""
    raise ValueError("Input is refused")


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
        (Point, {"x": "hunter2"}, "x must be an integer"),
        (Colour, "hunter2", 'must be one of "red", "green"'),
        (date, "hunter2", "must be a date, such as 2026-07-28"),
        (datetime, "hunter2", "must be a date and a time, such as 2026-07-28T09:30:00Z"),
        (Spot, "hunter2", "must be an object"),
        (Trip, {"x": 2}, "legs is missing"),
        (Trip, {"x": 2, "legs": [{"to": "Ely", "price": "hunter2"}]}, "legs item 0 price must be a number"),
        (Spot, {"x": 0}, "must not be the origin"),
        (Annotated[int, limits.Le(4)], 5, "must be at most 4"),
        (Annotated[str, limits.MaxLen(4)], "hunter2", "must have at most 4 characters"),
        (Annotated[int, Field(ge=1)], 0, "must be at least 1"),
        # pydantic's own text begins with "Input ", and an author's text may begin with it, too.
        (dict[str, Annotated[int, Field(multiple_of=2)]], {"a": 3}, "a should be a multiple of 2"),
        (Annotated[int, pydantic.AfterValidator(refuse)], 7, "Input is refused"),
    ],
)
def test_the_error_names_the_place_but_does_not_quote_the_value(annotation: Any, value: object, reason: str) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match=r"\w") as caught:
        read_type(annotation).read(value)
    assert str(caught.value) == reason
    assert "hunter2" not in repr(caught.value.__cause__)


class Opaque:
    """A class that cannot become JSON."""


@pytest.mark.parametrize("annotation", [Opaque, list[Opaque], Opaque | None])
def test_a_type_outside_json_is_refused(annotation: Any) -> None:  # noqa: ANN401
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
def test_text_is_converted_to_the_type(annotation: Any, text: str, value: object) -> None:  # noqa: ANN401
    assert repr(read_type(annotation).read_text(text)) == repr(value)


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (int, "five"),
        (int, "1.5"),
        (int, ""),
        (bool, "True"),
        (bool, "1"),
        (int, "NaN"),
        (dict, "[]"),
        (list, "5"),
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
def test_to_camel_case_renames_a_parameter(name: str, wire: str) -> None:
    assert to_camel_case(name) == wire


def test_an_iterable_is_recorded_as_a_list() -> None:
    days = [date(2026, 7, 28)]
    type_ = read_type(Iterable[date])
    assert type_.record(days) == (["2026-07-28"], True)
    assert type_.write(iter(days)) == ["2026-07-28"]
    assert type_.read(["2026-07-28"]) == days
