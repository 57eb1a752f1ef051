"""The page at `/`: a browser calls tools, prompts and resources, answers their questions and looks at each round.

The page itself is a client like any other: it sends MCP 2026-07-28 to `/mcp`. What no client may do, such as opening a
state, has routes of its own, which only this page can use.
"""

from __future__ import annotations

from mcp_functions.local.page.executions import ExecutionLog
from mcp_functions.local.page.routes import Access, Page

__all__ = ["Access", "ExecutionLog", "Page"]
