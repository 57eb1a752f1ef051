"""The sample `sales`: a tool, and a chart in HTML (MCP Apps) that shows its result.

`recording` compares a conversation with the API Gateway events in events/sales.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from functions.sales.app import CHART, PAGE, handler
from mcp_functions_harness.testing import Conversation

if TYPE_CHECKING:
    from tests.support.recordings import Recording


def test_the_chart_is_a_resource_beside_the_tool(recording: Recording) -> None:
    talk = Conversation(handler).call("sales", year=2026)
    assert talk.result["structuredContent"] == {"year": 2026, "quarters": [86, 75, 64, 53]}
    talk.read(CHART)
    (page,) = talk.result["contents"]
    assert page["mimeType"] == "text/html;profile=mcp-app"
    assert page["text"] == PAGE
    recording.assert_matches(talk, steps=["sales", "chart"])


def test_the_tools_meta_names_the_uri_of_the_chart() -> None:
    tool = next(entry for entry in handler.handlers if entry.kind == "tool")
    assert tool.describe()["_meta"] == {"ui": {"resourceUri": CHART}}
