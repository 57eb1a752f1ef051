"""A signature as `inputSchema`, and what a client sends as the function's own arguments.

No `from __future__ import annotations` here: the functions below are read as an author writes them.
"""

from collections.abc import Callable, Iterable
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from mcp_functions import Header
from mcp_functions.handlers import signatures
from mcp_functions.schemas import arguments, validation
from mcp_functions.schemas.arguments import Arguments, InvalidArgument


def read(function: Callable[..., Any], *, camel_case: bool = False) -> Arguments:
    signature = signatures.read(function, camel_case=camel_case)
    return arguments.read_arguments(signature.client_parameters, signature.types, camel_case=camel_case)


class Place(BaseModel):
    town: str
    zip_code: str = ""


def work(
    item_id: int,
    place: Place,
    tags: list[str],
    note: Annotated[str, "For the log"] = "none",
    level: Literal["lo", "hi"] | None = None,
) -> None: ...


def test_a_signature_is_an_input_schema() -> None:
    schema = read(work).schema
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["item_id", "place", "tags"]
    assert schema["properties"]["item_id"] == {"type": "integer"}
    assert schema["properties"]["tags"] == {"type": "array", "items": {"type": "string"}}
    assert schema["properties"]["note"] == {"type": "string", "description": "For the log", "default": "none"}
    assert schema["properties"]["level"]["default"] is None


def test_a_function_without_parameters_takes_nothing() -> None:
    found = read(lambda: None)
    assert found.schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert found.bind({}) == {}
    with pytest.raises(InvalidArgument, match=r"^Unknown argument 'x'; known are: none$"):
        found.bind({"x": 1})


def test_camel_case_renames_parameters_and_nothing_else() -> None:
    found = read(work, camel_case=True)
    assert list(found.schema["properties"]) == ["itemId", "place", "tags", "note", "level"]
    bound = found.bind({"itemId": 1, "place": {"town": "Łódź", "zip_code": "90"}, "tags": []})
    assert bound == {"item_id": 1, "place": Place(town="Łódź", zip_code="90"), "tags": []}
    with pytest.raises(InvalidArgument, match="Unknown argument 'item_id'"):
        found.bind({"item_id": 1, "place": {"town": "x"}, "tags": []})


def test_a_missing_argument_has_the_functions_default() -> None:
    bound = read(work).bind({"item_id": 1, "place": {"town": "x"}, "tags": []})
    assert bound.keys() == {"item_id", "place", "tags"}


