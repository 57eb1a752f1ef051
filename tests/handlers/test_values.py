"""Values as pydantic's users know them: situations of other people's bug reports, as tools, prompts and resources."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

import pytest
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    computed_field,
    field_serializer,
    model_validator,
)

from mcp_functions import prompt, resource, tool
from mcp_functions.content import CallToolResult, Image, Text
from mcp_functions.protocol.errors import DeveloperError
from tests.support.conversations import talk_to

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mcp_functions.handlers.base import Handler

PICTURE = Image(b"GIF89a", "image/gif")


class Account(BaseModel):
    owner: str
    secret: str = Field(exclude=True)


class Square(BaseModel):
    model_config = ConfigDict(extra="forbid")

    side: int = Field(validation_alias=AliasChoices("id", "ident"), serialization_alias="no")

    @computed_field
    def area(self) -> int:
        return self.side**2

    @field_serializer("side")
    def write_side(self, side: int) -> str:
        return f"{side} m"


class Person(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    first_name: str = Field(alias="firstName")


class User(BaseModel):
    name: str


class Admin(User):
    password_hash: str = "hunter2"  # noqa: S105 - what must not be sent


@dataclass
class Guest:
    name: str


@dataclass
class Vip(Guest):
    password_hash: str = "hunter2"  # noqa: S105 - what must not be sent


class Entry(TypedDict):
    name: str


SEEN = {"name": "ann", "password_hash": "hunter2"}
ANN = {"name": "ann"}


def returning(annotation: object, value: object) -> Handler[..., Any]:
    def give():  # type: ignore[no-untyped-def]  # noqa: ANN202 - the next line sets it
        return value

    give.__annotations__["return"] = annotation
    return tool(give)


@pytest.mark.parametrize(
    ("annotation", "value", "sent"),
    [
        (Account, Account(owner="ann", secret="x"), {"owner": "ann"}),  # noqa: S106
        (Square, Square.model_validate({"ident": 2}), {"no": "2 m", "area": 4}),
        (Person, Person(firstName="ann"), {"firstName": "ann"}),
        (Person, {"first_name": "ann"}, {"firstName": "ann"}),
        (list[Person], [{"firstName": "ann"}], [{"firstName": "ann"}]),
        (User, SEEN, ANN),
        (User, Admin(name="ann"), ANN),
        (list[User], [SEEN, Admin(name="ann")], [ANN, ANN]),
        (dict[str, User], {"a": Admin(name="ann")}, {"a": ANN}),
        (tuple[User, int], (Admin(name="ann"), 1), [ANN, 1]),
        (Guest, Vip("ann"), ANN),
        (Guest, SEEN, ANN),
        (list[Guest], [Vip("ann"), SEEN], [ANN, ANN]),
        (Guest | int, Vip("ann"), ANN),
        (Entry, SEEN, ANN),
        (User | None, SEEN, ANN),
        (User | None, Admin(name="ann"), ANN),
        (str | User, Admin(name="ann"), ANN),
        (Image | User, SEEN, ANN),
        (Text | list[Text] | Guest | None, Vip("ann"), ANN),
        (User, CallToolResult(["x"], structured_content=SEEN), ANN),
        (Any, SEEN, SEEN),
        (None, SEEN, SEEN),
        (dict[str, Any] | None, SEEN, SEEN),
        (CallToolResult, CallToolResult(["x"], structured_content=SEEN), SEEN),
    ],
    ids=str,
)
def test_a_result_is_written_by_its_annotation(annotation: object, value: object, sent: object) -> None:
    assert talk_to(returning(annotation, value)).call().result["structuredContent"] == sent


@pytest.mark.parametrize("annotation", [list[Image | User], list[User | Image], tuple[Image, User]])
def test_a_value_beside_content_is_written_by_its_type(annotation: object) -> None:
    content = talk_to(returning(annotation, [PICTURE, Admin(name="ann")])).call().result["content"]
    assert [block.get("text") for block in content] == [None, '{"name":"ann"}']


@pytest.mark.parametrize("annotation", [User, User | None, list[User]])
def test_a_resource_is_written_by_its_annotation(annotation: object) -> None:
    def read():  # type: ignore[no-untyped-def]  # noqa: ANN202 - the next line sets it
        return [SEEN] if annotation == list[User] else SEEN

    read.__annotations__["return"] = annotation
    text = talk_to(resource("users://ann")(read)).read("users://ann").result["contents"][0]["text"]
    assert text in ('{"name":"ann"}', '[{"name":"ann"}]')


@pytest.mark.parametrize("annotation", [User | None, str | User, Image | User])
def test_a_result_that_is_no_member_of_its_annotation_is_the_developers_error(annotation: object) -> None:
    raised = talk_to(returning(annotation, {"password_hash": "hunter2"})).call().raised
    assert isinstance(raised, DeveloperError)
    assert "something else than its signature promises: it name Field required" in str(raised)


class Moments(BaseModel):
    at: datetime
    clock: time
    span: timedelta
    day: date


def test_the_output_schema_keeps_a_format_only_where_each_value_has_it() -> None:
    fields = returning(Moments, None).describe()["outputSchema"]["properties"]
    assert {name: field.get("format") for name, field in fields.items()} == {
        "at": None, "clock": None, "span": None, "day": "date",
    }  # fmt: skip
    assert returning(datetime, None).describe()["outputSchema"] == {"type": "string"}


# Arguments


class Trip(BaseModel):
    day: date
    nights: int = 1

    @model_validator(mode="before")
    @classmethod
    def keep(cls, data: Any) -> Any:  # noqa: ANN401 - whatever the client sends
        return data


class Kind(Enum):
    CAT = "cat"
    DOG = "dog"


class Cat(BaseModel):
    kind: Literal[Kind.CAT]


class Dog(BaseModel):
    kind: Literal[Kind.DOG]


@tool
def plan(trip: Trip) -> str:
    return f"{trip.day!r} {trip.nights}"


@tool
def keep_pet(kind: Literal[Kind.CAT], pet: Annotated[Cat | Dog, Field(discriminator="kind")]) -> Cat | Dog:
    assert kind is Kind.CAT
    return pet


def test_a_validator_before_the_type_gets_what_it_gets_from_json() -> None:
    assert talk_to(plan).call(trip={"day": "2026-05-01"}).text == "datetime.date(2026, 5, 1) 1"


@pytest.mark.parametrize(
    ("trip", "reason"),
    [
        ({"day": "2026-05-01", "nights": "5"}, "trip': nights must be an integer"),
        ({"day": "86400"}, "trip': day must be a date, such as 2026-07-28"),
        ({"day": 86400}, "trip': day must be a date, such as 2026-07-28"),
        ({}, "trip': day is missing"),
    ],
)
def test_what_the_published_schema_forbids_is_refused(trip: object, reason: str) -> None:
    talk = talk_to(plan).call(trip=trip)
    assert talk.result["isError"]
    assert reason in talk.text


def test_members_of_an_enum_in_a_literal_are_read_and_written_by_value() -> None:
    assert talk_to(keep_pet).call(kind="cat", pet={"kind": "dog"}).result["structuredContent"] == {"kind": "dog"}
    assert talk_to(keep_pet).call(kind="dog", pet={"kind": "dog"}).text.endswith('must be one of "cat"')
    bird = talk_to(keep_pet).call(kind="cat", pet={"kind": "bird"})
    assert bird.text == """Argument 'pet': kind must be one of "cat", "dog\""""


