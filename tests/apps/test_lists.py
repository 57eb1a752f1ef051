"""A client's lists have the answer tools and the form that it can use."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_functions import serve, tool
from mcp_functions.protocol.constants import APP_FORM_URI
from tests.apps.tools import APPS, FORMS, NOTHING, book, host, rate, request


def listed_names(declared: dict[str, Any], method: str = "tools/list") -> list[str]:
    function = serve(book, rate)
    result = request(function, method, capabilities=declared)["result"]
    return [entry["name"] for entry in result[method.removesuffix("/list")]]


@pytest.mark.parametrize(
    ("declared", "listed"),
    [
        (FORMS, ["book", "rate"]),
        ({**FORMS, **APPS}, ["book", "rate"]),
        (APPS, ["book", "book-form", "rate", "rate-form"]),
        (NOTHING, ["book", "book-answer", "rate"]),
    ],
)
def test_a_list_has_the_answer_tools_that_its_client_can_use(declared: dict[str, Any], listed: list[str]) -> None:
    assert listed_names(declared) == listed


def test_a_host_with_apps_finds_the_form_linked_and_its_answer_tool_hidden_from_the_model() -> None:
    result = request(serve(rate), "tools/list")["result"]
    asking, answer_tool = result["tools"]
    assert asking["_meta"] == {"ui": {"resourceUri": APP_FORM_URI}}
    assert "outputSchema" not in asking
    assert answer_tool["_meta"] == {"ui": {"visibility": ["app"]}}
    assert result["cacheScope"] == "private"
    assert "outputSchema" in request(serve(rate), "tools/list", capabilities=FORMS)["result"]["tools"][0]


def test_lists_of_clients_with_elicitation_stay_public() -> None:
    assert request(serve(rate), "tools/list", capabilities=FORMS)["result"]["cacheScope"] == "public"


def test_a_host_with_apps_finds_and_reads_the_form() -> None:
    function = serve(rate)
    assert "resources" in request(function, "server/discover")["result"]["capabilities"]
    (entry,) = request(function, "resources/list")["result"]["resources"]
    assert (entry["uri"], entry["mimeType"]) == (APP_FORM_URI, "text/html;profile=mcp-app")
    result = request(function, "resources/read", {"uri": APP_FORM_URI})["result"]
    (page,) = result["contents"]
    assert page["mimeType"] == "text/html;profile=mcp-app"
    assert page["_meta"] == {"ui": {"prefersBorder": True}}
    assert len(page["text"].encode()) < 30_000


def test_a_tool_that_never_asks_has_no_form_and_no_answer_tool() -> None:
    @tool
    def add(a: int, b: int) -> int:
        return a + b

    function = serve(add)
    (entry,) = request(function, "tools/list")["result"]["tools"]
    assert "_meta" not in entry
    assert request(function, "resources/read", {"uri": APP_FORM_URI})["error"]["code"] == -32601


def test_a_tool_cannot_have_the_name_of_an_answer_tool() -> None:
    @tool(name="rate-form")
    def other() -> str:
        return ""

    with pytest.raises(ValueError, match="the name of its answer tool"):
        serve(rate, other)


@pytest.mark.parametrize("elicitation", [True, False])
@pytest.mark.parametrize("apps", [True, False])
def test_only_clients_with_apps_may_call_the_answer_tool_of_a_form(*, elicitation: bool, apps: bool) -> None:
    declared = {**(FORMS if elicitation else {}), **(APPS if apps else {})}
    talk = host(rate, capabilities=declared)
    talk.submit("rate-form", state="ks1.AA")
    assert talk.error["message"] == ("Invalid or expired requestState" if apps else "Unknown tool")
