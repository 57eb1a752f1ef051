"""A question's type becomes a form (elicitation's requestedSchema), and the user's answer becomes a value of that type.

The specification allows strings, numbers, booleans and choices in a form, in one flat object; any other type is an
error. An author may write the form as a pydantic model, a dataclass, a TypedDict, or as the type of one value; SHAPES
makes each of them. The models are read at run time, so this module does not import `annotations` from `__future__`.
"""

import dataclasses
import enum
import re
from dataclasses import make_dataclass
from datetime import date, datetime
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Interval
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import _v2026_07_28 as types
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model, field_validator
from typing_extensions import TypedDict

from mcp_functions import Elicit, tool
from mcp_functions.annotated import Between, Format, Length, Number, Title, Titles
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.schemas.forms import Form, InvalidAnswer, read_form
from tests.support.conversations import talk_to

PRIMITIVE_SCHEMA: TypeAdapter[Any] = TypeAdapter(types.PrimitiveSchemaDefinition)


class Size(enum.Enum):
    S = "small"
    L = "large"


def model_of(annotation: Any, default: Any = ...) -> type[BaseModel]:  # noqa: ANN401 - an annotation
    model: type[BaseModel] = create_model("Form", field=(annotation, default))
    return model


def dataclass_of(annotation: Any, default: Any = ...) -> Any:  # noqa: ANN401 - an annotation
    if default is ...:
        return make_dataclass("Form", [("field", annotation)])
    return make_dataclass("Form", [("field", annotation, default)])


def typed_dict_of(annotation: Any) -> Any:  # noqa: ANN401 - an annotation
    return TypedDict("Form", {"field": annotation})  # type: ignore[operator]


def value_of(annotation: Any) -> Any:  # noqa: ANN401 - an annotation
    return annotation


class Described(enum.StrEnum):
    """A docstring, which describes the choices and not the list."""

    A = "a"


SHAPES = [model_of, dataclass_of, typed_dict_of, value_of]  # each makes a form with one property, `field`


def read_as_form(annotation: Any, *, camel_case: bool = False) -> Form:  # noqa: ANN401 - an annotation
    return read_form(annotation, "field", camel_case=camel_case)


def field_schema(annotation: Any, default: Any = ...) -> dict[str, Any]:  # noqa: ANN401 - an annotation
    schema: dict[str, Any] = read_as_form(model_of(annotation, default)).schema()["properties"]["field"]
    return schema


FIELDS: list[tuple[Any, dict[str, Any]]] = [
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
        Annotated[str, Length(1, 9), Title("Reason")],
        {"type": "string", "minLength": 1, "maxLength": 9, "title": "Reason"},
    ),
    (Annotated[int, Between(1, 9)], {"type": "integer", "minimum": 1, "maximum": 9}),
    (Annotated[float, Between(None, 0.5)], {"type": "number", "maximum": 0.5}),
    (Annotated[int | None, Between(1, None), Title("Age")], {"type": "integer", "minimum": 1, "title": "Age"}),
    (Annotated[int, Interval(ge=1, le=9)], {"type": "integer", "minimum": 1, "maximum": 9}),
    (
        Annotated[list[Size], Length(1, 2)],
        {"type": "array", "items": {"type": "string", "enum": ["small", "large"]}, "minItems": 1, "maxItems": 2},
    ),
    (
        Annotated[list[Size], Field(min_length=1)],
        {"type": "array", "items": {"type": "string", "enum": ["small", "large"]}, "minItems": 1},
    ),
    (Annotated[str, Format("email")], {"type": "string", "format": "email"}),
    (Annotated[str | None, Format("uri")], {"type": "string", "format": "uri"}),
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
        Annotated[Literal["lo", "hi"] | None, Titles("Low", "High")],
        {"type": "string", "oneOf": [{"const": "lo", "title": "Low"}, {"const": "hi", "title": "High"}]},
    ),
    # A restricted schema has no `exclusiveMinimum`: the answer is checked by the exact limit.
    (Annotated[int, Field(gt=1, lt=9)], {"type": "integer", "minimum": 2, "maximum": 8}),
    (Annotated[float, Field(gt=1, lt=9)], {"type": "number", "minimum": 1, "maximum": 9}),
    (Annotated[str, Field(examples=["x"])], {"type": "string"}),
    (Annotated[str, Title("Field")], {"type": "string", "title": "Field"}),
    (Annotated[str, Field(title="Field")], {"type": "string", "title": "Field"}),
    (Literal[Described.A], {"type": "string", "enum": ["a"]}),
    (list[Described], {"type": "array", "items": {"type": "string", "enum": ["a"]}}),
    (
        list[Annotated[Literal["lo", "hi"], Titles("Low", "High")]],
        {"type": "array", "items": {"anyOf": [{"const": "lo", "title": "Low"}, {"const": "hi", "title": "High"}]}},
    ),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("annotation", "schema"), FIELDS)
