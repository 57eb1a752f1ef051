"""For generated signatures, a call accepts what the published schema allows and pydantic reads, and nothing else.

Defaults arrive, and no call changes the next one.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
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
    from collections.abc import Sequence


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


class Type(NamedTuple):
    """A type, and JSON values that fit it."""

    annotation: Any
    values: st.SearchStrategy[Any]
    hashable: bool = True

    def __repr__(self) -> str:
        return f"Type({self.annotation!r})"  # a strategy of strategies writes kilobytes


WORDS = st.text("ab1é \n", max_size=4)
NUMBERS = st.integers(-9, 9) | st.integers(-(2**53), 2**53)
DATES = st.dates().map(date.isoformat)
SCALARS = [
    Type(str, WORDS),
    Type(int, NUMBERS),
    Type(float, NUMBERS | st.floats(-1e9, 1e9)),
    Type(bool, st.booleans()),
    Type(None, st.none()),
    Type(Literal["a", "b"], st.sampled_from(["a", "b"])),
    Type(Literal["a", 1, True] | None, st.sampled_from(["a", 1, True, None])),
    Type(Annotated[Literal[1, 2], Field(description="one or two")], st.sampled_from([1, 2])),
    Type(Colour, st.sampled_from(["red", "blue"])),
    Type(Level, st.sampled_from([1, 2])),
    Type(Mixed, st.sampled_from(["word", 1, True, 0.5])),
    Type(date, DATES),
    Type(datetime, st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat)),
    Type(Path, WORDS),
    Type(UUID, st.uuids().map(str)),
    Type(Decimal, NUMBERS | st.decimals(-9, 9, places=2).map(str)),
    Type(int | float, NUMBERS | st.floats(-1e9, 1e9)),
]
LIMITED = [
    Type(Annotated[int, Field(ge=1, lt=5)], st.integers(1, 4)),
    Type(Annotated[int, Field(multiple_of=3)], st.integers(-9, 9).map(lambda number: number * 3)),
    Type(Annotated[float, Field(gt=0, le=1)], st.floats(0, 1, exclude_min=True) | st.just(1)),
    Type(Annotated[str, Field(min_length=1, max_length=2)], st.text("aé", min_size=1, max_size=2)),
    Type(Annotated[str, Field(pattern="^[a-b]{1,3}$")], st.text("ab", min_size=1, max_size=3)),
    Type(Annotated[str, Field(pattern=r"^\d+$")], st.text("12", min_size=1, max_size=3)),
]
LEAVES = st.sampled_from(SCALARS) | st.sampled_from(LIMITED)
KEYS: list[tuple[Any, st.SearchStrategy[str]]] = [
    (str, WORDS),
    (Colour, st.sampled_from(["red", "blue"])),
    (Literal["a", "b"], st.sampled_from(["a", "b"])),
    (Annotated[str, Field(max_length=2)], st.text("ab", max_size=2)),
    (Annotated[str, Field(pattern="^a")], WORDS.map(lambda text: f"a{text}")),
    (date, DATES),
    (int, NUMBERS.map(str)),
    (float, st.floats(-9, 9).map(str)),
    (bool, st.sampled_from(["true", "false"])),
    (Level, st.sampled_from(["1", "2"])),
]
NUMBER = itertools.count()
JUNK = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        1,
        1.0,
        1.5,
        -3,
        "",
        "1",
        "a",
        "a\n",
        "\u0661",
        "1_0",
        " 1",
        "red",
        [],
        [1, 1],
        [True, 1],
        {},
        {"a": 1},
    ]
)


def lists(inner: Type) -> st.SearchStrategy[Type]:
    every = st.lists(inner.values, max_size=3)
    limited = Annotated[list[inner.annotation], Field(min_length=1, max_length=2)]  # type: ignore[name-defined]
    return st.sampled_from(
        [
            Type(list[inner.annotation], every, hashable=False),  # type: ignore[name-defined]
            Type(tuple[inner.annotation, ...], every, hashable=False),  # type: ignore[name-defined]
            Type(limited, st.lists(inner.values, min_size=1, max_size=2), hashable=False),
        ]
    )


def sets(inner: Type) -> Type:
    unique = st.lists(inner.values, max_size=3, unique_by=json.dumps)
    return Type(set[inner.annotation], unique, hashable=False)  # type: ignore[name-defined]


def pairs(inner: tuple[Type, Type]) -> Type:
    left, right = inner
    values = st.tuples(left.values, right.values).map(list)
    return Type(tuple[left.annotation, right.annotation], values, hashable=False)  # type: ignore[name-defined]


def dicts(of: tuple[tuple[Any, st.SearchStrategy[str]], Type]) -> Type:
    (key, names), inner = of
    return Type(dict[key, inner.annotation], st.dictionaries(names, inner.values, max_size=2), hashable=False)  # type: ignore[valid-type, name-defined]


def unions(members: Sequence[Type]) -> Type:
    annotation = Union.__getitem__(tuple(member.annotation for member in members))
    return Type(annotation, st.one_of(*(member.values for member in members)), hashable=False)


def records(fields: list[tuple[Type, bool]]) -> st.SearchStrategy[Type]:
    """Make a model, a dataclass and a TypedDict of these fields; a flag says which may be left out."""
    fields = [(_optional(field) if optional else field, optional) for field, optional in fields]
    named = {f"f{number}": field for number, field in enumerate(fields)}
    aliased = {f"F{number}": field for number, field in enumerate(fields)}
    number = next(NUMBER)  # two types of one name in one signature are refused
    model = create_model(
        f"Model{number}",
        **{
            name: (field.annotation, Field(None if optional else ..., alias=name.upper()))
            for name, (field, optional) in named.items()
        },  # type: ignore[call-overload]
    )
    rows = [
        (name, field.annotation, dataclasses.field(default=None) if optional else dataclasses.field())
        for name, (field, optional) in named.items()
    ]
    Data = dataclasses.make_dataclass(f"Data{number}", rows, kw_only=True)  # noqa: N806 - a class
    hints = {
        name: typing_extensions.NotRequired[field.annotation] if optional else field.annotation
        for name, (field, optional) in named.items()
    }
    Dict = typing_extensions.TypedDict(f"Dict{number}", hints)  # type: ignore[misc]
    made = [(model, aliased), (Data, named), (Dict, named)]
    return st.sampled_from([Type(annotation, _objects(members), hashable=False) for annotation, members in made])


def _optional(inner: Type) -> Type:
    return unions((inner, Type(type(None), st.none())))


def _objects(members: dict[str, tuple[Type, bool]]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {name: field.values for name, (field, optional) in members.items() if not optional},
        optional={name: field.values for name, (field, optional) in members.items() if optional},
    )


TYPES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.flatmap(lists),
        inner.filter(lambda member: member.hashable).map(sets),
        st.tuples(inner, inner).map(pairs),
        st.tuples(st.sampled_from(KEYS), inner).map(dicts),
        st.tuples(LEAVES, inner).map(unions),  # of two objects, a value could be either
        st.lists(st.tuples(inner, st.booleans()), max_size=3).flatmap(records),
    ),
    max_leaves=5,
)
DEFAULTS = ("none", "plain", "field", "annotated", "factory")


class Written(NamedTuple):
    """A parameter of a signature.

    Attributes:
        alias: its name on the wire, if that is another.
        default: one of DEFAULTS, the way in which the default is written.
        value: the default, as JSON.

    """

    type: Type
    alias: str | None
    default: str
    value: Any


@st.composite
def signatures(draw: st.DrawFn) -> list[Written]:
    types = draw(st.lists(TYPES, min_size=1, max_size=3))
    return [
        Written(type_, draw(st.sampled_from([None, f"the-{n}"])), draw(st.sampled_from(DEFAULTS)), draw(type_.values))
        for n, type_ in enumerate(types)
    ]


def wires(written: list[Written]) -> dict[str, Written]:
    return {parameter.alias or f"p{number}": parameter for number, parameter in enumerate(written)}


@st.composite
def arguments(draw: st.DrawFn, written: list[Written]) -> Any:  # noqa: ANN401 - JSON
    """Draw arguments that fit, and perhaps spoil them in one place."""
    names = wires(written)
    sent = {wire: draw(one.type.values) for wire, one in names.items() if one.default == "none" or draw(st.booleans())}
    return draw(spoiled(sent)) if draw(st.booleans()) else sent


@st.composite
def spoiled(draw: st.DrawFn, value: Any, top: bool = True) -> Any:  # noqa: ANN401, FBT001, FBT002
    inside: list[Any] = list(range(len(value))) if isinstance(value, list) else []
    if isinstance(value, dict):
        inside = list(value)
    deeper: int = draw(st.integers(0, 3)) if inside else 0
    if deeper:
        place = draw(st.sampled_from(inside))
        copy = value.copy()
        if draw(st.booleans()):
            copy[place] = draw(spoiled(value[place], top=False))
        else:
            del copy[place]
        return copy
    if isinstance(value, list) and value and draw(st.booleans()):
        return [*value, draw(st.sampled_from(value))]
    if isinstance(value, dict) and (top or draw(st.booleans())):
        return {**value, draw(st.sampled_from(["a", "f0", "F1", "1", "01"])): draw(JUNK)}
    return draw(JUNK)


def read(annotation: Any, value: object) -> Any:  # noqa: ANN401 - an annotation; what it makes of the value
    return TypeAdapter(annotation).validate_json(json.dumps(value), strict=True)


def function(written: list[Written], seen: list[dict[str, Any]]) -> Any:  # noqa: ANN401 - a function
    """Write it as an author would, in source; it keeps what it receives as text, and spoils it."""
    space: dict[str, Any] = {"seen": seen, "spoil": spoil, "shown": shown, "Annotated": Annotated, "Field": Field}
    needed: list[str] = []
    optional: list[str] = []
    for number, (type_, alias, default, value) in enumerate(written):
        space |= {
            f"T{number}": type_.annotation,
            f"D{number}": None if default == "none" else read(type_.annotation, value),
        }
        space[f"F{number}"] = lambda type_=type_, value=value: read(type_.annotation, value)
        alias_ = [f"alias={alias!r}"] if alias else []
        meant = {
            "field": [f"D{number}"],
            "annotated": [f"default=D{number}"],
            "factory": [f"default_factory=F{number}"],
        }
        field = f"Field({', '.join([*meant.get(default, []), *alias_])})"
        if default in ("field", "factory"):
            optional.append(f"p{number}: T{number} = {field}")
        else:
            line = (
                f"p{number}: Annotated[T{number}, {field}]"
                if alias or default == "annotated"
                else f"p{number}: T{number}"
            )
            (optional if default == "plain" else needed).append(line + (f" = D{number}" if default == "plain" else ""))
    source = f"def written({', '.join(needed + optional)}) -> str:\n"
    source += "    got = dict(locals())\n    seen.append({name: shown(value) for name, value in got.items()})\n"
    source += "    for value in got.values():\n        spoil(value)\n    return 'done'\n"
    exec(source, space)  # noqa: S102 - a signature that hypothesis wrote
    return space["written"]


def shown(value: Any) -> Any:  # noqa: ANN401 - whatever a function receives
    """Write a value with its types, and sets in an order."""
    if isinstance(value, set):
        return sorted(map(repr, value))
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(shown, value)]
    if isinstance(value, dict):
        return {repr(key): shown(member) for key, member in value.items()}
    if isinstance(value, datetime):
        return f"datetime {value.isoformat()}"  # the zone may have another class
    held = getattr(value, "__dict__", None)
    return shown(held) if held and _is_record(value) else repr(value)


def _is_record(value: object) -> bool:
    return hasattr(value, "model_fields_set") or dataclasses.is_dataclass(value)


def spoil(value: Any) -> None:  # noqa: ANN401 - whatever a function receives
    """Change a received value, and what it holds, as a careless function may."""
    if isinstance(value, dict | list | set):
        inside = list(value.values()) if isinstance(value, dict) else list(value)
        value.clear()
    elif isinstance(value, tuple):
        inside = list(value)
    else:
        held = value.__dict__ if _is_record(value) else {}
        inside = list(held.values())
        held.clear()
    for member in inside:
        spoil(member)


def _pattern(_judge: object, pattern: str, value: object, _schema: object) -> Any:  # noqa: ANN401 - errors
    """ECMA-262, as far as these patterns go: `$` is the end, and digits are ten."""
    import re  # noqa: PLC0415

    if isinstance(value, str) and not re.search(
        pattern.removesuffix("$") + (r"\Z" if pattern[-1] == "$" else ""), value, re.ASCII
    ):
        yield ValidationError("no match")


def _says(annotation: Any) -> Any:  # noqa: ANN401 - a function
    def judge(value: object) -> bool:
        try:
            if isinstance(value, str):
                read(annotation, value)
        except NotValid:
            return False
        # To pydantic, "1" is the first day of 1970.
        return not (annotation in (date, datetime) and isinstance(value, str) and value.isdigit())

    return judge


FORMATS = FormatChecker(formats=())
for name, annotation in {"date": date, "date-time": datetime, "uuid": UUID, "path": Path}.items():
    FORMATS.checks(name)(_says(annotation))
extend: Any = validators.extend
Judge: Any = extend(Draft202012Validator, {"pattern": _pattern})


@settings(max_examples=300)
@given(st.data())
def test_a_call_accepts_the_arguments_that_the_schema_allows_and_pydantic_reads(data: st.DataObject) -> None:
    written = data.draw(signatures())
    seen: list[dict[str, Any]] = []
    handler = tool(function(written, seen))
    schema = handler.describe()["inputSchema"]
    Draft202012Validator.check_schema(schema)
    called = serve(handler)
    for sent in data.draw(st.lists(arguments(written), min_size=2, max_size=3)):
        given_ = json_reader.loads(json.dumps(sent))
        request = wire.message("tools/call", {"name": "written", "arguments": given_})
        result = wire.read(called(wire.event(request), wire.Context()), "tools/call")["result"]
        bound = not result["isError"]
        allowed, is_read = Judge(schema, format_checker=FORMATS).is_valid(given_), is_read_by_pydantic(written, given_)
        assert is_read or not bound, (schema, given_, result)
        assert bound or not (allowed and is_read), (schema, given_, result)
        if bound:
            assert seen.pop() == received(written, given_)
        assert not seen
    for wire_, parameter in wires(written).items():
        published = schema["properties"][wire_]
        assert (wire_ in schema.get("required", [])) is (parameter.default == "none")
        assert ("default" in published) is (parameter.default in ("plain", "field", "annotated"))
        if "default" in published:
            got, own = (read(parameter.type.annotation, default) for default in (published["default"], parameter.value))
            # JSON has one text for "0" and for Decimal(0), as in `str | Decimal`, and one number for 1 and for 1.0.
            adapter: TypeAdapter[Any] = TypeAdapter(parameter.type.annotation)
            assert shown(got) == shown(own) or as_json(adapter, got) == as_json(adapter, own)


def as_json(adapter: TypeAdapter[Any], value: object) -> object:
    """Return a value as pydantic writes it."""
    return json.loads(adapter.dump_json(value))


def is_read_by_pydantic(written: list[Written], given_: dict[str, Any]) -> bool:
    try:
        received(written, given_)
    except NotValid:
        return False
    names = wires(written)
    return given_.keys() <= names.keys() and all(name in given_ or one.default != "none" for name, one in names.items())


def received(written: list[Written], given_: dict[str, Any]) -> dict[str, str]:
    """Say what a function should receive: by pydantic, whose reading is the author's meaning."""
    values = {name: given_.get(name, one.value) for name, one in wires(written).items()}
    return {
        f"p{number}": shown(read(one.type.annotation, values[name]))
        for number, (name, one) in enumerate(wires(written).items())
    }
