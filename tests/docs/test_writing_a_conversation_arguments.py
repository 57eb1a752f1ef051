"""The chapter "Arguments" of the page "Writing a conversation".

No `from __future__ import annotations` here: the functions below are read as an author writes them.
"""

import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from itertools import count
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import AliasChoices, BaseModel, Field

from mcp_functions import Elicit, prompt, resource, serve, tool
from mcp_functions.annotated import Number
from mcp_functions.handlers.base import Handler
from mcp_functions_harness.testing import Conversation


def text(handler: Handler[..., Any], **arguments: object) -> str:
    return Conversation(serve(handler)).call(**arguments).text


def test_a_field_of_an_argument_has_the_meaning_of_pydantic(page: dict[str, Any]) -> None:
    find_rooms = page["find_rooms"]
    schema = find_rooms.describe()["inputSchema"]
    assert schema["required"] == ["town"]
    assert schema["properties"] == {
        "town": {"type": "string", "description": "Where to look"},
        "nights": {"type": "integer", "minimum": 1, "maximum": 30, "default": 1},
        "maxPrice": {"type": "number", "exclusiveMinimum": 0, "default": 100},
        "near": {"type": "array", "items": {"type": "string"}, "default": []},
    }
    assert text(find_rooms, town="Ely") == find_rooms("Ely") == "1 in Ely, at most 100.00, near []"
    assert "must be at most 30" in text(find_rooms, town="Ely", nights=31)

    @prompt
    def praise(town: str = Field(max_length=3)) -> str:
        return town

    @resource("towns://{town}")
    def about(town: str = Field(max_length=3)) -> str:
        return town

    assert "at most 3 characters" in Conversation(serve(praise)).get(town="Wells").error["message"]
    assert "at most 3 characters" in Conversation(serve(about)).read("towns://Wells").error["message"]


def test_a_completer_gets_what_is_typed_and_filled_in(page: dict[str, Any]) -> None:
    talk = Conversation(serve(page["postcard"]))
    assert talk.complete("town", "Li", country="Norway") == ["Lillehammer"]
    assert talk.complete("town", "L", country="Portugal") == ["Lisbon", "Lagos"]
    assert talk.complete("town", "L") == talk.complete("country", "N") == []
    assert talk.body["result"]["completion"] == {"values": [], "total": 0, "hasMore": False}
    with pytest.raises(AssertionError, match=r"-32602.*names no argument"):
        talk.complete("twon", "Li")


def test_a_completion_names_its_prompt_or_its_template(page: dict[str, Any]) -> None:
    @resource("towns://{town}")
    async def about(town: str) -> str:
        return town

    @about.complete("town")
    async def suggest(typed: str, filled_in: dict[str, str]) -> list[str]:
        return [f"{typed}sbon {filled_in}"]

    talk = Conversation(serve(page["postcard"], about))
    assert talk.complete("town", "Li", "about") == ["Lisbon {}"]
    assert talk.complete("town", "Li", country="Norway") == ["Lillehammer"]
    with pytest.raises(ValueError, match=r"no arguments of abuot; it does for: postcard, about"):
        talk.complete("town", "Li", "abuot")
    with pytest.raises(ValueError, match=r"it does for: none"):
        Conversation(serve(page["find_rooms"])).complete("town")


def test_an_alias_is_the_name_on_the_wire(page: dict[str, Any]) -> None:
    assert text(page["find_rooms"], town="Ely", maxPrice=5) == "1 in Ely, at most 5.00, near []"

    @tool(camel_case=True)
    def find(from_town: str = Field(alias="from"), to_town: str = "Ely") -> str:
        return f"{from_town} to {to_town}"

    assert list(find.describe()["inputSchema"]["properties"]) == ["from", "toTown"]
    assert text(find, **{"from": "Bath"}) == "Bath to Ely"


def test_an_unsupported_signature_is_refused() -> None:
    def several(x: str = Field(validation_alias=AliasChoices("a", "b"))) -> str: ...  # type: ignore[empty-body]
    def twice(x: Annotated[int, Field(default=1)] = 2) -> str: ...  # type: ignore[empty-body]
    def hidden(x: str = Field(exclude=True)) -> str: ...  # type: ignore[empty-body]

    for function in (several, twice, hidden):
        line = function.__code__.co_firstlineno
        with pytest.raises(TypeError, match=rf"arguments\.py:{line}: {function.__name__}\(\): parameter 'x': "):
            tool(function)