def test_a_form_publishes_the_schema_of_its_field(
    annotation: Any,  # noqa: ANN401
    schema: dict[str, Any],
    shape: Any,  # noqa: ANN401
) -> None:
    assert read_as_form(shape(annotation)).schema()["properties"] == {"field": schema}


@pytest.mark.parametrize("shape", [dataclass_of, typed_dict_of, value_of])  # a model has Field(description=…)
def test_a_text_in_annotated_describes_the_field(shape: Any) -> None:  # noqa: ANN401
    schema = read_as_form(shape(Annotated[str, "Why"])).schema()
    assert schema["properties"] == {"field": {"type": "string", "description": "Why"}}


@pytest.mark.parametrize("shape", [model_of, dataclass_of, typed_dict_of])
@pytest.mark.parametrize("annotation", [str, str | None])
def test_a_field_without_a_default_is_required(annotation: Any, shape: Any) -> None:  # noqa: ANN401
    assert read_as_form(shape(annotation)).schema()["required"] == ["field"]


def test_a_single_value_that_may_be_none_is_optional() -> None:
    assert "required" not in read_as_form(str | None).schema()


@pytest.mark.parametrize("annotation", [annotation for annotation, _schema in FIELDS])
def test_the_official_types_accept_the_schema_of_every_field(annotation: Any) -> None:  # noqa: ANN401
    schema = field_schema(annotation)
    primitive = PRIMITIVE_SCHEMA.validate_python(schema, by_name=False)
    assert PRIMITIVE_SCHEMA.dump_python(primitive, by_alias=True, exclude_none=True) == schema


@pytest.mark.parametrize("shape", [model_of, dataclass_of])
@pytest.mark.parametrize(
    ("annotation", "default", "published"),
    [
        (str, "x", "x"),
        (int, 0, 0),
        (bool, False, False),
        (Size, Size.L, "large"),
        (Literal["a", "b"], "b", "b"),
    ],
)
def test_a_field_with_a_default_is_optional(
    annotation: Any,  # noqa: ANN401
    default: object,
    published: object,
    shape: Any,  # noqa: ANN401
) -> None:
    form = read_as_form(shape(annotation, default))
    assert form.schema()["properties"]["field"]["default"] == published
    assert "required" not in form.schema()
    assert form.accept({}).field == default


def test_a_list_may_have_a_default() -> None:
    assert field_schema(list[Literal["a", "b"]], ["a"])["default"] == ["a"]


def test_the_default_none_is_not_published() -> None:
    assert field_schema(str | None, None) == {"type": "string"}


GRAMMAR = "a form holds strings, numbers, booleans and choices; nothing nested"
CHOICE = "a list in a form is a choice among fixed strings"


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (list[model_of(str)] | None, CHOICE),  # type: ignore[misc]
        (dict[str, str], GRAMMAR),
        (Any, GRAMMAR),
        (str | int, GRAMMAR),
        (list[str], CHOICE),
        (list[int], CHOICE),
        (list[Literal[1, 2]], CHOICE),
        (list[str | int], CHOICE),
        (list[Annotated[Literal[1, 2], Titles("One", "Two")]], CHOICE),
        (Annotated[Literal[1, 2], Titles("One", "Two")], "the choices of a form are strings"),
        (list[model_of(str)], CHOICE),  # type: ignore[misc]
        (Literal[1, 2], "the choices of a form are strings"),
        (Literal["a", 1], GRAMMAR),
        (Annotated[str, Field(pattern="x")], "a form cannot say 'pattern'"),
        (Annotated[int, Field(multiple_of=2)], "a form cannot say 'multipleOf'"),
        (set[Literal["a"]], "a form cannot say 'uniqueItems'"),
        (Annotated[Literal["a", "b"], Field(json_schema_extra={"enumNames": ["A"]})], "enumNames names each of the"),
        (Annotated[str, Field(json_schema_extra={"enumNames": ["A"]})], "enumNames names each of the choices"),
        (bytes, "a form knows the formats date, date-time, email, uri"),
    ],
)
def test_the_error_for_an_unsupported_type_gives_the_reason(annotation: Any, reason: str, shape: Any) -> None:  # noqa: ANN401
    with pytest.raises(DeveloperError) as caught:
        read_as_form(shape(annotation)).schema()
    assert f"field: {reason}" in str(caught.value)


def test_the_error_for_an_unsupported_field_names_the_class() -> None:
    with pytest.raises(DeveloperError, match=r"^Form\.field: "):
        read_as_form(model_of(bytes)).schema()


