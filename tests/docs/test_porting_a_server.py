"""The page "Porting a server": its code runs, with its methods, shared values, hook and instructions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcp_functions_harness.testing import Conversation, deployed
from tests.docs.pages import Page
from tests.support import wire


@pytest.fixture
def page() -> dict[str, Any]:
    return Page.named("porting-a-server.md").run()


def test_the_method_and_the_partial_of_the_page_are_tools(page: dict[str, Any]) -> None:
    talk = Conversation(page["handler"])
    assert talk.call("count", article="tea").text == "3"
    assert talk.call("price_in_euros", article="tea").text == "2 EUR for tea"


def test_the_tool_of_the_page_uses_the_value_that_its_container_shares(page: dict[str, Any]) -> None:
    class Fake:
        async def of(self, _currency: str) -> float:
            return 2.0

    talk = Conversation(page["handler"]).call("convert", euros=5.0, currency="GBP")
    assert talk.result["structuredContent"] == 4.0
    assert asyncio.run(page["convert"](5.0, "GBP", rates=Fake())) == 10.0


def test_the_hook_of_the_page_refuses_a_call_with_an_explanation(page: dict[str, Any]) -> None:
    much = {"euros": 5000.0, "currency": "GBP"}
    assert Conversation(page["handler"]).call("convert", **much).text == "Sign in to convert more than 1000 EUR."
    member = Conversation(page["handler"], principal="ann").call("convert", **much)
    assert member.result["structuredContent"] == 4000.0
    unknown = Conversation(page["handler"]).call("convert", euros=5.0, currency="XXX")
    assert unknown.text == "convert does not know this."


def test_the_function_of_the_page_has_instructions(page: dict[str, Any]) -> None:
    with deployed():
        response = page["helpful"](wire.event(wire.message("server/discover")), wire.Context("local_convert"))
    assert wire.messages(response)[0]["result"]["instructions"] == "Convert only what the user names."