def test_null_is_a_value_and_not_an_absence() -> None:
    given_ = {"item_id": 1, "place": {"town": "x"}, "tags": [], "level": None}
    assert read(work).bind(given_)["level"] is None
    with pytest.raises(InvalidArgument, match="Argument 'note': must be a string"):
        read(work).bind({**given_, "note": None})


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        ({}, "Argument 'item_id': it is missing"),
        ({"item_id": "1"}, "Argument 'item_id': must be an integer"),
        ({"item_id": 1, "place": {"town": 7}}, "Argument 'place': town should be a valid string"),
        ({"item_id": 1, "place": {}, "tags": []}, "Argument 'place': town Field required"),
        ({"item_id": 1, "place": {"town": "x"}, "tags": [1]}, "Argument 'tags': item 0 must be a string"),
        (
            {"item_id": 1, "place": {"town": "x"}, "tags": [], "colour": "red"},
            "Unknown argument 'colour'; known are: item_id, level, note, place, tags",
        ),
    ],
)
def test_a_refusal_names_the_argument_and_the_reason(given_: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        read(work).bind(given_)
    assert str(caught.value) == text


def test_a_refusal_never_quotes_a_value() -> None:
    with pytest.raises(InvalidArgument) as caught:
        read(work).bind({"item_id": 1, "place": {"town": ["hunter2"]}, "tags": []})
    assert "hunter2" not in f"{caught.value} {caught.value.__cause__}"


def test_text_is_read_by_the_parameters_type() -> None:
    def ticket(project: str, number: int, when: date) -> None: ...

    bound = read(ticket).bind({"project": "17", "number": "17", "when": "2026-07-28"}, values_are_text=True)
    assert bound == {"project": "17", "number": 17, "when": date(2026, 7, 28)}
    with pytest.raises(InvalidArgument, match="Argument 'number': must be an integer"):
        read(ticket).bind({"project": "17", "number": "x", "when": "2026-07-28"}, values_are_text=True)


def untyped(x) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    ...


def starred(*xs: int) -> None: ...


def doubly_starred(**xs: int) -> None: ...


def positional(x: int, /) -> None: ...


@pytest.mark.parametrize("function", [untyped, starred, doubly_starred, positional])
def test_every_parameter_needs_a_name_and_a_type(function: Callable[..., Any]) -> None:
    text = r"every parameter needs a name \(no \*args, no /\) and a type, which the client is told$"
    with pytest.raises(TypeError, match=text):
        read(function)


def test_a_type_that_json_cannot_carry_is_refused_when_the_signature_is_read() -> None:
    def opaque(x: Callable[[], None]) -> None: ...

    with pytest.raises(TypeError, match="cannot be written as JSON"):
        read(opaque)


@pytest.mark.parametrize("sent", ["12", 5, ["a"], {"1": 2}])
def test_an_iterable_is_checked_before_the_function_reads_it(sent: Any) -> None:  # noqa: ANN401 - any JSON
    class Order(BaseModel):
        items: Iterable[int]

    def total(amounts: Iterable[int]) -> None: ...
    def order(whole: Order) -> None: ...

    for function, arguments_ in ((total, {"amounts": sent}), (order, {"whole": {"items": sent}})):
        with pytest.raises(InvalidArgument, match="does not fit 'type' of its schema"):
            read(function).bind(arguments_)
    assert list(read(total).bind({"amounts": [1, 2]})["amounts"]) == [1, 2]


def test_two_parameters_with_one_wire_name_are_refused() -> None:
    def same(a_b: int, aB: int) -> None: ...  # noqa: N803

    assert len(read(same).by_name) == 2
    with pytest.raises(TypeError, match="parameters 'a_b' and 'aB' have the same name on the wire, 'aB': rename one"):
        read(same, camel_case=True)


def test_a_model_in_two_parameters_is_defined_once() -> None:
    def route(start: Place, stops: list[Place]) -> None: ...

    schema = read(route).schema
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert validator.is_valid({"start": {"town": "x"}, "stops": [{"town": "y"}]})
    assert not validator.is_valid({"start": {"town": "x"}, "stops": [{}]})


def test_two_types_of_one_name_in_one_signature_are_refused() -> None:
    def other() -> type[BaseModel]:
        class Place(BaseModel):
            x: int

        return Place

    def route(start: list[Place], end: list[other()]) -> None: ...  # type: ignore[valid-type]

    with pytest.raises(
        TypeError, match="parameter 'end': another parameter has a different type named 'Place': rename one"
    ):
        _ = read(route).schema


@pytest.mark.parametrize("default", [float("inf"), [float("nan")], object(), b"\xff"])
def test_a_default_that_the_schema_cannot_say_is_left_out_of_it(default: Any) -> None:  # noqa: ANN401
    def function(x: float = default, y: Any = default) -> None: ...  # noqa: ANN401

    found = read(function)
    assert "default" not in found.schema["properties"]["y"]
    assert "required" not in found.schema
    assert not found.bind({}) or isinstance(default, list)  # of which each call gets a copy


def test_an_argument_that_is_repeated_in_a_header_says_so() -> None:
    def call(region: Annotated[str, Header("Region"), "Where"]) -> None: ...

    expected = {"type": "string", "description": "Where", "x-mcp-header": "Region"}
    assert read(call).schema["properties"]["region"] == expected


ORDER = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}


def raw(schema: dict[str, Any]) -> arguments.RawArguments:
    def function(arguments: dict[str, Any]) -> None: ...

    return arguments.read_raw_arguments(signatures.read(function, camel_case=False).client_parameters, schema)


