"""A function's signature becomes the tool's inputSchema, and a client's arguments become the function's arguments.

`bind` converts the arguments of a call. The signatures are read at run time, so this module does not import
`annotations` from `__future__`.
"""

import json
from collections.abc import Callable, Iterable
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, create_model

from mcp_functions.annotated import Header
from mcp_functions.handlers import signatures
from mcp_functions.schemas import arguments, validation
from mcp_functions.schemas.arguments import Arguments, InvalidArgument


def read_parameters(function: Callable[..., Any], *, camel_case: bool = False) -> Arguments:
    signature = signatures.read(function, camel_case=camel_case)
    return arguments.read_arguments(signature.client_parameters, camel_case=camel_case)


class Place(BaseModel):
    town: str
    zip_code: str = ""


def order(
    item_id: int,
    place: Place,
    tags: list[str],
    note: Annotated[str, "For the log"] = "none",
    level: Literal["lo", "hi"] | None = None,
) -> None: ...


REQUIRED_ARGUMENTS: dict[str, Any] = {"item_id": 1, "place": {"town": "Ely"}, "tags": []}


def test_the_input_schema_has_each_parameter_with_its_type_and_default() -> None:
    schema = read_parameters(order).schema
    Draft202012Validator.check_schema(schema)
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["item_id", "place", "tags"]
    assert schema["properties"]["item_id"] == {"type": "integer"}
    assert schema["properties"]["tags"] == {"type": "array", "items": {"type": "string"}}
    assert schema["properties"]["note"] == {"type": "string", "description": "For the log", "default": "none"}
    assert schema["properties"]["level"]["default"] is None


def test_a_function_without_parameters_accepts_only_an_empty_object() -> None:
    parameters = read_parameters(lambda: None)
    assert parameters.schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert parameters.bind({}) == {}
    with pytest.raises(InvalidArgument, match=r"^Unknown argument 'x'; known are: none$"):
        parameters.bind({"x": 1})


def test_camel_case_renames_parameters_but_not_the_fields_of_their_models() -> None:
    parameters = read_parameters(order, camel_case=True)
    assert list(parameters.schema["properties"]) == ["itemId", "place", "tags", "note", "level"]
    bound = parameters.bind({"itemId": 1, "place": {"town": "Łódź", "zip_code": "90"}, "tags": []})
    assert (bound["item_id"], bound["place"]) == (1, Place(town="Łódź", zip_code="90"))


def test_camel_case_makes_the_snake_case_name_unknown() -> None:
    with pytest.raises(InvalidArgument, match="Unknown argument 'item_id'"):
        read_parameters(order, camel_case=True).bind(REQUIRED_ARGUMENTS)


def test_a_missing_argument_is_left_to_the_functions_default() -> None:
    bound = read_parameters(order).bind(REQUIRED_ARGUMENTS)
    assert bound.keys() == {"item_id", "place", "tags"}


def test_null_does_not_mean_that_an_argument_is_missing() -> None:
    assert read_parameters(order).bind({**REQUIRED_ARGUMENTS, "level": None})["level"] is None
    with pytest.raises(InvalidArgument, match="Argument 'note': must be a string"):
        read_parameters(order).bind({**REQUIRED_ARGUMENTS, "note": None})


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        ({}, "Argument 'item_id': it is missing"),
        ({"item_id": "1"}, "Argument 'item_id': must be an integer"),
        ({"item_id": 1, "place": {"town": 7}}, "Argument 'place': town must be a string"),
        ({"item_id": 1, "place": {}, "tags": []}, "Argument 'place': town is missing"),
        ({"item_id": 1, "place": {"town": "x"}, "tags": [1]}, "Argument 'tags': item 0 must be a string"),
        (
            {"item_id": 1, "place": {"town": "x"}, "tags": [], "colour": "red"},
            "Unknown argument 'colour'; known are: item_id, level, note, place, tags",
        ),
    ],
)
def test_the_error_names_the_argument_and_the_reason(sent: dict[str, Any], error: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        read_parameters(order).bind(sent)
    assert str(caught.value) == error


def test_the_error_does_not_quote_the_value() -> None:
    with pytest.raises(InvalidArgument) as caught:
        read_parameters(order).bind({"item_id": 1, "place": {"town": ["hunter2"]}, "tags": []})
    assert "hunter2" not in f"{caught.value} {caught.value.__cause__}"


def ticket(project: str, number: int, when: date) -> None: ...


def test_the_text_of_a_uri_variable_is_converted_to_the_parameters_type() -> None:
    bound = read_parameters(ticket).bind({"project": "17", "number": "17", "when": "2026-07-28"}, values_are_text=True)
    assert bound == {"project": "17", "number": 17, "when": date(2026, 7, 28)}


def test_a_text_that_is_no_value_of_the_parameters_type_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="Argument 'number': must be an integer"):
        read_parameters(ticket).bind({"project": "17", "number": "x", "when": "2026-07-28"}, values_are_text=True)


