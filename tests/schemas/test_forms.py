"""A type as a form: all that the specification's restricted schema can say, and a clear no to the rest.

No `from __future__ import annotations` here: the models below are read as an author writes them.
"""

import dataclasses
import enum
from dataclasses import make_dataclass
from datetime import date, datetime
from typing import Annotated, Any, Literal, get_args, get_origin

import pytest
from annotated_types import Interval
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import _v2026_07_28 as types
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model, field_validator
from typing_extensions import TypedDict

from mcp_functions import Between, Format, Length, Number, Title, Titles
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.schemas.forms import Form, InvalidAnswer, read_form

_primitive: TypeAdapter[Any] = TypeAdapter(types.PrimitiveSchemaDefinition)


class Size(enum.Enum):
    S = "small"
    L = "large"


def form(annotation: Any, default: Any = ...) -> type[BaseModel]:  # noqa: ANN401 - an annotation
    made: type[BaseModel] = create_model("Form", field=(annotation, default))
    return made


def dataclass_of(annotation: Any, default: Any = ...) -> Any:  # noqa: ANN401 - an annotation
    if default is ...:
        return make_dataclass("Form", [("field", annotation)])
    return make_dataclass("Form", [("field", annotation, default)])


def typed_dict_of(annotation: Any) -> Any:  # noqa: ANN401 - an annotation
    return TypedDict("Form", {"field": annotation})  # type: ignore[operator]


def itself(annotation: Any) -> Any:  # noqa: ANN401 - an annotation
    return annotation


# Four ways to ask for the same: each is a form with one property, `field`.
SHAPES = [form, dataclass_of, typed_dict_of, itself]


def read(annotation: Any, *, camel_case: bool = False) -> Form:  # noqa: ANN401 - an annotation
    return read_form(annotation, "field", camel_case=camel_case)


def field(annotation: Any, default: Any = ...) -> dict[str, Any]:  # noqa: ANN401 - an annotation
    found: dict[str, Any] = read(form(annotation, default)).schema()["properties"]["field"]
    return found


