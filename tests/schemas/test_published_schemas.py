"""For generated signatures, a call accepts what the published schema allows and pydantic reads, and nothing else.

Hypothesis draws a signature, with types, aliases and defaults; a function with it is written as source. Then it draws
arguments: some fit the signature, and some are changed in one place. The function empties all that it receives, so a
default that two calls shared would be missing in the second.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Union
from uuid import UUID

import typing_extensions
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker, ValidationError, validators
from pydantic import Field, TypeAdapter, create_model
from pydantic import ValidationError as NotValid

from mcp_functions import serve, tool
from mcp_functions.protocol import json_reader
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mcp_functions.http.gateway import LambdaFunction


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(Enum):
    WORD = "word"
    ONE = 1
    YES = True
    HALF = 0.5


class TypeWithValues(NamedTuple):
    """A type, and JSON values that fit it."""

    annotation: Any
    values: st.SearchStrategy[Any]
    hashable: bool = True

    def __repr__(self) -> str:
        return f"TypeWithValues({self.annotation!r})"  # the text of a strategy has kilobytes


TEXTS = st.text("ab1é \n", max_size=4)
NUMBERS = st.integers(-9, 9) | st.integers(-(2**53), 2**53)
DATES = st.dates().map(date.isoformat)
SIMPLE_TYPES = [
    TypeWithValues(str, TEXTS),
    TypeWithValues(int, NUMBERS),
    TypeWithValues(float, NUMBERS | st.floats(-1e9, 1e9)),
    TypeWithValues(bool, st.booleans()),
    TypeWithValues(None, st.none()),
    TypeWithValues(Literal["a", "b"], st.sampled_from(["a", "b"])),
    TypeWithValues(Literal["a", 1, True] | None, st.sampled_from(["a", 1, True, None])),
    TypeWithValues(Annotated[Literal[1, 2], Field(description="one or two")], st.sampled_from([1, 2])),
    TypeWithValues(Colour, st.sampled_from(["red", "blue"])),
    TypeWithValues(Level, st.sampled_from([1, 2])),
    TypeWithValues(Mixed, st.sampled_from(["word", 1, True, 0.5])),
    TypeWithValues(date, DATES),
    TypeWithValues(datetime, st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat)),
    TypeWithValues(Path, TEXTS),
    TypeWithValues(UUID, st.uuids().map(str)),
    TypeWithValues(Decimal, NUMBERS | st.decimals(-9, 9, places=2).map(str)),
    TypeWithValues(int | float, NUMBERS | st.floats(-1e9, 1e9)),
]
TYPES_WITH_LIMITS = [
    TypeWithValues(Annotated[int, Field(ge=1, lt=5)], st.integers(1, 4)),
    TypeWithValues(Annotated[int, Field(multiple_of=3)], st.integers(-9, 9).map(lambda number: number * 3)),
    TypeWithValues(Annotated[float, Field(gt=0, le=1)], st.floats(0, 1, exclude_min=True) | st.just(1)),
    TypeWithValues(Annotated[str, Field(min_length=1, max_length=2)], st.text("aé", min_size=1, max_size=2)),
    TypeWithValues(Annotated[str, Field(pattern="^[a-b]{1,3}$")], st.text("ab", min_size=1, max_size=3)),
    TypeWithValues(Annotated[str, Field(pattern=r"^\d+$")], st.text("12", min_size=1, max_size=3)),
]
LEAVES = st.sampled_from(SIMPLE_TYPES) | st.sampled_from(TYPES_WITH_LIMITS)
KEY_TYPES: list[tuple[Any, st.SearchStrategy[str]]] = [
    (str, TEXTS),
    (Colour, st.sampled_from(["red", "blue"])),
    (Literal["a", "b"], st.sampled_from(["a", "b"])),
    (Annotated[str, Field(max_length=2)], st.text("ab", max_size=2)),
    (Annotated[str, Field(pattern="^a")], TEXTS.map(lambda text: f"a{text}")),
    (date, DATES),
    (int, NUMBERS.map(str)),
    (float, st.floats(-9, 9).map(str)),
    (bool, st.sampled_from(["true", "false"])),
    (Level, st.sampled_from(["1", "2"])),
]
COUNTER = itertools.count()
OTHER_VALUES = st.one_of(
    st.sampled_from([None, True, False, 0, 1, 1.0, 1.5, -3, "", "1", "a", "a\n", "\u0661", "1_0", " 1", "red"]),
    st.sampled_from([[], [1, 1], [True, 1], {}, {"a": 1}]),
)


def list_types(inner: TypeWithValues) -> st.SearchStrategy[TypeWithValues]:
    every = st.lists(inner.values, max_size=3)
    limited = Annotated[list[inner.annotation], Field(min_length=1, max_length=2)]  # type: ignore[name-defined]
    return st.sampled_from(
        [
            TypeWithValues(list[inner.annotation], every, hashable=False),  # type: ignore[name-defined]
            TypeWithValues(tuple[inner.annotation, ...], every, hashable=False),  # type: ignore[name-defined]
            TypeWithValues(limited, st.lists(inner.values, min_size=1, max_size=2), hashable=False),
        ]
    )


def set_types(inner: TypeWithValues) -> TypeWithValues:
    unique = st.lists(inner.values, max_size=3, unique_by=json.dumps)
    return TypeWithValues(set[inner.annotation], unique, hashable=False)  # type: ignore[name-defined]


def tuple_types(inner: tuple[TypeWithValues, TypeWithValues]) -> TypeWithValues:
    left, right = inner
    values = st.tuples(left.values, right.values).map(list)
    return TypeWithValues(tuple[left.annotation, right.annotation], values, hashable=False)  # type: ignore[name-defined]


def dict_types(members: tuple[tuple[Any, st.SearchStrategy[str]], TypeWithValues]) -> TypeWithValues:
    (key, names), inner = members
    annotation = dict[key, inner.annotation]  # type: ignore[valid-type, name-defined]
    return TypeWithValues(annotation, st.dictionaries(names, inner.values, max_size=2), hashable=False)


def union_type(members: Sequence[TypeWithValues]) -> TypeWithValues:
    annotation = Union.__getitem__(tuple(member.annotation for member in members))
    return TypeWithValues(annotation, st.one_of(*(member.values for member in members)), hashable=False)


class FieldOf(NamedTuple):
    """A field of a model, a dataclass or a TypedDict."""

    type: TypeWithValues
    is_optional: bool


def object_types(drawn: list[tuple[TypeWithValues, bool]]) -> st.SearchStrategy[TypeWithValues]:
    """Make a model, whose fields have aliases, a dataclass and a TypedDict. A flag says that a field is optional."""
    fields = {}
    for number, (type_, is_optional) in enumerate(drawn):
        field_type = union_type((type_, TypeWithValues(None, st.none()))) if is_optional else type_
        fields[f"f{number}"] = FieldOf(field_type, is_optional)
    aliased = {name.upper(): field for name, field in fields.items()}
    number = next(COUNTER)  # two types of one name in one signature are refused
    classes = [
        (_model(f"Model{number}", fields), aliased),
        (_dataclass(f"Data{number}", fields), fields),
        (_typed_dict(f"Dict{number}", fields), fields),
    ]
    return st.sampled_from([TypeWithValues(cls, _objects(names), hashable=False) for cls, names in classes])


def _model(class_name: str, fields: dict[str, FieldOf]) -> Any:  # noqa: ANN401 - a class
    members: dict[str, Any] = {}
    for name, field in fields.items():
        members[name] = (field.type.annotation, Field(None if field.is_optional else ..., alias=name.upper()))
    return create_model(class_name, **members)


def _dataclass(class_name: str, fields: dict[str, FieldOf]) -> Any:  # noqa: ANN401 - a class
    members: list[Any] = []
    for name, field in fields.items():
        default = dataclasses.field(default=None) if field.is_optional else dataclasses.field()
        members.append((name, field.type.annotation, default))
    return dataclasses.make_dataclass(class_name, members, kw_only=True)


def _typed_dict(class_name: str, fields: dict[str, FieldOf]) -> Any:  # noqa: ANN401 - a class
    members: dict[str, Any] = {}
    for name, field in fields.items():
        members[name] = (
            typing_extensions.NotRequired[field.type.annotation] if field.is_optional else field.type.annotation
        )
    return typing_extensions.TypedDict(class_name, members)  # type: ignore[operator]


def _objects(fields: dict[str, FieldOf]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {name: field.type.values for name, field in fields.items() if not field.is_optional},
        optional={name: field.type.values for name, field in fields.items() if field.is_optional},
    )


TYPES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.flatmap(list_types),
        inner.filter(lambda member: member.hashable).map(set_types),
        st.tuples(inner, inner).map(tuple_types),
        st.tuples(st.sampled_from(KEY_TYPES), inner).map(dict_types),
        st.tuples(LEAVES, inner).map(union_type),  # of two objects, a value could be either
        st.lists(st.tuples(inner, st.booleans()), max_size=3).flatmap(object_types),
    ),
    max_leaves=5,
)
DEFAULT_STYLES = ("none", "plain", "field", "annotated", "factory")


class Parameter(NamedTuple):
    """A parameter of a signature.

    Attributes:
        name: in the function.
        wire_name: in the arguments of a call: the name or an alias.
        default_style: one of DEFAULT_STYLES, the way in which the author writes the default.
        default: as JSON.

    """

    name: str
    wire_name: str
    type: TypeWithValues
    default_style: str
    default: Any

    @property
    def is_required(self) -> bool:
        return self.default_style == "none"


@st.composite
def signatures(draw: st.DrawFn) -> list[Parameter]:
    parameters = []
    for number, type_ in enumerate(draw(st.lists(TYPES, min_size=1, max_size=3))):
        name = f"p{number}"
        wire_name = draw(st.sampled_from([name, f"the-{number}"]))
        parameters.append(Parameter(name, wire_name, type_, draw(st.sampled_from(DEFAULT_STYLES)), draw(type_.values)))
    return parameters


@st.composite
def arguments(draw: st.DrawFn, parameters: list[Parameter]) -> Any:  # noqa: ANN401 - JSON
    """Draw arguments that fit, or that are changed in one place."""
    fitting = {}
    for parameter in parameters:
        if parameter.is_required or draw(st.booleans()):
            fitting[parameter.wire_name] = draw(parameter.type.values)
    drawn = draw(changed(fitting)) if draw(st.booleans()) else fitting
    return json_reader.loads(json.dumps(drawn))  # as the gateway reads them: 1.0 is an int


@st.composite
def changed(draw: st.DrawFn, value: Any, top: bool = True) -> Any:  # noqa: ANN401, FBT001, FBT002
    """Replace, remove, repeat or add one member, perhaps deep inside. The arguments themselves stay an object."""
    members: list[Any] = []
    if isinstance(value, list | dict):
        members = list(value) if isinstance(value, dict) else list(range(len(value)))
    if members and draw(st.integers(0, 3)) > 0:
        member = draw(st.sampled_from(members))
        copy = value.copy()
        if draw(st.booleans()):
            copy[member] = draw(changed(value[member], top=False))
        else:
            del copy[member]
        return copy
    if isinstance(value, list) and value and draw(st.booleans()):
        return [*value, draw(st.sampled_from(value))]
    if isinstance(value, dict) and (top or draw(st.booleans())):
        return {**value, draw(st.sampled_from(["a", "f0", "F1", "1", "01"])): draw(OTHER_VALUES)}
    return draw(OTHER_VALUES)


def declare(parameter: Parameter) -> str:
    """Write a parameter as an author would. T_p0 is its type, D_p0 its default, F_p0 a factory of the default."""
    name = parameter.name
    alias = [f"alias={parameter.wire_name!r}"] if parameter.wire_name != name else []
    annotation = f"Annotated[T_{name}, Field({alias[0]})]" if alias else f"T_{name}"
    match parameter.default_style:
        case "plain":
            return f"{name}: {annotation} = D_{name}"
        case "field":
            return f"{name}: T_{name} = Field({', '.join([f'D_{name}', *alias])})"
        case "factory":
            return f"{name}: T_{name} = Field({', '.join([f'default_factory=F_{name}', *alias])})"
        case "annotated":
            return f"{name}: Annotated[T_{name}, Field({', '.join([f'default=D_{name}', *alias])})]"
        case _:
            return f"{name}: {annotation}"


def write_function(parameters: list[Parameter], received: list[dict[str, Any]]) -> Any:  # noqa: ANN401 - a function
    """Make a function with this signature. It appends a description of what it receives, and empties all of it."""

    def receive(values: dict[str, Any]) -> str:
        received.append({name: describe(value) for name, value in values.items()})
        empty(values)
        return "done"

    names: dict[str, Any] = {"receive": receive, "Annotated": Annotated, "Field": Field}
    for parameter in parameters:
        make_default = functools.partial(read_with_pydantic, parameter.type.annotation, parameter.default)
        names |= {f"T_{parameter.name}": parameter.type.annotation, f"F_{parameter.name}": make_default}
        names[f"D_{parameter.name}"] = make_default()
    declarations = sorted(map(declare, parameters), key=lambda declaration: " = " in declaration)
    source = f"def generated({', '.join(declarations)}) -> str:\n    return receive(dict(locals()))\n"
    exec(source, names)  # noqa: S102 - Python has no other way to make a signature
    return names["generated"]


def read_with_pydantic(annotation: Any, value: object) -> Any:  # noqa: ANN401 - an annotation; a value of it
    return TypeAdapter(annotation).validate_json(json.dumps(value), strict=True)


def describe(value: Any) -> Any:  # noqa: ANN401 - a value of any type
    """Describe a value and its types, so that 1, 1.0 and True differ; the members of a set have an order."""
    if isinstance(value, set):
        return sorted(map(repr, value))
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(describe, value)]
    if isinstance(value, dict):
        return {repr(key): describe(member) for key, member in value.items()}
    if isinstance(value, datetime):
        return f"datetime {value.isoformat()}"  # two classes may describe one time zone
    members = _members(value)
    return describe(members) if members else repr(value)


def _members(value: object) -> dict[str, Any]:
    """Return the members of a model or a dataclass; {} for any other value."""
    if hasattr(value, "model_fields_set") or dataclasses.is_dataclass(value):
        return vars(value)
    return {}


def empty(value: Any) -> None:  # noqa: ANN401 - a value of any type
    """Remove all members of a value, and of what is inside it, as a careless function may."""
    container = value if isinstance(value, dict | list | set | tuple) else _members(value)
    members = list(container.values()) if isinstance(container, dict) else list(container)
    if not isinstance(container, tuple):
        container.clear()
    for member in members:
        empty(member)


def check_pattern(_validator: object, pattern: str, value: object, _schema: object) -> Iterator[ValidationError]:
    """Check a pattern as ECMA-262 reads it: `$` is the end of the text, and a digit is one of ten."""
    end = r"\Z" if pattern.endswith("$") else ""
    if isinstance(value, str) and not re.search(pattern.removesuffix("$") + end, value, re.ASCII):
        yield ValidationError("no match")


def format_check(annotation: Any) -> Callable[[object], bool]:  # noqa: ANN401 - an annotation
    def has_format(value: object) -> bool:
        if not isinstance(value, str):
            return True
        if annotation in (date, datetime) and value.isdigit():
            return False  # pydantic reads "1" as a second of 1970
        try:
            read_with_pydantic(annotation, value)
        except NotValid:
            return False
        return True

    return has_format


FORMATS = FormatChecker(formats=())
for name, annotation in {"date": date, "date-time": datetime, "uuid": UUID, "path": Path}.items():
    FORMATS.checks(name)(format_check(annotation))
extend: Any = validators.extend
Validator: Any = extend(Draft202012Validator, {"pattern": check_pattern})


@settings(max_examples=150)
@given(st.data())
def test_a_call_accepts_the_arguments_that_the_schema_allows_and_pydantic_reads(data: st.DataObject) -> None:
    parameters = data.draw(signatures())
    received: list[dict[str, Any]] = []
    handler = tool(write_function(parameters, received))
    function = serve(handler)
    validator = Validator(handler.describe()["inputSchema"], format_checker=FORMATS)
    for sent in data.draw(st.lists(arguments(parameters), min_size=2, max_size=3)):
        expected = read_arguments(parameters, sent)
        is_accepted = call(function, sent)
        if is_accepted:
            assert received.pop() == expected
        assert is_accepted or expected is None or not validator.is_valid(sent)
        assert received == []


@given(signatures())
def test_the_schema_publishes_which_parameters_are_required(parameters: list[Parameter]) -> None:
    schema = tool(write_function(parameters, [])).describe()["inputSchema"]
    Draft202012Validator.check_schema(schema)
    assert set(schema.get("required", [])) == {parameter.wire_name for parameter in parameters if parameter.is_required}


@given(signatures())
def test_the_schema_publishes_each_default_except_those_of_factories(parameters: list[Parameter]) -> None:
    properties = tool(write_function(parameters, [])).describe()["inputSchema"]["properties"]
    for parameter in parameters:
        is_published = parameter.default_style in ("plain", "field", "annotated")
        published = properties[parameter.wire_name].get("default", ABSENT)
        assert (published is not ABSENT) is is_published
        if is_published:
            assert is_same_default(parameter.type.annotation, published, parameter.default)


ABSENT = object()


def is_same_default(annotation: Any, published: object, default: object) -> bool:  # noqa: ANN401 - an annotation
    """Compare the values as the function receives them, or as pydantic writes them.

    JSON has one text for "0" and for Decimal(0), as in `str | Decimal`, and one number for 1 and for 1.0.
    """
    one, other = read_with_pydantic(annotation, published), read_with_pydantic(annotation, default)
    if describe(one) == describe(other):
        return True
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    is_same: bool = json.loads(adapter.dump_json(one)) == json.loads(adapter.dump_json(other))
    return is_same


def call(function: LambdaFunction, sent: object) -> bool:
    """Call the tool, and return whether it accepted the arguments."""
    request = wire.message("tools/call", {"name": "generated", "arguments": sent})
    response = function(wire.event(request), wire.Context())
    return not wire.read(response, "tools/call")["result"]["isError"]


def read_arguments(parameters: list[Parameter], sent: dict[str, Any]) -> dict[str, Any] | None:
    """Describe what the function should receive, as pydantic reads it; None if the arguments are invalid."""
    required = {parameter.wire_name for parameter in parameters if parameter.is_required}
    if not required <= sent.keys() <= {parameter.wire_name for parameter in parameters}:
        return None
    received = {}
    for parameter in parameters:
        value = sent.get(parameter.wire_name, parameter.default)
        try:
            received[parameter.name] = describe(read_with_pydantic(parameter.type.annotation, value))
        except NotValid:
            return None
    return received
