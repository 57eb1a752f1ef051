"""Types as authors write them, each with generated values: the oracle of what is read, written and recorded.

The types follow the examples of pydantic's documentation: types, models, aliases, validators and serializers of every
kind; dataclasses, TypedDicts, NamedTuples, enums, unions, generics and types that refer to themselves.

The corpus has no type of which pydantic itself cannot read what it writes, by the number of its issue:

    12448    a dict whose keys are a Flag

The toolkit changes three things of pydantic, so that these types are in the corpus (`schemas.pydantic_cores`):

    8708, 9968      a member of an Enum in a Literal cannot be read from JSON
    10629           an Enum whose values are tuples cannot be read from JSON
    10402, 10964    the serializer warns of what a PlainValidator is written as
"""

from __future__ import annotations

import functools
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Network, IPv6Address
from pathlib import PurePosixPath
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, Optional, TypeVar, Union
from uuid import UUID

import annotated_types as limits
import typing_extensions
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasGenerator,
    AliasPath,
    AnyUrl,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Discriminator,
    Field,
    HttpUrl,
    Json,
    NaiveDatetime,
    PlainSerializer,
    PlainValidator,
    PositiveInt,
    RootModel,
    SecretStr,
    StrictInt,
    StringConstraints,
    Tag,
    WrapSerializer,
    WrapValidator,
    computed_field,
    conint,
    field_serializer,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass as pydantic_dataclass

from mcp_functions.schemas.annotations import Between, Format, Length, Title, Titles


class Case(NamedTuple):
    """A type of the corpus.

    Attributes:
        annotation: the type.
        values: draws values that a function with this annotation returns.
        follows_schema: whether the published schema says all that is read: no author's validator, no rule of pydantic
            that JSON Schema cannot say.
        is_kept: whether a record gives back an equal value.

    """

    annotation: Any
    values: st.SearchStrategy[Any]
    follows_schema: bool = True
    is_kept: bool = True


SMALL = st.integers(-(2**53), 2**53)
REALS = st.floats(allow_nan=False, allow_infinity=False, width=32)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
DAYS = st.dates()
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-8))])
AWARE = st.datetimes(timezones=ZONES)
NAIVE = st.datetimes()
SPANS = st.timedeltas(timedelta(days=-400), timedelta(days=400))


class Kind(Enum):
    CAT = "cat"
    DOG = "dog"


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Size(IntEnum):
    SMALL = 1
    LARGE = 2


class Mixed(Enum):
    ONE = 1
    TWO = "two"


class Planet(Enum):
    EARTH = (1, 6.4)
    MARS = (2, 3.4)