GOOD: list[tuple[Any, dict[str, Any]]] = [
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (Number, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (date, {"type": "string", "format": "date"}),
    (datetime, {"type": "string", "format": "date-time"}),
    (str | None, {"type": "string"}),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    (Literal["a"], {"type": "string", "enum": ["a"]}),
    (Literal["a", "b"] | None, {"type": "string", "enum": ["a", "b"]}),
    (Size, {"type": "string", "enum": ["small", "large"]}),
    (list[Literal["a", "b"]], {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}),
    (list[Literal["a"]], {"type": "array", "items": {"type": "string", "enum": ["a"]}}),
    (list[Size], {"type": "array", "items": {"type": "string", "enum": ["small", "large"]}}),
    (Annotated[str, Field(min_length=1, max_length=9)], {"type": "string", "minLength": 1, "maxLength": 9}),
    (Annotated[int, Field(ge=1, le=9)], {"type": "integer", "minimum": 1, "maximum": 9}),
    (Annotated[float | None, Field(ge=0)], {"type": "number", "minimum": 0}),
    (
        Annotated[str, Field(description="Why", title="Reason")],
        {"type": "string", "description": "Why", "title": "Reason"},
    ),
    (
        Annotated[list[Literal["a", "b"]], Field(min_length=1, max_length=2)],
        {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1, "maxItems": 2},
    ),
    (
        Annotated[str, Length(1, 9), "Why", Title("Reason")],
        {"type": "string", "minLength": 1, "maxLength": 9, "description": "Why", "title": "Reason"},
    ),
    (Annotated[int, Between(1, 9)], {"type": "integer", "minimum": 1, "maximum": 9}),
    (Annotated[float, Between(None, 0.5)], {"type": "number", "maximum": 0.5}),
    (Annotated[int | None, Between(1, None), Title("Age")], {"type": "integer", "minimum": 1, "title": "Age"}),
    (Annotated[int, Interval(ge=1, le=9)], {"type": "integer", "minimum": 1, "maximum": 9}),
    (
        Annotated[list[Size], Length(1, 2)],
        {"type": "array", "items": {"type": "string", "enum": ["small", "large"]}, "minItems": 1, "maxItems": 2},
    ),
    (Annotated[str, Format("email")], {"type": "string", "format": "email"}),
    (Annotated[str | None, Format("uri"), "Why"], {"type": "string", "format": "uri", "description": "Why"}),
    (Annotated[str, Format("uri"), Field(max_length=9)], {"type": "string", "format": "uri", "maxLength": 9}),
    (Annotated[str, Field(json_schema_extra={"format": "email"})], {"type": "string", "format": "email"}),
    (
        Annotated[Literal["lo", "hi"], Titles("Low", "High")],
        {"type": "string", "oneOf": [{"const": "lo", "title": "Low"}, {"const": "hi", "title": "High"}]},
    ),
    (
        Annotated[Size, Titles("Small", "Large")],
        {"type": "string", "oneOf": [{"const": "small", "title": "Small"}, {"const": "large", "title": "Large"}]},
    ),
    (
        Annotated[Literal["lo", "hi"] | None, Titles("Low", "High"), "Why"],
        {
            "type": "string",
            "oneOf": [{"const": "lo", "title": "Low"}, {"const": "hi", "title": "High"}],
            "description": "Why",
        },
    ),
    (
        list[Annotated[Literal["lo", "hi"], Titles("Low", "High")]],
        {"type": "array", "items": {"anyOf": [{"const": "lo", "title": "Low"}, {"const": "hi", "title": "High"}]}},
    ),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("annotation", "written"), GOOD)
def test_every_supported_constraint_is_published_in_the_form(
    annotation: Any,  # noqa: ANN401
    written: dict[str, Any],
    shape: Any,  # noqa: ANN401
) -> None:
    schema = read(shape(annotation)).schema()
    if shape is form and "Why" in getattr(annotation, "__metadata__", ()):
        written = {key: value for key, value in written.items() if key != "description"}  # pydantic's is in Field
    assert schema["properties"] == {"field": written}
    # a value that may be None is optional; a field that may be None still needs a default
    bare = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    is_optional = shape is itself and type(None) in get_args(bare)
    assert schema.get("required", []) == ([] if is_optional else ["field"])


@pytest.mark.parametrize("annotation", [annotation for annotation, _written in GOOD])
def test_every_field_is_one_of_the_specifications_primitives(annotation: Any) -> None:  # noqa: ANN401
    written = field(annotation)
    known = _primitive.validate_python(written, by_name=False)
    assert _primitive.dump_python(known, by_alias=True, exclude_none=True) == written


@pytest.mark.parametrize(
    ("annotation", "default", "written", "shape"),
    [
        *(
            (annotation, default, written, shape)
            for shape in (form, dataclass_of)
            for annotation, default, written in [
                (str, "x", "x"),
                (int, 0, 0),
                (bool, False, False),
                (Size, Size.L, "large"),
                (Literal["a", "b"], "b", "b"),
            ]
        ),
        (list[Literal["a", "b"]], ["a"], ["a"], form),
    ],
)
def test_a_default_is_said_and_makes_a_field_optional(
    annotation: Any,  # noqa: ANN401
    default: Any,  # noqa: ANN401
    written: Any,  # noqa: ANN401
    shape: Any,  # noqa: ANN401
) -> None:
    known = read(shape(annotation, default))
    assert known.schema()["properties"]["field"]["default"] == written
    assert "required" not in known.schema()
    assert known.accept({}).field == default


def test_none_is_no_default_that_a_form_could_show() -> None:
    assert field(str | None, None) == {"type": "string"}


GRAMMAR = "a form holds strings, numbers, booleans and choices; nothing nested"
CHOICE = "a list in a form is a choice among fixed strings"


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (list[form(str)] | None, CHOICE),  # type: ignore[misc]
        (dict[str, str], GRAMMAR),
        (Any, GRAMMAR),
        (str | int, GRAMMAR),
        (list[str], CHOICE),
        (list[int], CHOICE),
        (list[Literal[1, 2]], CHOICE),
        (list[form(str)], CHOICE),  # type: ignore[misc]
        (Literal[1, 2], "the choices of a form are strings"),
        (Literal["a", 1], GRAMMAR),
        (Annotated[str, Field(pattern="x")], "a form cannot say 'pattern'"),
        (Annotated[int, Field(gt=1)], "a form cannot say 'exclusiveMinimum'"),
        (Annotated[int, Field(multiple_of=2)], "a form cannot say 'multipleOf'"),
        (Annotated[str, Field(examples=["x"])], "a form cannot say 'examples'"),
        (set[Literal["a"]], "a form cannot say 'uniqueItems'"),
        (Annotated[Literal["a", "b"], Field(json_schema_extra={"enumNames": ["A"]})], "enumNames names each of the"),
        (Annotated[str, Field(json_schema_extra={"enumNames": ["A"]})], "enumNames names each of the choices"),
        (bytes, "a form knows the formats date, date-time, email, uri"),
    ],
)
def test_an_unsupported_field_is_refused_with_its_name_and_the_reason(annotation: Any, reason: str, shape: Any) -> None:  # noqa: ANN401
    with pytest.raises(DeveloperError) as caught:
        read(shape(annotation)).schema()
    assert str(caught.value).startswith(f"{'field' if shape is itself else 'Form.field'}: {reason}")


