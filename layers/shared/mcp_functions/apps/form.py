"""The form for questions as a resource (MCP Apps): one static page, the same for every tool, server and caller.

A host shows the page in a frame beside a pending result, and gives it that result, in which the questions are.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.constants import APP_FORM_URI, APP_MIME_TYPE

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import ContentBlock, ListEntry, ResultObject

FILE = Path(__file__).with_name("form.html")
DAY_MS = 24 * 3600 * 1000
# Ext-apps, "UI Resource Format": without `csp` the host allows no domain.
UI: Any = {"ui": {"prefersBorder": True}}


def entry() -> ListEntry:
    """Write the entry of the form in `resources/list`, so that a host can review it before it shows it."""
    text = "The form in which a person answers the questions of this server's tools"
    return {
        "uri": APP_FORM_URI,
        "name": "mcp-functions-form",
        "description": text,
        "mimeType": APP_MIME_TYPE,
        "_meta": UI,
    }


def contents() -> ResultObject:
    """Write the result of `resources/read`."""
    text = FILE.read_text(encoding="utf-8")
    page: ContentBlock = {"uri": APP_FORM_URI, "mimeType": APP_MIME_TYPE, "text": text, "_meta": UI}
    return {"contents": [page], "ttlMs": DAY_MS, "cacheScope": "public"}