class Query(BaseModel):
    limit: int = None  # type: ignore[assignment]  # as many write it
    key: SecretStr = SecretStr("hunter2")


@pytest.mark.parametrize(
    "default", [None, "x", 1.5, [1], {"a": 1}, Kind.CAT, object(), float("nan"), True, date(2026, 7, 28)]
)
def test_a_default_that_would_be_refused_is_not_published(default: object) -> None:
    def search(limit: int = default) -> str:  # type: ignore[assignment]
        return repr(limit)

    assert "default" not in tool(search).describe()["inputSchema"]["properties"]["limit"]
    assert talk_to(tool(search)).call().text == repr(default)


class Column(BaseModel):
    type: str
    default: int
    inner: Column | None = None


def test_fields_may_be_called_as_the_keywords_of_a_schema() -> None:
    @tool
    def add(column: Column) -> str:
        return repr(column)

    properties = add.describe()["inputSchema"]["$defs"]["Column"]["properties"]
    assert list(properties) == ["type", "default", "inner"]
    assert properties["inner"]["default"] is None


def test_a_default_inside_a_model_that_would_be_refused_is_not_published() -> None:
    def search(query: Query) -> None: ...

    schema = tool(search).describe()["inputSchema"]["properties"]["query"]
    assert [field.get("default") for field in schema["properties"].values()] == [None, None]


@prompt
def draft(points: list[str], when: date | None = None) -> str:
    return f"{points} {when}"


def test_json_text_is_an_argument_of_a_prompt() -> None:
    assert talk_to(draft).get(points='["a", "b"]').result["messages"][0]["content"]["text"] == "['a', 'b'] None"


# Callables


class Greeter:
    """Greets."""

    def __call__(self, name: str, mark: str = "!") -> str:
        return f"Hello {name}{mark}"

    @functools.cache  # noqa: B019 - an author's habit
    def cached(self, name: str) -> str:
        return f"Hi {name}"