@pytest.mark.parametrize("titles", [("Low",), ("Low", "Middle", "High")])
def test_titles_are_as_many_as_choices(titles: tuple[str, ...]) -> None:
    with pytest.raises(DeveloperError, match=f"Titles has {len(titles)} titles for 2 choices"):
        field(Annotated[Literal["lo", "hi"], Titles(*titles)])


class Original(BaseModel):
    """A docstring is for the author, and stays here."""

    model_config = ConfigDict(title="Not shown")

    duplicate_of_id: Number = Field(description="Work item ID")
    kind: Literal["bug", "task"] = "bug"
    when: date | None = None


def test_a_model_is_a_flat_object() -> None:
    assert read(Original).schema() == {
        "type": "object",
        "properties": {
            "duplicate_of_id": {"type": "number", "description": "Work item ID"},
            "kind": {"type": "string", "enum": ["bug", "task"], "default": "bug"},
            "when": {"type": "string", "format": "date"},
        },
        "required": ["duplicate_of_id"],
    }


@pytest.mark.parametrize("choices", [["a", "b"], ["b", "a"]])
def test_choices_are_shown_in_the_order_in_which_they_are_written(choices: list[str]) -> None:
    shown = read(Literal[tuple(choices)]).schema()["properties"][
        "field"
    ]  # two Literals with one set of values are equal
    assert shown["enum"] == choices


def test_camel_case_renames_the_fields() -> None:
    schema = read(Original, camel_case=True).schema()
    assert list(schema["properties"]) == ["duplicateOfId", "kind", "when"]
    assert schema["required"] == ["duplicateOfId"]
    assert read(Original, camel_case=True).accept({"duplicateOfId": 7}) == Original(duplicate_of_id=7)
    with pytest.raises(InvalidAnswer):
        read(Original, camel_case=True).accept({"duplicate_of_id": 7})


@pytest.mark.parametrize("name", [{"alias": "wire-name"}, {"validation_alias": "wire-name"}])
def test_an_alias_is_the_wire_name(name: dict[str, str]) -> None:
    model = form(str, Field(**name))  # type: ignore[call-overload]
    assert list(read(model).schema()["properties"]) == ["wire-name"]
    assert read(model).accept({"wire-name": "x"}).model_dump() == {"field": "x"}


def test_an_answer_is_read_as_the_model() -> None:
    content = {"duplicate_of_id": 4301, "kind": "task", "when": "2026-07-28", "nobody": "asked"}
    assert read(Original).accept(content) == Original(duplicate_of_id=4301, kind="task", when=date(2026, 7, 28))


def test_unknown_members_are_ignored_even_if_the_model_forbids_them() -> None:
    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid")

        name: str

    assert read(Strict).accept({"name": "x", "more": 1}) == Strict(name="x")


@pytest.mark.parametrize("content", [None, [], "x", 7])
def test_an_accepted_form_has_content(content: object) -> None:
    with pytest.raises(InvalidAnswer, match=r"^the form came back without content$"):
        read(Original).accept(content)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({}, "duplicate_of_id Field required"),
        ({"duplicate_of_id": 1, "kind": "hunter2"}, "kind should be 'bug' or 'task'"),
        ({"duplicate_of_id": 1, "when": 20260728}, "when should be a valid date"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_without_quoting_it(content: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidAnswer) as caught:
        read(Original).accept(content)
    assert str(caught.value) == text
    assert "hunter2" not in repr(caught.value.__cause__)


@pytest.mark.parametrize(("annotation", "content"), [(int, "1"), (str, 1), (bool, 1), (bool, "true"), (Size, "SMALL")])
def test_an_answer_is_read_strictly(annotation: Any, content: object) -> None:  # noqa: ANN401
    with pytest.raises(InvalidAnswer):
        read(form(annotation)).accept({"field": content})


def test_a_message_of_a_models_validator_reaches_the_user() -> None:
    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def _even(cls, number: int) -> int:
            if number % 2:
                message = "only even numbers, please"
                raise ValueError(message)
            return number

    with pytest.raises(InvalidAnswer, match=r"^number only even numbers, please$"):
        read(Even).accept({"number": 3})


@pytest.mark.parametrize("content", ["x@", "@y", "x y@z", "", 7])
def test_an_answer_with_another_format_is_asked_again(content: object) -> None:
    for annotation in (Annotated[str, Format("email")], form(Annotated[str, Format("email")])):
        assert read(annotation).accept({"field": "x@y"})
        with pytest.raises(InvalidAnswer):
            read(annotation).accept({"field": content})


def test_a_format_outside_the_specification_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^Format\('ipv4'\): the formats are email and uri$"):
        Format("ipv4")


class Nothing:
    """No type of JSON."""


@dataclasses.dataclass
class Booking:
    """A docstring is for the author, and stays here."""

    city: str
    seat: Nothing


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (Nothing, "<class '"),
        (Booking, "<class 'tests.schemas.test_forms.Booking'> cannot be written as JSON"),
        (Booking("Rome", Nothing()), "'Booking' object"),
        (Annotated[Literal["a", "b"], Titles("A")], "Titles has 1 titles for 2 choices"),
    ],
)
def test_a_form_with_a_value_outside_json_is_refused_with_the_field(annotation: Any, reason: str) -> None:  # noqa: ANN401
    with pytest.raises(DeveloperError) as caught:
        read(annotation)
    choice = "field: a form is a dataclass, a TypedDict, a pydantic model, or the type of one value"
    assert str(caught.value).startswith(f"{choice} ({reason}")