def test_the_log_names_the_line_of_the_author_that_asks_with_an_unsupported_type(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @tool
    def book(*, elicit: Elicit) -> str:
        return str(elicit("seats", "Which seats?", list[str]))

    talk_to(book).call()
    assert re.search(rf"{CHOICE}.* at \S*test_forms\.py:\d+ in book", caplog.text)


@pytest.mark.parametrize("titles", [("Low",), ("Low", "Middle", "High")])
def test_a_form_with_another_number_of_titles_than_choices_is_refused(titles: tuple[str, ...]) -> None:
    with pytest.raises(DeveloperError, match=f"Titles has {len(titles)} titles for 2 choices"):
        field_schema(Annotated[Literal["lo", "hi"], Titles(*titles)])


class Original(BaseModel):
    """A docstring, which is not in the form."""

    model_config = ConfigDict(title="A title, which is not in the form")

    duplicate_of_id: Number = Field(description="Work item ID")
    kind: Literal["bug", "task"] = "bug"
    when: date | None = None


def test_a_model_becomes_a_flat_object() -> None:
    assert read_as_form(Original).schema() == {
        "type": "object",
        "properties": {
            "duplicate_of_id": {"type": "number", "description": "Work item ID"},
            "kind": {"type": "string", "enum": ["bug", "task"], "default": "bug"},
            "when": {"type": "string", "format": "date"},
        },
        "required": ["duplicate_of_id"],
    }


@pytest.mark.parametrize("choices", [["a", "b"], ["b", "a"]])
def test_choices_are_published_in_the_authors_order(choices: list[str]) -> None:
    schema = read_as_form(Literal[tuple(choices)]).schema()  # two Literals with one set of values are equal
    assert schema["properties"]["field"]["enum"] == choices


def test_camel_case_renames_the_fields() -> None:
    form = read_as_form(Original, camel_case=True)
    assert list(form.schema()["properties"]) == ["duplicateOfId", "kind", "when"]
    assert form.schema()["required"] == ["duplicateOfId"]
    assert form.accept({"duplicateOfId": 7}) == Original(duplicate_of_id=7)


def test_camel_case_makes_the_snake_case_name_unknown() -> None:
    with pytest.raises(InvalidAnswer):
        read_as_form(Original, camel_case=True).accept({"duplicate_of_id": 7})


@pytest.mark.parametrize("option", [{"alias": "wire-name"}, {"validation_alias": "wire-name"}])
def test_an_alias_is_the_name_in_the_form(option: dict[str, str]) -> None:
    model = model_of(str, Field(**option))  # type: ignore[call-overload]
    assert list(read_as_form(model).schema()["properties"]) == ["wire-name"]
    assert read_as_form(model).accept({"wire-name": "x"}).model_dump() == {"field": "x"}


def test_an_answer_becomes_a_model() -> None:
    content = {"duplicate_of_id": 4301, "kind": "task", "when": "2026-07-28"}
    assert read_as_form(Original).accept(content) == Original(duplicate_of_id=4301, kind="task", when=date(2026, 7, 28))


def test_unknown_members_of_an_answer_are_ignored_even_if_the_model_forbids_them() -> None:
    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid")

        name: str

    assert read_as_form(Strict).accept({"name": "x", "more": 1}) == Strict(name="x")


@pytest.mark.parametrize("content", [None, [], "x", 7])
def test_an_accepted_form_without_content_is_refused(content: object) -> None:
    with pytest.raises(InvalidAnswer, match=r"^the form came back without content$"):
        read_as_form(Original).accept(content)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({}, "duplicate_of_id is missing"),
        ({"duplicate_of_id": 1, "kind": "hunter2"}, 'kind must be one of "bug", "task"'),
        ({"duplicate_of_id": 1, "when": 20260728}, "when must be a date, such as 2026-07-28 or must be a null"),
    ],
)
def test_the_error_for_an_invalid_answer_does_not_quote_it(content: dict[str, Any], error: str) -> None:
    with pytest.raises(InvalidAnswer) as caught:
        read_as_form(Original).accept(content)
    assert str(caught.value) == error
    assert "hunter2" not in repr(caught.value.__cause__)


@pytest.mark.parametrize(("annotation", "content"), [(int, "1"), (str, 1), (bool, 1), (bool, "true"), (Size, "SMALL")])
def test_an_answer_of_another_json_type_is_refused(annotation: Any, content: object) -> None:  # noqa: ANN401
    with pytest.raises(InvalidAnswer):
        read_as_form(model_of(annotation)).accept({"field": content})


def test_the_user_sees_the_message_of_a_models_validator() -> None:
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
        read_as_form(Even).accept({"number": 3})


@pytest.mark.parametrize("shape", [model_of, value_of])
@pytest.mark.parametrize("value", ["x@", "@y", "x y@z", "", 7])
def test_an_answer_without_the_format_of_its_field_is_refused(value: object, shape: Any) -> None:  # noqa: ANN401
    form = read_as_form(shape(Annotated[str, Format("email")]))
    with pytest.raises(InvalidAnswer):
        form.accept({"field": value})


