"""A tool with an app of its author's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from functions.sales.app import CHART, PAGE, handler
from mcp_functions.testing import Conversation

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.local.api_gateway.events import Moment

    Recorded = Callable[[Conversation, list[str]], None]

QUARTERS = [86, 75, 64, 53]


def test_the_sales_of_a_year_come_with_the_app_that_shows_them(
    recorded: Recorded, moment: Callable[[], Moment]
) -> None:
    talk = Conversation(handler, moment=moment).call("sales", year=2026)
    assert talk.result["structuredContent"] == {"year": 2026, "quarters": QUARTERS}
    talk.read(CHART)
    (page,) = talk.result["contents"]
    assert (page["mimeType"], page["text"]) == ("text/html;profile=mcp-app", PAGE)
    recorded(talk, ["sales", "chart"])


def test_the_tool_names_its_app() -> None:
    tool = next(each for each in handler.handlers if each.kind == "tool")
    assert tool.describe()["_meta"] == {"ui": {"resourceUri": CHART}}
