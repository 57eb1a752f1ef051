"""Features for authors who port a server: methods and callable objects as tools, tags, and output schemas.

(This module has no `from __future__ import annotations`, because the decorators must find types in the annotations, and
not text.)
"""

import functools
from typing import Annotated, Any

import pytest

from mcp_functions import Elicit, serve, tool
from mcp_functions.content import CallToolResult, Image
from mcp_functions_harness.testing import Conversation
from tests.support.conversations import author_error, talk_to


class Shop:
    """A shop with a stock."""

    def __init__(self, stock: dict[str, int]) -> None:
        self.stock = stock

    def count(self, article: Annotated[str, "What to count"], at_least: int = 0) -> int:
        """Count an article."""
        return max(self.stock.get(article, 0), at_least)

    async def order(self, article: str, *, elicit: Elicit) -> str:
        """Order an article."""
        number = elicit("number", "How many?", int)
        return f"{number} of {article}, in stock: {self.stock[article]}"

    @classmethod
    def slogan(cls, loud: bool = False) -> str:  # noqa: FBT001, FBT002 - a tool's own argument
        """Say the slogan."""
        return f"{cls.__name__}{'!' if loud else ''}"


class Greeter:
    """Greet somebody."""

    def __init__(self, word: str) -> None:
        self.word = word

    def __call__(self, name: str) -> str:
        return f"{self.word}, {name}"


SHOP = Shop({"tea": 3})


def test_a_bound_method_is_a_tool_without_its_self() -> None:
    count = tool(SHOP.count)
    entry = count.describe()
    assert entry["name"] == "count"
    assert entry["description"] == "Count an article."
    assert list(entry["inputSchema"]["properties"]) == ["article", "at_least"]
    assert entry["inputSchema"]["properties"]["article"]["description"] == "What to count"
    assert talk_to(count).call(article="tea").result["structuredContent"] == 3
    assert count("tea", at_least=5) == 5


def test_an_async_method_asks_and_keeps_its_object() -> None:
    talk = talk_to(tool(SHOP.order)).call(article="tea")
    assert talk.asked == ["number"]
    assert talk.accept(number={"number": 2}).text == "2 of tea, in stock: 3"


def test_two_objects_of_one_class_are_two_tools() -> None:
    other = tool(name="count_other")(Shop({"tea": 9}).count)
    talk = Conversation(serve(tool(SHOP.count), other))
    assert talk.call("count", article="tea").text == "3"
    assert talk.call("count_other", article="tea").text == "9"


def test_a_class_method_is_a_tool() -> None:
    assert talk_to(tool(Shop.slogan)).call(loud=True).text == "Shop!"


def test_a_callable_object_is_a_tool_named_after_its_class() -> None:
    greet = tool(Greeter("Hello"))
    assert greet.describe()["name"] == "Greeter"
    assert greet.describe()["description"] == "Greet somebody."
    assert talk_to(greet).call(name="Ann").text == "Hello, Ann"


def test_a_partial_hides_what_it_has_set() -> None:
    def convert(rate: float, amount: float, unit: str, digits: int = 2) -> str:
        """Convert an amount."""
        return f"{amount * rate:.{digits}f} {unit}"

    in_euro = tool(functools.partial(convert, 0.5, unit="EUR"))
    assert list(in_euro.describe()["inputSchema"]["properties"]) == ["amount", "digits"]
    assert talk_to(in_euro).call(amount=3, digits=1).text == "1.5 EUR"


def test_an_error_in_a_method_names_the_line_of_the_method() -> None:
    class Careless:
        def method(self, untyped) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001 - it is refused
            return str(untyped)

    line = Careless.method.__code__.co_firstlineno
    with pytest.raises(TypeError, match=rf"test_porting\.py:{line}: method\(\): parameter 'untyped'"):
        tool(Careless().method)


def test_tags_have_the_place_in_meta_that_fastmcp_uses() -> None:
    @tool(tags={"money", "daily"}, meta={"example.com/owner": "ann"})
    def rates() -> str:
        return "1"

    assert rates.describe()["_meta"] == {"example.com/owner": "ann", "fastmcp": {"tags": ["daily", "money"]}}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"tags": "money"}, "tags is a collection of words"),
        ({"tags": [1]}, "tags is a collection of words"),
        ({"tags": ["a"], "meta": {"fastmcp": {}}}, "meta has 'fastmcp' already"),
        ({"output_schema": {"type": "strange"}}, "not a valid JSON Schema"),
        ({"output_schema": "object"}, "output_schema is a JSON Schema, a dict"),
        ({"output_schema": {"$ref": "https://example.com/s"}}, "leaves the schema"),
    ],
)
def test_an_invalid_option_is_refused_at_its_line(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(TypeError, match=problem):

        @tool(**options)
        def rates() -> str:
            return "1"


TOTAL = {"type": "object", "properties": {"total": {"type": "integer", "minimum": 0}}, "required": ["total"]}


@tool(output_schema=TOTAL)
def total(amount: int) -> dict[str, Any]:
    """Add up."""
    return {"total": amount}


def test_an_output_schema_is_published_and_replaces_the_annotation() -> None:
    assert total.describe()["outputSchema"] == TOTAL
    assert talk_to(total).call(amount=3).result["structuredContent"] == {"total": 3}


def test_a_result_that_does_not_fit_the_output_schema_is_the_authors_error(caplog: pytest.LogCaptureFixture) -> None:
    talk = talk_to(total).call(amount=-1)
    assert "it total does not fit 'minimum' of its schema" in author_error(talk, caplog)


def test_a_whole_result_may_have_the_structured_content_of_the_output_schema() -> None:
    @tool(output_schema=TOTAL)
    def draw() -> CallToolResult:
        return CallToolResult([Image(b"\0", "image/png")], structured_content={"total": 1})

    assert talk_to(draw).call().result["structuredContent"] == {"total": 1}


def test_content_without_structure_does_not_fit_an_output_schema(caplog: pytest.LogCaptureFixture) -> None:
    @tool(output_schema=TOTAL)
    def draw() -> Image:
        return Image(b"\0", "image/png")

    assert "returned none" in author_error(talk_to(draw).call(), caplog)


def test_an_output_schema_may_be_of_any_type() -> None:
    @tool(output_schema={"type": "array", "items": {"type": "string", "maxLength": 3}})
    def codes() -> list[str]:
        return ["EUR"]

    assert talk_to(codes).call().result["structuredContent"] == ["EUR"]