def untyped(x) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    ...


def variadic(*xs: int) -> None: ...


def variadic_keywords(**xs: int) -> None: ...


def positional(x: int, /) -> None: ...


@pytest.mark.parametrize("function", [untyped, variadic, variadic_keywords, positional])
def test_every_parameter_needs_a_name_and_a_type(function: Callable[..., Any]) -> None:
    error = r"every parameter needs a name \(no \*args, no /\) and a type, which the client is told$"
    with pytest.raises(TypeError, match=error):
        read_parameters(function)


def test_a_parameter_whose_type_is_outside_json_is_refused() -> None:
    def subscribe(listener: Callable[[], None]) -> None: ...

    with pytest.raises(TypeError, match="cannot be written as JSON"):
        read_parameters(subscribe)


def add_up(amounts: Iterable[int]) -> None: ...


def test_an_iterable_parameter_accepts_a_list() -> None:
    bound = read_parameters(add_up).bind({"amounts": [1, 2]})
    assert list(bound["amounts"]) == [1, 2]


@pytest.mark.parametrize("amounts", ["12", 5, ["a"], {"1": 2}])
def test_an_iterable_is_checked_before_the_function_reads_it(amounts: object) -> None:
    with pytest.raises(InvalidArgument, match="must be an"):
        read_parameters(add_up).bind({"amounts": amounts})


def test_two_parameters_with_one_wire_name_are_refused() -> None:
    def same(a_b: int, aB: int) -> None: ...  # noqa: N803

    with pytest.raises(TypeError, match="parameters 'a_b' and 'aB' have the same name on the wire, 'aB': rename one"):
        read_parameters(same, camel_case=True)


def test_a_model_in_two_parameters_is_defined_once() -> None:
    def route(start: Place, stops: list[Place]) -> None: ...

    schema = read_parameters(route).schema
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert validator.is_valid({"start": {"town": "x"}, "stops": [{"town": "y"}]})
    assert not validator.is_valid({"start": {"town": "x"}, "stops": [{}]})


def test_two_types_with_one_name_in_one_signature_are_refused() -> None:
    other_place = create_model("Place", x=int)

    def route(start: list[Place], end: list[other_place]) -> None: ...  # type: ignore[valid-type]

    with pytest.raises(
        TypeError, match="parameter 'end': another parameter has a different type named 'Place': rename one"
    ):
        _ = read_parameters(route).schema


@pytest.mark.parametrize("default", [float("inf"), [float("nan")], object(), b"\xff"])
def test_a_default_outside_json_is_not_in_the_schema(default: Any) -> None:  # noqa: ANN401
    def function(x: Any = default) -> None: ...  # noqa: ANN401

    schema = read_parameters(function).schema
    assert "default" not in schema["properties"]["x"]
    assert "required" not in schema


def test_the_schema_has_the_options_of_a_field() -> None:
    def function(x: int = Field(title="Width", examples=[3], deprecated=True)) -> None: ...

    expected = {"type": "integer", "title": "Width", "examples": [3], "deprecated": True}
    assert read_parameters(function).schema["properties"]["x"] == expected


def test_a_field_without_options_of_the_schema_is_read_without_pydantic() -> None:
    def function(x: int = Field(ge=1)) -> None: ...

    with pytest.raises(InvalidArgument, match="Argument 'x': must be at least 1"):
        read_parameters(function).bind({"x": 0})


def test_a_default_factory_may_not_take_the_validated_data() -> None:
    def function(x: int = Field(default_factory=len)) -> None: ...

    with pytest.raises(TypeError, match="its default_factory takes the validated data"):
        read_parameters(function)


def test_the_schema_declares_the_header_that_repeats_an_argument() -> None:
    def call(region: Annotated[str, Header("Region"), "Where"]) -> None: ...

    expected = {"type": "string", "description": "Where", "x-mcp-header": "Region"}
    assert read_parameters(call).schema["properties"]["region"] == expected


ORDER_SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}


def read_custom_schema(schema: dict[str, Any]) -> arguments.RawArguments:
    def function(arguments: dict[str, Any]) -> None: ...

    return arguments.read_raw_arguments(signatures.read(function, camel_case=False).client_parameters, schema)


