"""A type as JSON sees it: the quick check of JSON's own types and pydantic's are one and the same."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date, datetime
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types as limits
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from mcp_functions import jsonrpc, kinds

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


DAYS = ["2026-07-28", "2026-02-29", "20260728", "2026-W01-1", "2026-209", "0000-01-01", "2026-7-8", "2026-07-28 "]
TIMES = ["10:00", "10:00:00", "10:00:00.5", "10:00:00,123456789", "24:00", "10", "10:00:60", "1000", "10:00:00."]
OFFSETS = ["", "Z", "z", "+02:00", "-0030", "\u221223:59", "+24:00", "+02", "+02:60", "+02:00:30", " Z"]
CLASSES: dict[Any, st.SearchStrategy[Any]] = {
    Colour: st.sampled_from(["red", "green", "RED"]),
    Level: st.sampled_from([1, 2, 3, "1"]),
    Mixed: st.sampled_from([1, "1", 2]),
    date: st.dates().map(str) | st.sampled_from(DAYS),
    datetime: (
        st.datetimes(timezones=st.none() | st.timezones()).map(lambda moment: moment.isoformat(timespec="microseconds"))
        | st.tuples(*map(st.sampled_from, (DAYS[:2], "Tt _X", TIMES, OFFSETS))).map("".join)
    ),
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
    """Write a value with its types; the same moment is the same, whoever wrote its zone."""
    if isinstance(value, list):
        return str([*map(shown, value)])
    if isinstance(value, dict):
        return str({name: shown(member) for name, member in value.items()})
    return f"datetime {value.isoformat()}" if isinstance(value, datetime) else repr(value)


def pydantic_reads(annotation: Any, value: object) -> str | None:  # noqa: ANN401 - an annotation
    try:
        return shown(TypeAdapter(annotation).validate_json(jsonrpc.dumps(value), strict=True))
    except ValidationError:
        return None


def native_reads(annotation: Any, value: object) -> str | None:  # noqa: ANN401 - an annotation
    try:
        return shown(kinds.kind(annotation).check(value))
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
    annotation, value = pair[0], jsonrpc.loads(json.dumps(pair[1]))  # a number without a fraction is an int
    assert native_reads(annotation, value) == pydantic_reads(annotation, value)


@settings(max_examples=200)
@given(pairs(CONFUSED))
def test_a_schema_accepts_what_the_check_accepts(pair: tuple[Any, Any]) -> None:
    annotation, value = pair[0], jsonrpc.loads(json.dumps(pair[1]))
    schema = kinds.kind(annotation).schema
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


def test_native_types_never_import_pydantic() -> None:
    code = (
        "import sys\nfrom typing import Literal\nfrom mcp_functions import Number, tool\n"
        "@tool\ndef f(a: int, b: str | None, c: list[dict[str, float]], d: Literal['x', 1], e: Number = 2)"
        " -> dict[str, int]:\n    return {}\n"
        "f.describe()\nassert 'pydantic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603 - our own words


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (kinds.Number, {"type": "number"}),
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
    assert kinds.kind(type(None) if annotation is None else annotation).schema == schema


@pytest.mark.parametrize("annotation", [Annotated[str, "A town"], Annotated[str, Field(description="A town")]])
def test_a_description_is_known_however_it_was_written(annotation: Any) -> None:  # noqa: ANN401
    found = kinds.kind(annotation)
    assert found.description == "A town"
    assert found.schema["description"] == "A town"


class Point(BaseModel):
    x: int
    y: int = 0


def test_other_types_are_pydantics() -> None:
    assert kinds.kind(Point).check({"x": 1}) == Point(x=1)
    assert kinds.kind(date).check("2026-07-28") == date(2026, 7, 28)
    assert kinds.kind(list[Point]).check([{"x": 1, "y": 2}]) == [Point(x=1, y=2)]


@pytest.mark.parametrize("value", [{"x": "1"}, {"x": 1.5}, {}, [], "x", None])
def test_a_models_check_is_strict(value: object) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        kinds.kind(Point).check(value)


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
        (Annotated[int, Field(ge=1)], 0, "should be greater than or equal to 1"),
    ],
)
def test_a_refusal_says_where_and_why_but_not_the_value(annotation: Any, value: object, reason: str) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match=r"\w") as caught:
        kinds.kind(annotation).check(value)
    assert str(caught.value) == reason
    assert "hunter2" not in repr(caught.value.__cause__)


class Opaque:
    """A class that nobody can write in JSON."""


@pytest.mark.parametrize("annotation", [Opaque, list[Opaque], Opaque | None])
def test_a_type_that_json_cannot_carry_is_named(annotation: Any) -> None:  # noqa: ANN401
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        kinds.kind(annotation)


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
    read = kinds.from_text(kinds.kind(annotation), text)
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
def test_text_that_does_not_say_such_a_value_is_refused(annotation: Any, text: str) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match="must be"):
        kinds.from_text(kinds.kind(annotation), text)


@pytest.mark.parametrize(
    ("name", "wire"),
    [("work_item_id", "workItemId"), ("x", "x"), ("from_", "from"), ("a1_b2", "a1B2"), ("aB_c", "aBC")],
)
def test_a_name_in_camel_case(name: str, wire: str) -> None:
    assert kinds.camel(name) == wire


TAKING: list[Any] = [*scalars, int | float, Annotated[int, "how many"]]
CHECKING: list[Any] = [Annotated[int, Field(gt=2)], Literal[1, 2], str | int, list[int], dict[str, int], Any]


@given(st.sampled_from([*TAKING, *CHECKING]), values)
def test_what_is_taken_without_a_check_would_have_passed_it_as_it_is(annotation: Any, value: Any) -> None:  # noqa: ANN401
    found = kinds.kind(annotation)
    if type(value) in found.taken:
        assert found.check(value) is value


def test_only_what_has_no_other_rule_than_its_type_is_taken_without_a_check() -> None:
    assert all(kinds.kind(annotation).taken for annotation in TAKING)
    assert not any(kinds.kind(annotation).taken for annotation in CHECKING)
