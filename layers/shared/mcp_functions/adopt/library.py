"""The parts of `mcp` and `fastmcp` that this package reads: which server is inside which, and what it was given."""

# ruff: noqa: SLF001 - the libraries have no public name for what is read here

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary

from mcp_functions.protocol.constants import METHODS, SKILL_METHODS

if TYPE_CHECKING:
    from collections.abc import Iterator

# The private attributes in which MCPServer and FastMCP keep their low-level server. They have no public one.
LOW_LEVEL_ATTRIBUTES = ("_lowlevel_server", "_mcp_server")
LIBRARIES = ("mcp.", "fastmcp.", "mcp_functions.")  # what these modules define is no author's
DEFAULT_TTL = 600  # of the library's own RequestStateSecurity, in seconds


def find_low_level(server: object) -> Server[Any]:
    """Find the low-level server inside another one: it has the handlers."""
    found = server
    for attribute in LOW_LEVEL_ATTRIBUTES:
        found = getattr(found, attribute, found)
    if not isinstance(found, Server):
        kinds = "mcp.server.mcpserver.MCPServer, mcp.server.Server or fastmcp.FastMCP (4 or newer)"
        raise TypeError(f"adopt takes one server: {kinds}, and not {type(server).__module__}.{type(server).__name__}")
    return found


def find_outermost(server: Any) -> object:  # noqa: ANN401 - of three libraries
    """Find the FastMCP or MCPServer around a low-level server: it has the options that its author set."""
    if hasattr(server, "fastmcp"):  # the low-level server of a FastMCP
        outer: object = server.fastmcp
        return outer
    entry = server.get_request_handler("tools/list") if isinstance(server, Server) else None
    owner: object = getattr(entry and entry.handler, "__self__", None)
    return owner if getattr(owner, "_lowlevel_server", None) is server else server


def kind_of(server: object) -> str:
    """Return which of the three kinds a server is."""
    if hasattr(server, "_mcp_server"):
        return "FastMCP"
    return "MCPServer" if hasattr(server, "_lowlevel_server") else "Server"


def is_of_library(thing: object) -> bool:
    """Tell whether a function, or the class of an object, is one of the libraries, and not of an author."""
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return str(named.__module__).startswith(LIBRARIES)


def fastmcp_servers(server: object) -> Iterator[Any]:
    """Return a FastMCP server, and those that are mounted into it; nothing for a server of another kind."""
    waiting: list[Any] = [server]
    seen: list[object] = []
    while waiting:
        found = waiting.pop()
        if kind_of(found) != "FastMCP" or any(found is each for each in seen):
            continue
        seen.append(found)
        yield found
        waiting += [getattr(_unwrapped(provider), "server", None) for provider in found.providers]


def components(server: Any) -> Iterator[Any]:  # noqa: ANN401 - a FastMCP
    """Return the tools, prompts and resources that a FastMCP server, or a provider in it, itself has."""
    for provider in server.providers:
        yield from getattr(_unwrapped(provider), "_components", {}).values()


def _unwrapped(provider: Any) -> Any:  # noqa: ANN401 - of FastMCP
    """Return a provider without its wrappers, which add a namespace or a transform."""
    while hasattr(provider, "_inner"):
        provider = provider._inner
    return provider


def boundaries(low_level: Server[Any]) -> Iterator[RequestStateBoundary]:
    """Return the middleware with which a server seals its states."""
    return (each for each in low_level.middleware if isinstance(each, RequestStateBoundary))


def answer_bound(low_level: Server[Any]) -> int | None:
    """Return the seconds after which the server itself refuses a state; None if its author has not shortened them."""
    boundary = next(boundaries(low_level), None)
    ttl = boundary._security.ttl if boundary else DEFAULT_TTL
    return max(1, int(ttl)) if ttl < DEFAULT_TTL else None


def extension_methods(low_level: Server[Any]) -> list[str]:
    """Return the methods of requests that only the server's extensions have, as `skills/list`."""
    answered_here = METHODS - set(SKILL_METHODS)
    return sorted(set(low_level._request_handlers) - answered_here)
