"""Apps that an author provides (MCP Apps): the tools for the app alone, its resource, and who sees them."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_functions import Elicit, resource, serve, tool
from tests.apps.tools import APPS, FORMS, host, request

URI = "ui://shop/chart"
UI_EXTENSION: dict[str, Any] = {"ui": {"csp": {"connectDomains": ["https://api.shop.example"]}}}


@resource(URI, mime_type="text/html;profile=mcp-app", meta=UI_EXTENSION)
def chart() -> str:
    """Show sales."""
    return "<!doctype html><title>Sales</title>"


@tool(app=URI)
def sales(year: int) -> dict[str, int]:
    """Return the sales of a year."""
    return {"year": year}


@tool(app=URI, visibility=["app"], meta={"shop.example/kind": "more"})
def more_sales(year: int) -> dict[str, int]:
    """Return the sales of another year."""
    return {"year": year}


def tools(declared: dict[str, Any]) -> dict[str, Any]:
    result = request(serve(sales, more_sales, chart), "tools/list", capabilities=declared)["result"]
    return {entry["name"]: entry for entry in result["tools"]}


@pytest.mark.parametrize(
    ("declared", "seen"),
    [
        (APPS, ["more_sales", "sales"]),
        ({**APPS, **FORMS}, ["more_sales", "sales"]),
        (FORMS, ["sales"]),
        ({}, ["sales"]),
    ],
)
def test_only_clients_with_apps_see_a_tool_for_apps_alone(declared: dict[str, Any], seen: list[str]) -> None:
    assert list(tools(declared)) == seen


def test_a_list_with_a_tool_for_apps_alone_is_private() -> None:
    for declared in (APPS, FORMS, {}):
        answer = request(serve(sales, more_sales), "tools/list", capabilities=declared)
        assert answer["result"]["cacheScope"] == "private"


def test_a_tool_names_its_app_and_its_visibility_beside_other_meta() -> None:
    listed = tools(APPS)
    assert listed["sales"]["_meta"] == {"ui": {"resourceUri": URI}}
    assert listed["more_sales"]["_meta"] == {
        "shop.example/kind": "more",
        "ui": {"resourceUri": URI, "visibility": ["app"]},
    }
    assert "outputSchema" in listed["sales"]


def test_the_resource_list_has_the_domains_of_an_app() -> None:
    (entry,) = request(serve(sales, chart), "resources/list")["result"]["resources"]
    assert (entry["uri"], entry["mimeType"], entry["_meta"]) == (URI, "text/html;profile=mcp-app", UI_EXTENSION)
    (page,) = request(serve(sales, chart), "resources/read", {"uri": URI})["result"]["contents"]
    assert page["mimeType"] == "text/html;profile=mcp-app"


def test_a_tool_with_an_app_of_its_author_asks_in_words_instead_of_the_form() -> None:
    @tool(app=URI)
    def order(*, elicit: Elicit) -> str:
        return str(elicit.possible) if elicit.possible else elicit("what", "What do you order?", str)

    talk = host(order).call()
    assert talk.result["isError"] is True
    assert "It asks: What do you order?" in talk.text