def test_a_custom_schema_passes_all_arguments_in_one_parameter() -> None:
    parameters = read_custom_schema(ORDER_SCHEMA)
    assert parameters.schema == ORDER_SCHEMA
    assert parameters.bind({"n": 2, "more": True}) == {"arguments": {"n": 2, "more": True}}


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        ({"n": "hunter2"}, "The arguments do not fit: n does not fit 'type' of its schema"),
        ({"n": 0}, "The arguments do not fit: n does not fit 'minimum' of its schema"),
        ({}, "The arguments do not fit: the value does not fit 'required' of its schema"),
    ],
)
def test_arguments_that_break_the_custom_schema_are_refused(sent: dict[str, Any], error: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        read_custom_schema(ORDER_SCHEMA).bind(sent)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ({"type": "array"}, 'the root of an inputSchema must have "type": "object"'),
        ({}, 'the root of an inputSchema must have "type": "object"'),
        ({"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"}, "the only dialect is"),
        ({"type": "object", "properties": {"x": {"$ref": "https://x.example/s"}}}, "leaves the schema"),
        ({"type": "object", "properties": {"x": {"type": "strin"}}}, "not a valid JSON Schema 2020-12"),
        ({"type": "object", "description": "x" * 70_000}, "at most 65536 bytes"),
        (json.loads('{"type": "object", "default": ' + "[" * 32 + "]" * 32 + "}"), "at most 32 levels"),
    ],
)
def test_a_custom_schema_that_clients_would_not_accept_is_refused(schema: dict[str, Any], error: str) -> None:
    with pytest.raises(TypeError, match=error):
        read_custom_schema(schema)


def test_a_custom_schema_needs_exactly_one_parameter() -> None:
    with pytest.raises(TypeError, match="the function has one parameter before"):
        arguments.read_raw_arguments([], ORDER_SCHEMA)


@given(
    st.fixed_dictionaries(
        {},
        optional={"a": st.integers() | st.text() | st.none(), "b": st.lists(st.integers() | st.text()), "c": st.none()},
    )
)
def test_bind_accepts_exactly_what_the_schema_accepts(sent: dict[str, Any]) -> None:
    def function(a: int | None, b: list[int] = []) -> None: ...  # noqa: B006

    parameters = read_parameters(function)
    assert Draft202012Validator(parameters.schema).is_valid(sent) is binds(parameters, sent)


def binds(parameters: Arguments | arguments.RawArguments, sent: dict[str, Any]) -> bool:
    try:
        parameters.bind(sent)
    except InvalidArgument:
        return False
    return True


class CountingList(list[Any]):
    """A list that counts how many items are read."""

    reads = 0

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - as list has it
        self.reads += 1
        return super().__getitem__(index)


def test_the_validation_of_a_list_ends_at_the_first_errors() -> None:
    check = validation.read_schema({"type": "object", "properties": {"tags": {"items": {"type": "string"}}}}).read
    tags = CountingList([7] * 90_000)
    with pytest.raises(ValueError, match=r"tags\[0\] does not fit 'type'"):
        check({"tags": tags})
    assert tags.reads < 100


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^[a-z]{1,5}$", "abc", True),
        pytest.param("^[a-z]{1,5}$", "abc\n", False, id="$ does not match before a line break"),
        pytest.param("^(a$|b$)", "b\n", False, id="the same in a group"),
        (r"^\$[$]$", "$$", True),
        (r"^\d+$", "12", True),
        pytest.param(r"^\d+$", "\u0661\u0662", False, id="Arabic digits are no digits"),
        pytest.param(r"^\w$", "\u00e9", False, id="a letter outside ASCII is no word character"),
        (r"^\D\W$", "\u0661\u00e9", True),
        (r"^\/\-[\w.-]+$", "/-a-b.c", True),
        ("^(?=a)(?!b)a(?<=a)(?<!b)(?:b)+?$", "ab", True),
    ],
)
def test_a_pattern_has_the_meaning_of_ecma_262(pattern: str, text: str, *, matches: bool) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}}
    assert binds(read_custom_schema(schema), {"x": text}) is matches


@pytest.mark.parametrize("schema", [{"pattern": "("}, {"patternProperties": {"(": {}}}])
def test_a_pattern_that_python_cannot_read_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="not a valid JSON Schema 2020-12: '\\(' is not a 'regex'"):
        read_custom_schema({"type": "object", **schema})


class CountingInt(int):
    """An integer that counts how often it is compared."""

    comparisons = 0
    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        type(self).comparisons += 1
        return super().__eq__(other)


UNIQUE_TAGS = {"type": "object", "properties": {"tags": {"uniqueItems": True}}}


def test_unique_items_of_different_types_are_not_compared_pairwise() -> None:
    tags = [*map(CountingInt, range(300)), "x", None]
    validation.read_schema(UNIQUE_TAGS).read({"tags": tags})
    assert CountingInt.comparisons < 3000


def test_values_that_are_equal_only_in_python_are_unique() -> None:
    validation.read_schema(UNIQUE_TAGS).read({"tags": [1, True, "1", [1], [True], None]})


@pytest.mark.parametrize("tags", [[1, "1", 1], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]])
def test_repeated_items_are_refused(tags: list[object]) -> None:
    with pytest.raises(ValueError, match="tags does not fit 'uniqueItems'"):
        validation.read_schema(UNIQUE_TAGS).read({"tags": tags})