def test_a_default_is_fresh_in_every_call() -> None:
    class Place(BaseModel):
        town: str

    @tool
    def collect(
        found: list[str] = [],  # noqa: B006
        day: date = date(2026, 7, 28),
        file: Path = Path("here"),
        place: Place = Place(town="Ely"),  # noqa: B008
    ) -> str:
        found.append("x")
        return f"{len(found)} {day} {file} {place.town}"

    defaults = [value["default"] for value in collect.describe()["inputSchema"]["properties"].values()]
    assert defaults == [[], "2026-07-28", "here", {"town": "Ely"}]
    assert text(collect) == text(collect) == collect() == "1 2026-07-28 here Ely"


def test_a_factory_runs_in_every_round() -> None:
    class Sure(BaseModel):
        sure: bool

    numbers = count(1)

    @tool
    def order(number: int = Field(default_factory=lambda: next(numbers)), *, elicit: Elicit) -> str:
        elicit("sure", "Sure?", Sure)
        return str(number)

    assert Conversation(serve(order)).call().accept(sure={"sure": True}).text == "2"


def test_a_float_parameter_receives_a_float() -> None:
    @tool
    def pay(amount: float, parts: list[float], number: Number) -> str:
        return f"{amount!r} {parts!r} {number!r}"

    assert text(pay, amount=1, parts=[2], number=3) == "1.0 [2.0] 3"


def test_a_tool_does_not_convert_a_text_to_a_number() -> None:
    @tool
    def pay(amount: int) -> str:
        return repr(amount)

    @prompt
    def bill(amount: int) -> str:
        return repr(amount)

    assert text(pay, amount="3") == "Argument 'amount': must be an integer"
    assert text(pay, amount=1.0) == "1"
    assert Conversation(serve(bill)).get(amount="3").result["messages"][0]["content"]["text"] == "3"


def test_a_pattern_of_an_input_schema_follows_ecma_262() -> None:
    schema = {"type": "object", "properties": {"code": {"type": "string", "pattern": r"^\d{3}$"}}}

    @tool(input_schema=schema)
    def look(arguments: dict[str, Any]) -> str:
        return str(arguments["code"])

    @tool
    def look_by_field(code: str = Field(pattern=r"^\d{3}$")) -> str:
        return code

    digits = "\u0661\u0662\u0663"
    assert text(look, code="123") == text(look_by_field, code="123") == "123"
    assert text(look, code="123\n") == text(look, code=digits)
    assert "does not fit 'pattern'" in text(look, code=digits)
    assert "should match pattern" in text(look_by_field, code="123\n")
    assert text(look_by_field, code=digits) == digits


@dataclass
class Guest:
    name: Annotated[str, "As in the passport"]
    born: date | None = None


class Place(TypedDict):
    town: str


class Towns(TypedDict):
    names: set[str]


def test_a_dataclass_and_a_typed_dict_are_read_without_pydantic() -> None:
    @tool
    def visit(place: Place, guests: list[Guest]) -> str:
        return f"{place['town']}: {guests[0].name}, {guests[0].born}"

    guests = [{"name": "Ann", "born": "1990-02-28"}]
    assert text(visit, place={"town": "Ely"}, guests=guests) == "Ely: Ann, 1990-02-28"
    properties: Any = visit.describe()["inputSchema"]["properties"]
    assert properties["guests"]["items"]["properties"]["name"]["description"] == "As in the passport"
    assert "guests" in text(visit, place={"town": "Ely"}, guests=[{"name": "Ann", "born": "1990-02-30"}])
    code = (
        "import sys\nfrom dataclasses import dataclass\nfrom mcp_functions import tool\n@dataclass\nclass Guest:\n"
        "    name: str\n@tool\ndef visit(guests: list[Guest]) -> Guest: ...\nassert 'pydantic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603 - our own words


def test_a_typed_dict_of_other_types_is_read_or_refused_with_a_hint() -> None:
    def visit(towns: Towns) -> str: ...  # type: ignore[empty-body]

    if sys.version_info >= (3, 12):
        assert tool(visit)
    else:
        with pytest.raises(TypeError, match=r"parameter 'towns': .*Please use `typing_extensions.TypedDict`"):
            tool(visit)