# The same fields as pydantic reads them.

NUMBERS = st.one_of(st.booleans(), st.integers(-3, 12), st.sampled_from([0.5, 1.0, 8.5]))
VALUES = st.one_of(
    st.none(),
    NUMBERS,
    # Not "1": to pydantic it is a time on the first day of 1970, and to forms it is no date.
    st.sampled_from(["", "a", "b", "lo", "small", "0x1", "true", "x@y", "a:b", "2026-02-29", "2026-07-28"]),
    st.sampled_from(["2026-07-28T09:30:00Z", "2026-07-28T09:30", "2026-07-28 09:30:00.5+02:00"]),
    st.lists(st.sampled_from(["a", "b", "lo", "small", 1]), max_size=4),
)
ANNOTATIONS = st.sampled_from([annotation for annotation, _written in GOOD])
FIELDS = st.dictionaries(st.sampled_from(["first", "second_one", "third"]), ANNOTATIONS, min_size=1)


def untitled(schema: dict[str, Any]) -> dict[str, Any]:
    properties = {name: {**field, "title": "", "description": ""} for name, field in schema["properties"].items()}
    return {**schema, "properties": properties}


def outcome(known: Form, content: dict[str, Any], *, one_value: bool = False) -> dict[str, Any] | None:
    """Read an answer; its fields with their types, because 1 == 1.0."""
    try:
        accepted = known.accept(content)
    except InvalidAnswer:
        return None
    if one_value:
        accepted = {"field": accepted}
    fields = accepted if isinstance(accepted, dict) else vars(accepted)
    return {name: (type(value), value) for name, value in fields.items()}


def test_a_type_is_read_once_and_not_in_every_round() -> None:
    seats = Literal["window", "aisle"]
    assert read(seats) is read(seats)
    assert read(seats).schema() != read(Literal["aisle", "window"]).schema()


@given(FIELDS, st.data(), st.booleans())
def test_other_forms_are_read_as_pydantic_reads_a_model(
    fields: dict[str, Any],
    data: st.DataObject,
    camel_case: bool,  # noqa: FBT001
) -> None:
    model = create_model("Form", **{name: (annotation, ...) for name, annotation in fields.items()})  # type: ignore[call-overload]
    shapes = [model, make_dataclass("Form", list(fields.items())), TypedDict("Form", fields)]  # type: ignore[operator]
    expected, *others = (read(shape, camel_case=camel_case) for shape in shapes)
    content = data.draw(st.fixed_dictionaries({}, optional=dict.fromkeys(expected.wire_names.values(), VALUES)))
    for other in others:
        assert untitled(other.schema()) == untitled(expected.schema())
        assert outcome(other, content) == outcome(expected, content)


@given(ANNOTATIONS, VALUES)
def test_one_value_is_read_as_pydantic_reads_the_only_field_of_a_model(annotation: Any, value: Any) -> None:  # noqa: ANN401
    expected, other = read(form(annotation)), read(annotation)
    assert untitled(other.schema())["properties"] == untitled(expected.schema())["properties"]
    assert outcome(other, {"field": value}, one_value=True) == outcome(expected, {"field": value})


@given(
    st.fixed_dictionaries(
        {"duplicate_of_id": st.integers(-(2**53), 2**53)}, optional={"kind": st.sampled_from(["bug", "task"])}
    )
)
def test_every_answer_that_the_form_allows_is_accepted(content: dict[str, Any]) -> None:
    accepted = read(Original).accept(content)
    assert accepted.model_dump(include=set(content)) == content