def test_a_format_outside_the_specification_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^Format\('ipv4'\): the formats are email and uri$"):
        Format("ipv4")


class Opaque:
    """A class without a type of JSON."""


@dataclasses.dataclass
class Booking:
    """A form with a field outside JSON."""

    city: str
    seat: Opaque


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (Opaque, "<class '"),
        (Booking, "<class 'tests.schemas.test_forms.Booking'> cannot be written as JSON"),
        (Booking("Rome", Opaque()), "'Booking' object"),
        (Annotated[Literal["a", "b"], Titles("A")], "Titles has 1 titles for 2 choices"),
    ],
)
def test_the_error_for_a_type_outside_json_names_the_field(annotation: Any, reason: str) -> None:  # noqa: ANN401
    with pytest.raises(DeveloperError) as caught:
        read_as_form(annotation)
    rule = "field: a form is a dataclass, a TypedDict, a pydantic model, or the type of one value"
    assert str(caught.value).startswith(f"{rule} ({reason}")


# Our own reader of dataclasses, TypedDicts and single values is compared with pydantic's reader of a model.

NUMBERS = st.one_of(st.booleans(), st.integers(-3, 12), st.sampled_from([0.5, 1.0, 8.5]))
VALUES = st.one_of(
    st.none(),
    NUMBERS,
    # Not "1": to pydantic it is a time on the first day of 1970, and to forms it is no date.
    st.sampled_from(["", "a", "b", "lo", "small", "0x1", "true", "x@y", "a:b", "2026-02-29", "2026-07-28"]),
    st.sampled_from(["2026-07-28T09:30:00Z", "2026-07-28T09:30", "2026-07-28 09:30:00.5+02:00"]),
    st.lists(st.sampled_from(["a", "b", "lo", "small", 1]), max_size=4),
)
ANNOTATIONS = st.sampled_from([annotation for annotation, _schema in FIELDS])
NAMED_ANNOTATIONS = st.dictionaries(st.sampled_from(["first", "second_one", "third"]), ANNOTATIONS, min_size=1)


def schema_without_texts(form: Form) -> dict[str, Any]:
    """Return the schema without titles and descriptions, which pydantic takes from other places."""
    schema = form.schema()
    properties = {name: {**field, "title": "", "description": ""} for name, field in schema["properties"].items()}
    return {**schema, "properties": properties}


def fields_of_answer(form: Form, content: dict[str, Any]) -> dict[str, Any] | None:
    """Read an answer into its fields, with their types because 1 == 1.0; None if it is invalid."""
    try:
        answer = form.accept(content)
    except InvalidAnswer:
        return None
    fields = answer if isinstance(answer, dict) else vars(answer)
    return {name: (type(value), value) for name, value in fields.items()}


@given(NAMED_ANNOTATIONS, st.booleans(), st.data())
def test_dataclasses_and_typed_dicts_are_read_as_pydantic_reads_a_model(
    fields: dict[str, Any],
    camel_case: bool,  # noqa: FBT001
    data: st.DataObject,
) -> None:
    model = create_model("Form", **{name: (annotation, ...) for name, annotation in fields.items()})  # type: ignore[call-overload]
    expected = read_as_form(model, camel_case=camel_case)
    content = data.draw(st.fixed_dictionaries({}, optional=dict.fromkeys(expected.wire_names.values(), VALUES)))
    for shape in (make_dataclass("Form", list(fields.items())), TypedDict("Form", fields)):  # type: ignore[operator]
        form = read_as_form(shape, camel_case=camel_case)
        assert schema_without_texts(form) == schema_without_texts(expected)
        assert fields_of_answer(form, content) == fields_of_answer(expected, content)


@given(ANNOTATIONS, VALUES)
def test_one_value_is_read_as_pydantic_reads_the_only_field_of_a_model(annotation: Any, value: Any) -> None:  # noqa: ANN401
    model, form = read_as_form(model_of(annotation)), read_as_form(annotation)
    assert schema_without_texts(form)["properties"] == schema_without_texts(model)["properties"]
    expected = fields_of_answer(model, {"field": value})
    if expected is None:
        with pytest.raises(InvalidAnswer):
            form.accept({"field": value})
    else:
        answer = form.accept({"field": value})
        assert {"field": (type(answer), answer)} == expected


@given(
    st.fixed_dictionaries(
        {"duplicate_of_id": st.integers(-(2**53), 2**53)}, optional={"kind": st.sampled_from(["bug", "task"])}
    )
)
def test_every_answer_that_the_form_allows_is_accepted(content: dict[str, Any]) -> None:
    answer = read_as_form(Original).accept(content)
    assert answer.model_dump(include=set(content)) == content
