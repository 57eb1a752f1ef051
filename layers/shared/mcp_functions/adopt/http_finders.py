"""Find what an author has built around the server for HTTP, which no Lambda serves: routes, applications, readers.

An application may be in any variable of an author's modules, because it is built around the server and not in it.
"""

# ruff: noqa: SLF001 - the libraries have no public name for what is read here

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette

from mcp_functions.adopt.library import LIBRARIES, is_of_library

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.adopt.finders import Examined

HTTP_READERS = frozenset({"get_http_request", "get_http_headers", "CurrentRequest", "CurrentHeaders"})


def routes(examined: Examined) -> Iterator[str]:
    """Find routes that an author has added to those of MCP."""
    found = getattr(examined.server, "_custom_starlette_routes", [])
    if examined.kind == "FastMCP":
        found = examined.server._get_additional_http_routes()
    for route in found:
        yield f"custom_route({getattr(route, 'path', '')!r})"


def http_apps(examined: Examined) -> Iterator[str]:
    """Find HTTP applications around the server: of this server, or in a variable of an author's module."""
    if getattr(examined.low_level, "_session_manager", None) is not None:
        yield "streamable_http_app(…)"
    for module, variable, value in _variables_of_authors():
        if _holds_http_app(value):
            yield f"the HTTP application {variable} of {module}"


def http_readers(examined: Examined) -> Iterator[str]:
    """Find code that reads the HTTP request: a function of FastMCP in an author's module, or middleware of `mcp`."""
    for module, variable, value in _variables_of_authors():
        if getattr(value, "__name__", "") in HTTP_READERS and is_of_library(value):
            yield f"{variable} of {module}"
    for middleware in examined.low_level.middleware:
        function: Any = middleware if inspect.isroutine(middleware) else type(middleware).__call__
        code = getattr(function, "__code__", None)  # partial() has none
        if code and not is_of_library(middleware) and "request" in code.co_names:
            yield f"the request that {function.__qualname__} reads"


def _variables_of_authors() -> Iterator[tuple[str, str, object]]:
    """Return the variables of all modules that are neither of Python nor installed, with their modules' names."""
    for name, module in list(sys.modules.items()):
        is_of_author = name.partition(".")[0] not in sys.stdlib_module_names and not name.startswith(LIBRARIES)
        if is_of_author and "site-packages" not in str(getattr(module, "__file__", None)):
            for variable, value in list(getattr(module, "__dict__", {}).items()):
                yield name.rpartition(".")[2], variable, value


def _holds_http_app(value: object, depth: int = 3) -> bool:
    """Tell whether a value is an HTTP application, or has one in an attribute, as middleware around it does."""
    if isinstance(value, Starlette | StreamableHTTPSessionManager):
        return True
    if depth == 0 or isinstance(value, type | ModuleType) or hasattr(value, "__get__") or is_of_library(value):
        return False
    return any(_holds_http_app(each, depth - 1) for each in list(getattr(value, "__dict__", {}).values()))
