"""The page "May this happen twice?": the refund that pays twice, and the one that pays once."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_functions import serve
from mcp_functions_harness.testing import Conversation
from tests.docs.pages import Page


@pytest.fixture
def page() -> dict[str, Any]:
    return Page.named("may-this-happen-twice.md").run()


@pytest.mark.parametrize(("name", "payments"), [("refund_twice", 2), ("refund_once", 1)])
def test_only_a_key_of_the_order_pays_once_after_an_error(name: str, payments: int, page: dict[str, Any]) -> None:
    page["PAID"].clear()
    page["SLOW"][:] = ["slow"]
    first = Conversation(serve(page[name])).call(order="A7").go_on()
    assert first.result["isError"]
    assert "Try again later" in first.text
    assert Conversation(serve(page[name])).call(order="A7").go_on().text == "A7 is paid back"
    assert len(page["PAID"]) == payments


@pytest.mark.parametrize("name", ["refund_twice", "refund_once"])
def test_a_round_that_is_sent_again_pays_once_with_either_key(name: str, page: dict[str, Any]) -> None:
    page["SLOW"].clear()
    assert Conversation(serve(page[name])).call(order="A7").go_on().retry().text == "A7 is paid back"
    assert len(page["PAID"]) == 1