class Decorated:
    """A decorator that is a class, and a descriptor, too."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        return self._function(*args, **kwargs)

    def __get__(self, owner: object, cls: type | None = None) -> Decorated:
        return self


class Cached:
    @functools.cache  # noqa: B019 - an author's habit
    def __call__(self, name: str) -> str:
        return f"Hey {name}"


class Static:
    @staticmethod
    def __call__(name: str) -> str:
        return f"Hey {name}"


class Answering:
    """An object that has an answer for each attribute, as a client of a remote service has."""

    def __getattr__(self, name: str) -> object:
        return None

    def __call__(self, name: str) -> str:
        return f"Hey {name}"


def greet(name: str) -> str:
    return f"Hello {name}"


@pytest.mark.parametrize(
    ("given", "name", "text"),
    [
        (functools.cache(greet), "greet", "Hello ann"),
        (functools.lru_cache(maxsize=1)(greet), "greet", "Hello ann"),
        (Decorated(greet), "greet", "Hello ann"),
        (functools.partial(Decorated(greet)), "greet", "Hello ann"),
        (functools.partial(Greeter(), mark="?"), "Greeter", "Hello ann?"),
        (functools.cache(Greeter()), "Greeter", "Hello ann!"),
        (Greeter().cached, "cached", "Hi ann"),
        (staticmethod(greet), "greet", "Hello ann"),
        (Cached(), "Cached", "Hey ann"),
        (Static(), "Static", "Hey ann"),
        (Answering(), "Answering", "Hey ann"),
    ],
)
def test_a_callable_is_called_as_it_was_given(given: Callable[..., str], name: str, text: str) -> None:
    handler = tool(given)
    assert handler.describe()["name"] == name
    assert handler.describe()["inputSchema"]["required"] == ["name"]
    assert talk_to(handler).call(name="ann").text == text


def count(most: int) -> Iterator[int]:
    yield most


async def count_later(most: int) -> AsyncIterator[int]:
    yield most


@functools.singledispatch
def dispatch(value: int) -> str:
    return str(value)


class Counter:
    def __call__(self, most: int) -> Iterator[int]:
        yield most


def listed(function: Callable[..., Iterator[int]]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(most: int) -> list[int]:
        return list(function(most))

    wrapper.__annotations__["return"] = Iterator[int]  # as where the module of the generator imports it
    return wrapper


class Partial:
    def greet(self, mark: str, name: str) -> str:
        return f"Hey {name}{mark}"

    __call__ = functools.partialmethod(greet, "!")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (listed(count), "a call returns no iterator. Annotate the list that it returns; functools.wraps copies"),
        (Partial(), "Partial has a __call__ made by functools.partialmethod"),
        (functools.partial(Partial(), "ann"), "Partial has a __call__ made by functools.partialmethod"),
        (count, "count is a generator"),
        (count_later, "count_later is a generator"),
        (functools.partial(count, 1), "count is a generator"),
        (functools.cache(count), "count is a generator"),
        (Counter(), "__call__ is a generator"),
        (dispatch, "dispatch chooses by the type of a positional argument"),
    ],
)
def test_a_callable_that_can_never_return_a_result_is_refused_with_the_reason(
    given: Callable[..., Any], reason: str
) -> None:
    with pytest.raises(TypeError, match=reason):
        tool(given)


# URIs


@pytest.mark.parametrize(
    ("uri", "asked"),
    [
        ("rules://docs/müll", "rules://docs/m%C3%BCll"),
        ("rules://docs/müll", "rules://docs/m%c3%bcll"),
        ("Notes://today", "notes://today"),
        ("https://example.com", "https://example.com/"),
        ("https://Example.com:443/%7eann/../bob", "https://example.com/bob"),
        ("notes://today", "NOTES://today"),
    ],
)
def test_a_resource_is_found_by_what_clients_make_of_its_uri(uri: str, asked: str) -> None:
    @resource(uri)
    def read() -> str:
        return "found"

    for each in (uri, asked, read.describe()["uri"]):
        assert talk_to(read).read(each).result["contents"][0]["text"] == "found"
    assert read.describe()["uri"].isascii()


def test_a_template_is_matched_by_what_clients_make_of_a_uri() -> None:
    @resource("Notes://übung/{Day}")
    def read(Day: str) -> str:  # noqa: N803 - the variable of the URI
        return Day

    assert read.describe()["uriTemplate"] == "notes://%C3%BCbung/{Day}"
    for asked in ("Notes://übung/Mönday", "notes://%C3%BCbung/M%C3%B6nday", "notes://%c3%bcbung/M%c3%b6nday"):
        assert talk_to(read).read(asked).result["contents"][0]["text"] == "Mönday"


# Words


HALF = "\ud83d"


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (str, HALF),
        (Any, HALF),
        (dict[str, str], {"a": HALF}),
        (list[str], [HALF]),
        (list[str | Image], [HALF, PICTURE]),
        (CallToolResult, CallToolResult(HALF)),
    ],
    ids=str,
)
def test_half_of_a_surrogate_pair_in_a_result_is_an_error_of_the_tool(annotation: object, value: object) -> None:
    talk = talk_to(returning(annotation, value)).call()
    assert talk.result["isError"]
    assert "half of a surrogate pair" in str(talk.raised)