class Rights(Flag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: int
    y: int = 0


@dataclass
class Leg:
    """One part of a journey."""

    to: str
    day: date | None = None
    tags: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Trip:
    legs: list[Leg]
    price: float = 1.5
    at: datetime | None = None


@dataclass(kw_only=True)
class Round(Trip):
    back: bool


@dataclass
class WithInit:
    x: int
    double: int = field(init=False)

    def __post_init__(self) -> None:
        self.double = 2 * self.x


@dataclass
class Tree:
    name: str
    children: list[Tree] = field(default_factory=list)


@pydantic_dataclass
class Measured:
    metres: float
    name: str = Field(default="", alias="theName")


class Seat(typing_extensions.TypedDict):
    row: int
    letter: NotRequired[str]


class Counts(typing_extensions.TypedDict, extra_items=int):  # type: ignore[call-arg]  # mypy does not know PEP 728
    name: str


class Stay(typing_extensions.TypedDict, total=False):
    town: typing_extensions.Required[str]
    since: date
    guests: list[Seat]


class User(BaseModel):
    name: str
    age: int | None = None


class Admin(User):
    password_hash: str = "hunter2"  # noqa: S105 - a value


class Team(BaseModel):
    lead: User
    members: list[User] = []
    by_name: dict[str, User] = {}


class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    first_name: str = Field(alias="firstName")


class CamelCase(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)

    home_town: str
    zip_code: int | None = None


class TwoNames(BaseModel):
    number: int = Field(validation_alias="id", serialization_alias="no")


class Choices(BaseModel):
    number: int = Field(validation_alias=AliasChoices("id", "ident"))


class Generated(BaseModel):
    model_config = ConfigDict(
        alias_generator=AliasGenerator(validation_alias=lambda name: f"in_{name}", serialization_alias=str.upper)
    )

    town: str


class ByPath(BaseModel):
    first: str = Field(validation_alias=AliasPath("names", 0))


class Hidden(BaseModel):
    owner: str
    secret: str = Field(default="s", exclude=True)


class HiddenRequired(BaseModel):
    owner: str
    secret: str = Field(exclude=True)


class Computed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    width: int

    @computed_field
    def area(self) -> int:
        return self.width**2

    @computed_field(alias="theLabel")  # type: ignore[prop-decorator]
    @property
    def label(self) -> str:
        return f"w{self.width}"


class Cached(BaseModel):
    width: int

    @computed_field  # type: ignore[prop-decorator]
    @functools.cached_property
    def area(self) -> float:
        return self.width / 2


class FieldSerialized(BaseModel):
    at: datetime

    @field_serializer("at")
    def write_at(self, at: datetime) -> int:
        return at.year


class Untold(BaseModel):
    """Its serializer does not say what it returns."""

    number: int

    @field_serializer("number")
    def write_number(self, number: int):  # type: ignore[no-untyped-def]  # noqa: ANN201 - this is the case
        return [number]


class WholeSerialized(BaseModel):
    number: int

    @model_serializer
    def write(self) -> str:
        return f"n{self.number}"


class WrapSerialized(BaseModel):
    number: int

    @model_serializer(mode="wrap")
    def write(self, handler: Any) -> dict[str, Any]:  # noqa: ANN401
        return {**handler(self), "version": 1}


class Before(BaseModel):
    day: date
    nights: int = 1

    @model_validator(mode="before")
    @classmethod
    def keep(cls, data: Any) -> Any:  # noqa: ANN401
        return data


class Wrapped(BaseModel):
    day: date
    at: datetime | None = None

    @model_validator(mode="wrap")
    @classmethod
    def keep(cls, data: Any, handler: Any) -> Any:  # noqa: ANN401
        return handler(data)


class FieldBefore(BaseModel):
    days: list[date]

    @field_validator("days", mode="before")
    @classmethod
    def keep(cls, data: Any) -> Any:  # noqa: ANN401
        return data


def read_day(day: Any) -> date:  # noqa: ANN401
    return day if isinstance(day, date) else date.fromisoformat(day)


class ByPlainValidator(BaseModel):
    day: Annotated[date, PlainValidator(read_day, json_schema_input_type=str)]


class After(BaseModel):
    low: int
    high: int

    @model_validator(mode="after")
    def swap(self) -> After:
        return self


class Outer(BaseModel):
    inner: Before
    others: tuple[Wrapped, ...] = ()


class Forbidding(BaseModel):
    model_config = ConfigDict(extra="forbid")

    x: int


class Allowing(BaseModel):
    model_config = ConfigDict(extra="allow")

    x: int


class AllowingNumbers(BaseModel):
    model_config = ConfigDict(extra="allow")

    __pydantic_extra__: dict[str, int]


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)

    day: date
    tags: set[str] = set()
    pair: tuple[int, str] = (1, "a")


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)

    x: int


class EnumValues(BaseModel):
    model_config = ConfigDict(use_enum_values=True)

    kind: Kind


class Seconds(BaseModel):
    model_config = ConfigDict(ser_json_timedelta="float")

    span: timedelta


class Base64(BaseModel):
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    data: bytes


class Titled(BaseModel):
    model_config = ConfigDict(title="A title", json_schema_extra={"examples": [{"x": 1}]})

    x: int = Field(title="The X", description="A number", examples=[1], gt=0)


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str] = []


class EnumCat(BaseModel):
    kind: Literal[Kind.CAT]
    lives: int = 9


class EnumDog(BaseModel):
    kind: Literal[Kind.DOG] = Kind.DOG


@dataclass
class TaggedLeg:
    kind: Literal[Kind.CAT]
    to: str


class Owner(BaseModel):
    pet: Annotated[EnumCat | EnumDog, Field(discriminator="kind")]
    other: EnumCat | None = None


class Node(BaseModel):
    name: str
    next: Node | None = None
    children: list[Node] = []


Item = TypeVar("Item")


class Page(BaseModel, Generic[Item]):
    items: list[Item]
    total: int = 0


