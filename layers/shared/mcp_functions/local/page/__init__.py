"""The page at `/`: a browser calls tools, prompts and resources, answers their questions and looks at each round.

The page is a client like any other: it sends MCP 2026-07-28 to `/mcp`. A round is one request of an unfinished call,
and between two rounds the client keeps the call's encrypted state, which no client can read. So the page has control
routes, which decrypt ("open") a state for the developer, and refuse everyone else.
"""

from __future__ import annotations

from mcp_functions.local.page.routes import Page

__all__ = ["Page"]
