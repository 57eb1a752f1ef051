"""The page at `/`: a browser calls tools, prompts and resources, answers their questions and looks at each round.

The page is a client like any other: it sends MCP 2026-07-28 to `/mcp`. No client may open a state. So the page has
control routes for this, which refuse everyone else.
"""

from __future__ import annotations

from mcp_functions.local.page.routes import Access, ExecutionLog, Page

__all__ = ["Access", "ExecutionLog", "Page"]