@dataclass
class Box(Generic[Item]):
    inside: Item


class Ids(RootModel[list[int]]):
    pass


class Names(RootModel[dict[str, User]]):
    pass


class Everything(BaseModel):
    id: UUID
    at: AwareDatetime
    span: timedelta = timedelta(seconds=3.5)
    price: Decimal = Decimal("1.10")
    home: IPv4Address = IPv4Address("127.0.0.1")
    path: PurePosixPath = PurePosixPath("/tmp")  # noqa: S108 - a value
    link: AnyUrl | None = None
    level: Size = Size.SMALL
    point: Point = Point(1)


class WithNoneDefault(BaseModel):
    limit: int = None  # type: ignore[assignment]  # as many write it
    name: str = 5  # type: ignore[assignment]
    secret: SecretStr = SecretStr("s")


def tag_of(value: Any) -> str:  # noqa: ANN401
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return "cat" if kind == "cat" else "dog"


def users() -> st.SearchStrategy[User]:
    return st.builds(User, name=TEXTS, age=st.none() | SMALL)


def made(cls: Any, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:  # noqa: ANN401
    """Draw objects of a model, made as a client's JSON would make them: by alias or by name."""
    return st.fixed_dictionaries(fields).map(cls)


def validated(cls: Any, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:  # noqa: ANN401
    return st.fixed_dictionaries(fields).map(cls.model_validate)


LEGS = st.builds(Leg, TEXTS, st.none() | DAYS, st.lists(TEXTS, max_size=2))
NODES = st.recursive(
    st.builds(Node, name=TEXTS),
    lambda inner: st.builds(Node, name=TEXTS, next=st.none() | inner, children=st.lists(inner, max_size=2)),
    max_leaves=3,
)
TREES = st.recursive(st.builds(Tree, TEXTS), lambda inner: st.builds(Tree, TEXTS, st.lists(inner, max_size=2)))
CATS = st.builds(EnumCat, kind=st.just(Kind.CAT), lives=SMALL)
PETS = CATS | st.builds(EnumDog)
Alias = typing_extensions.TypeAliasType("Alias", list[date])

CASES: dict[str, Case] = {
    # scalars
    "str": Case(str, TEXTS),
    "int": Case(int, SMALL),
    "float": Case(float, REALS),
    "bool": Case(bool, st.booleans()),
    "None": Case(type(None), st.none()),
    "Any": Case(Any, st.none() | SMALL | TEXTS),
    "int | None": Case(int | None, st.none() | SMALL),
    "int | str": Case(int | str, SMALL | TEXTS),
    "Union": Case(Union[bool, float, str], st.booleans() | REALS | TEXTS),  # noqa: UP007
    "Optional": Case(Optional[date], st.none() | DAYS),  # noqa: UP045
    # dates and times
    "date": Case(date, DAYS),
    "datetime": Case(datetime, AWARE | NAIVE),
    "AwareDatetime": Case(AwareDatetime, AWARE, follows_schema=False),
    "NaiveDatetime": Case(NaiveDatetime, NAIVE, follows_schema=False),
    "time": Case(time, st.times()),
    "time with a zone": Case(time, st.times(timezones=ZONES)),
    "timedelta": Case(timedelta, SPANS),
    "date | str": Case(date | str, DAYS | TEXTS, is_kept=False),
    "list[date]": Case(list[date], st.lists(DAYS, max_size=2)),
    "dict[date, int]": Case(dict[date, int], st.dictionaries(DAYS, SMALL, max_size=2), follows_schema=False),
    "Seconds": Case(Seconds, st.builds(Seconds, span=SPANS.map(lambda span: timedelta(days=span.days)))),
    # standard library
    "UUID": Case(UUID, st.uuids()),
    "Decimal": Case(Decimal, st.decimals(allow_nan=False, allow_infinity=False), follows_schema=False),
    "Decimal with limits": Case(
        Annotated[Decimal, Field(max_digits=5, decimal_places=2)], st.decimals(0, 999, places=2), follows_schema=False
    ),
    "Fraction": Case(Fraction, st.fractions(), follows_schema=False),
    "IPv4Address": Case(IPv4Address, st.ip_addresses(v=4)),
    "IPv6Address": Case(IPv6Address, st.ip_addresses(v=6)),
    "IPv4Network": Case(IPv4Network, st.just(IPv4Network("10.0.0.0/8"))),
    "path": Case(PurePosixPath, TEXTS.map(PurePosixPath)),
    "bytes": Case(bytes, TEXTS.map(str.encode)),
    "Base64": Case(Base64, st.builds(Base64, data=st.binary(max_size=4))),
    "complex": Case(complex, st.complex_numbers(allow_nan=False, allow_infinity=False), follows_schema=False),
    # enums and literals
    "Kind": Case(Kind, st.sampled_from(Kind)),
    "Colour": Case(Colour, st.sampled_from(Colour)),
    "Size": Case(Size, st.sampled_from(Size)),
    "Mixed": Case(Mixed, st.sampled_from(Mixed)),
    "Rights": Case(
        Rights, st.sampled_from([Rights.READ, Rights.WRITE, Rights.READ | Rights.WRITE]), follows_schema=False
    ),
    "Planet": Case(Planet, st.sampled_from(Planet)),
    "list[Planet] | None": Case(list[Planet] | None, st.none() | st.lists(st.sampled_from(Planet), max_size=2)),
    "Literal of a tuple": Case(Literal[Planet.MARS], st.just(Planet.MARS)),
    "Literal": Case(Literal["a", 1] | None, st.sampled_from(["a", 1, None])),
    "Literal of a member": Case(Literal[Kind.CAT], st.just(Kind.CAT)),
    "Literal of two enums": Case(Literal[Kind.CAT, Size.LARGE, "x"], st.sampled_from([Kind.CAT, Size.LARGE, "x"])),
    "list of a Literal of members": Case(
        list[Literal[Kind.CAT, Kind.DOG]], st.lists(st.sampled_from(Kind), max_size=2)
    ),
    "EnumCat": Case(EnumCat, CATS),
    "union tagged by members": Case(Annotated[EnumCat | EnumDog, Field(discriminator="kind")], PETS),
    "Owner": Case(Owner, st.builds(Owner, pet=PETS, other=st.none() | CATS)),
    "TaggedLeg": Case(TaggedLeg, st.builds(TaggedLeg, st.just(Kind.CAT), TEXTS)),
    "EnumValues": Case(EnumValues, st.builds(EnumValues, kind=st.sampled_from(Kind))),
    # containers
    "list": Case(list, st.lists(SMALL, max_size=2)),
    "list[int]": Case(list[int], st.lists(SMALL, max_size=2)),
    "dict[str, float]": Case(dict[str, float], st.dictionaries(TEXTS, REALS, max_size=2)),
    "dict[int, str]": Case(dict[int, str], st.dictionaries(SMALL, TEXTS, max_size=2), follows_schema=False),
    "dict[Kind, int]": Case(dict[Kind, int], st.dictionaries(st.sampled_from(Kind), SMALL)),
    "dict[UUID, int]": Case(dict[UUID, int], st.dictionaries(st.uuids(), SMALL, max_size=1), follows_schema=False),
    "set[int]": Case(set[int], st.sets(SMALL, max_size=3)),
    "frozenset[str]": Case(frozenset[str], st.frozensets(TEXTS, max_size=3)),
    "tuple[int, date]": Case(tuple[int, date], st.tuples(SMALL, DAYS)),
    "tuple[str, ...]": Case(tuple[str, ...], st.lists(TEXTS, max_size=2).map(tuple)),
    "tuple[()]": Case(tuple[()], st.just(())),
    "deque": Case(deque[int], st.lists(SMALL, max_size=2).map(deque)),
    "OrderedDict": Case(OrderedDict[str, int], st.dictionaries(TEXTS, SMALL, max_size=2).map(OrderedDict)),
    "Sequence": Case(Sequence[date], st.lists(DAYS, max_size=2)),
    "Mapping": Case(Mapping[str, date], st.dictionaries(TEXTS, DAYS, max_size=2)),
    "Point": Case(Point, st.builds(Point, SMALL, SMALL), follows_schema=False),
    "list[Point]": Case(list[Point], st.lists(st.builds(Point, SMALL), max_size=2), follows_schema=False),
    "Alias": Case(Alias, st.lists(DAYS, max_size=2)),
    # dataclasses and TypedDicts
    "Leg": Case(Leg, LEGS),
    "Trip": Case(Trip, st.builds(Trip, st.lists(LEGS, max_size=2), REALS, st.none() | NAIVE)),
    "Round": Case(Round, st.builds(Round, legs=st.lists(LEGS, max_size=1), back=st.booleans())),
    "WithInit": Case(WithInit, st.builds(WithInit, SMALL), is_kept=False),
    "Tree": Case(Tree, TREES),
    "Measured": Case(Measured, REALS.map(lambda metres: Measured(metres, theName="x"))),
    "Box[int]": Case(Box[int], st.builds(Box, SMALL)),
    "Leg | None": Case(Leg | None, st.none() | LEGS),
    "Leg | int": Case(Leg | int, LEGS | SMALL),
    "dict[str, Leg]": Case(dict[str, Leg], st.dictionaries(TEXTS, LEGS, max_size=2)),
    "Seat": Case(Seat, st.fixed_dictionaries({"row": SMALL}, optional={"letter": TEXTS})),
    "Counts": Case(Counts, st.just({"name": "a", "b": 1})),
    "Stay": Case(
        Stay,
        st.fixed_dictionaries(
            {"town": TEXTS},
            optional={"since": DAYS, "guests": st.lists(st.fixed_dictionaries({"row": SMALL}), max_size=1)},
        ),
    ),
    # models
    "User": Case(User, users()),
    "Team": Case(Team, st.builds(Team, lead=users(), members=st.lists(users(), max_size=2))),
    "list[User]": Case(list[User], st.lists(users(), max_size=2)),
    "User | Leg": Case(User | Leg, users() | LEGS),
    "User | str": Case(User | str, users() | TEXTS),
    "Forbidding": Case(Forbidding, st.builds(Forbidding, x=SMALL)),
    "Allowing": Case(Allowing, st.builds(Allowing, x=SMALL, more=TEXTS)),
    "AllowingNumbers": Case(AllowingNumbers, st.builds(AllowingNumbers, more=SMALL)),
    "Strict": Case(Strict, st.builds(Strict, day=DAYS, tags=st.sets(TEXTS, max_size=2))),
    "Frozen": Case(Frozen, st.builds(Frozen, x=SMALL)),
    "Titled": Case(Titled, st.builds(Titled, x=st.integers(1, 5))),
    "Everything": Case(Everything, st.builds(Everything, id=st.uuids(), at=AWARE), follows_schema=False),
    "WithNoneDefault": Case(
        WithNoneDefault, st.builds(WithNoneDefault, limit=SMALL, name=TEXTS), is_kept=False, follows_schema=False
    ),
    "Node": Case(Node, NODES),
    "Page[User]": Case(Page[User], st.builds(Page[User], items=st.lists(users(), max_size=2))),
    "Page[date]": Case(Page[date], st.builds(Page[date], items=st.lists(DAYS, max_size=2))),
    "Ids": Case(Ids, st.lists(SMALL, max_size=2).map(Ids)),
    "Names": Case(Names, st.dictionaries(TEXTS, users(), max_size=1).map(Names)),
    "tagged union": Case(
        Annotated[Cat | Dog, Field(discriminator="kind")],
        st.builds(Cat, kind=st.just("cat"), lives=SMALL) | st.builds(Dog, kind=st.just("dog")),
    ),
    "union tagged by a function": Case(
        Annotated[Annotated[Cat, Tag("cat")] | Annotated[Dog, Tag("dog")], Discriminator(tag_of)],
        st.builds(Cat, kind=st.just("cat")) | st.builds(Dog, kind=st.just("dog")),
    ),
    "left to right": Case(Annotated[int | str, Field(union_mode="left_to_right")], SMALL, is_kept=True),
    # aliases
    "Aliased": Case(Aliased, st.builds(Aliased, first_name=TEXTS)),
    "CamelCase": Case(CamelCase, st.builds(CamelCase, homeTown=TEXTS)),
    "TwoNames": Case(TwoNames, validated(TwoNames, id=SMALL)),
    "Choices": Case(Choices, validated(Choices, ident=SMALL)),
    "Generated": Case(Generated, validated(Generated, in_town=TEXTS)),
    "ByPath": Case(ByPath, TEXTS.map(lambda text: ByPath.model_validate({"names": [text]})), follows_schema=False),
    # what is written is not what is read
    "Hidden": Case(Hidden, st.builds(Hidden, owner=TEXTS)),
    "HiddenRequired": Case(HiddenRequired, st.builds(HiddenRequired, owner=TEXTS, secret=TEXTS), is_kept=False),
    "Computed": Case(Computed, st.builds(Computed, width=SMALL)),
    "Cached": Case(Cached, st.builds(Cached, width=st.integers(-9, 9))),
    "FieldSerialized": Case(FieldSerialized, st.builds(FieldSerialized, at=AWARE), is_kept=False),
    "Untold": Case(Untold, st.builds(Untold, number=SMALL), is_kept=False),
    "WholeSerialized": Case(WholeSerialized, st.builds(WholeSerialized, number=SMALL), is_kept=False),
    "WrapSerialized": Case(WrapSerialized, st.builds(WrapSerialized, number=SMALL)),
    "PlainSerializer": Case(Annotated[int, PlainSerializer(lambda number: f"<{number}>", return_type=str)], SMALL),
    "WrapSerializer": Case(Annotated[date, WrapSerializer(lambda day, _write: day.year, return_type=int)], DAYS),
    "Json": Case(Json[list[int]], st.just("[1, 2]"), follows_schema=False, is_kept=False),
    "SecretStr": Case(SecretStr, TEXTS.map(SecretStr), is_kept=False),
    # validators
    "Before": Case(Before, st.builds(Before, day=DAYS), follows_schema=False),
    "Wrapped": Case(Wrapped, st.builds(Wrapped, day=DAYS, at=st.none() | AWARE), follows_schema=False),
    "FieldBefore": Case(FieldBefore, st.builds(FieldBefore, days=st.lists(DAYS, max_size=2)), follows_schema=False),
    "After": Case(After, st.builds(After, low=SMALL, high=SMALL), follows_schema=False),
    "Outer": Case(Outer, st.builds(Outer, inner=st.builds(Before, day=DAYS)), follows_schema=False),
    "AfterValidator": Case(Annotated[int, AfterValidator(abs)], st.integers(0, 9), follows_schema=False),
    "BeforeValidator": Case(Annotated[date, BeforeValidator(lambda day: day)], DAYS, follows_schema=False),
    "WrapValidator": Case(Annotated[date, WrapValidator(lambda day, read: read(day))], DAYS, follows_schema=False),
    "PlainValidator": Case(ByPlainValidator, st.builds(ByPlainValidator, day=DAYS), follows_schema=False),
    # limits and annotations
    "PositiveInt": Case(PositiveInt, st.integers(1, 9)),
    "conint": Case(conint(ge=1, le=9, multiple_of=2), st.sampled_from([2, 4])),
    "StrictInt": Case(StrictInt, SMALL),
    "StringConstraints": Case(
        Annotated[str, StringConstraints(max_length=3, to_lower=True)], st.just("ab"), follows_schema=False
    ),
    "pattern": Case(Annotated[str, Field(pattern="^[a-c]+$")], st.text("abc", min_size=1, max_size=3)),
    "Ge": Case(Annotated[int, limits.Ge(1)], st.integers(1, 9)),
    "Between": Case(Annotated[float | None, Between(0, 1)], st.none() | st.floats(0, 1)),
    "Length": Case(Annotated[list[int], Length(1, 2)], st.lists(SMALL, min_size=1, max_size=2)),
    "Format": Case(Annotated[str, Format("email"), Title("Mail")], st.just("ann@example.org")),
    "Titles": Case(Annotated[Literal["a", "b"], Titles("One", "Two")], st.sampled_from(["a", "b"])),
    "description": Case(Annotated[int, "How many"], SMALL),
    "AnyUrl": Case(AnyUrl, st.just(AnyUrl("https://example.com/{a}?b=ü"))),
    "HttpUrl": Case(HttpUrl, st.just(HttpUrl("https://example.com"))),
    "ByteSize": Case(ByteSize, st.integers(0, 9).map(ByteSize)),
}


def first_values(case: Case, count: int) -> list[Any]:
    """Draw the first values of a case. The very first one is the same in each process."""
    drawn: list[Any] = []

    @settings(max_examples=count, phases=[Phase.generate], derandomize=True, database=None)
    @given(case.values)
    def draw(value: object) -> None:
        drawn.append(value)

    draw()
    return drawn
