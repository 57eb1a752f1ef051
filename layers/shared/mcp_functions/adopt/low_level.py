"""Finds the low-level server in a server that was written with `mcp` or `fastmcp`: it has the handlers."""

from __future__ import annotations

from typing import Any

from mcp.server.lowlevel import Server

# The private attributes in which MCPServer and FastMCP keep their low-level server. They have no public one.
ATTRIBUTES = ("_lowlevel_server", "_mcp_server")


def find_low_level(server: object) -> Server[Any]:
    """Find the low-level server inside another one.

    Raises:
        TypeError: `server` is none of the three kinds.
    """
    found = server
    for attribute in ATTRIBUTES:
        found = getattr(found, attribute, found)
    if not isinstance(found, Server):
        kinds = "mcp.server.mcpserver.MCPServer, mcp.server.Server or fastmcp.FastMCP (4 or newer)"
        message = f"adopt takes one server: {kinds}, and not {type(server).__module__}.{type(server).__name__}"
        raise TypeError(message)
    return found