def test_a_custom_schema_passes_all_arguments_in_one_parameter() -> None:
    found = raw(ORDER)
    assert found.schema == ORDER
    assert found.bind({"n": 2, "more": True}) == {"arguments": {"n": 2, "more": True}}


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        ({"n": "hunter2"}, "The arguments do not fit: n does not fit 'type' of its schema"),
        ({"n": 0}, "The arguments do not fit: n does not fit 'minimum' of its schema"),
        ({}, "The arguments do not fit: the value does not fit 'required' of its schema"),
    ],
)
def test_a_custom_schema_is_enforced(given_: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        raw(ORDER).bind(given_)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "array"}, 'the root of an inputSchema must have "type": "object"'),
        ({}, 'the root of an inputSchema must have "type": "object"'),
        ({"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"}, "the only dialect is"),
        ({"type": "object", "properties": {"x": {"$ref": "https://x.example/s"}}}, "leaves the schema"),
        ({"type": "object", "properties": {"x": {"type": "strin"}}}, "not a valid JSON Schema 2020-12"),
        ({"type": "object", "description": "x" * 70_000}, "may have 65536 bytes and 32 levels"),
    ],
)
def test_a_schema_that_may_not_be_offered_is_refused(schema: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError, match=text.replace("$", r"\$")):
        raw(schema)


def test_a_custom_schema_needs_exactly_one_parameter() -> None:
    with pytest.raises(TypeError, match="the function has one parameter before"):
        arguments.read_raw_arguments([], ORDER)


@given(
    st.fixed_dictionaries(
        {},
        optional={"a": st.integers() | st.text() | st.none(), "b": st.lists(st.integers() | st.text()), "c": st.none()},
    )
)
def test_the_schema_accepts_exactly_what_binds(sent: dict[str, Any]) -> None:
    def function(a: int | None, b: list[int] = []) -> None: ...  # noqa: B006

    found = read(function)
    try:
        found.bind(sent)
        bound = True
    except InvalidArgument:
        bound = False
    assert Draft202012Validator(found.schema).is_valid(sent) is bound


def test_a_list_that_is_wrong_a_million_times_is_not_read_to_its_end() -> None:
    class Watched(list[Any]):
        read = 0

        def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - as list has it
            type(self).read += 1
            return super().__getitem__(index)

    check = validation.read_schema({"type": "object", "properties": {"tags": {"items": {"type": "string"}}}}).read
    with pytest.raises(ValueError, match=r"tags\[0\] does not fit 'type'"):
        check({"tags": Watched([7] * 90_000)})
    assert Watched.read < 100


ECMA: list[tuple[str, str, bool]] = [  # pattern, text, whether ECMA-262 finds it there
    ("^[a-z]{1,5}$", "abc", True),
    ("^[a-z]{1,5}$", "abc\n", False),
    ("^(a$|b$)", "b\n", False),
    (r"^\$[$]$", "$$", True),
    (r"^\d+$", "12", True),
    (r"^\d+$", "\u0661\u0662", False),
    (r"^\w$", "\u00e9", False),
    (r"^\D\W$", "\u0661\u00e9", True),
    (r"^\/\-[\w.-]+$", "/-a-b.c", True),
    ("^(?=a)(?!b)a(?<=a)(?<!b)(?:b)+?$", "ab", True),
]


@pytest.mark.parametrize(("pattern", "text", "fits"), ECMA)
def test_the_end_of_a_text_and_its_digits_are_those_of_ecma_262(pattern: str, text: str, fits: bool) -> None:  # noqa: FBT001
    found = raw({"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}})
    if fits:
        assert found.bind({"x": text}) == {"arguments": {"x": text}}
        return
    with pytest.raises(InvalidArgument, match="x does not fit 'pattern' of its schema"):
        found.bind({"x": text})


@pytest.mark.parametrize("schema", [{"pattern": "("}, {"patternProperties": {"(": {}}}])
def test_a_pattern_that_python_cannot_read_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="not a valid JSON Schema 2020-12: '\\(' is not a 'regex'"):
        raw({"type": "object", **schema})


def test_members_that_cannot_be_sorted_are_not_compared_pairwise() -> None:
    class Watched(int):
        compared = 0
        __hash__ = int.__hash__

        def __eq__(self, other: object) -> bool:
            type(self).compared += 1
            return super().__eq__(other)

    check = validation.read_schema({"type": "object", "properties": {"tags": {"uniqueItems": True}}}).read
    check({"tags": [*map(Watched, range(300)), "x", None]})
    assert Watched.compared < 3000
    for twins in ([1, "1", 1], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]):
        with pytest.raises(ValueError, match="tags does not fit 'uniqueItems'"):
            check({"tags": twins})
    check({"tags": [1, True, "1", [1], [True], None]})
