"""Tells whether a server belongs to a release of `mcp` or `fastmcp` that `adopt` takes."""

from __future__ import annotations

import ast
from importlib import metadata
from typing import TYPE_CHECKING

from mcp_functions_harness.adoption.syntax import decorators_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions_harness.adoption.sources import Sources

OLDEST = {"mcp": 2, "fastmcp": 4}  # the first major versions whose servers `adopt` takes
NEEDS = "adopt needs a server of mcp 2.x or FastMCP 4"
FASTMCP_OF_1 = "mcp.server.fastmcp"
RENAMED = "its FastMCP is MCPServer in 2.x, of mcp.server.mcpserver"
REMOVED = "in 2.x, a low-level server takes its functions when it is made: Server(name, on_{}=…)"
DECORATORS_OF_1 = frozenset({  # of the low-level server of mcp 1.x: @server.list_tools()
    "list_tools", "call_tool", "list_prompts", "get_prompt", "list_resources", "read_resource",
    "list_resource_templates", "subscribe_resource", "unsubscribe_resource", "set_logging_level",
})  # fmt: skip


def complaint(sources: Sources) -> str:
    """Say in one sentence why a server's library is too old, and what to change; "" if it is not."""
    for name, tree in sources.trees.items():
        for line, remedy in _parts_of_1(tree):
            return f"{NEEDS}, and {sources.shown(name)}:{line} is of mcp 1.x: {remedy}"
    imported = {module.partition(".")[0] for module in sources.packages}
    for package in OLDEST.keys() & imported:
        version = _installed_version(package)
        if version and int(version.partition(".")[0]) < OLDEST[package]:
            return f"{NEEDS}, and {package} {version} is installed here: pip install '{package}>={OLDEST[package]}'"
    return ""


def _parts_of_1(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Find what only servers of mcp 1.x have: the line, and what to write in 2.x."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(alias.name.startswith(FASTMCP_OF_1) for alias in node.names):
            yield node.lineno, RENAMED
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(FASTMCP_OF_1):
            yield node.lineno, RENAMED
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in decorators_of(node):
                if isinstance(decorator, ast.Attribute) and decorator.attr in DECORATORS_OF_1:
                    yield decorator.lineno, REMOVED.format(decorator.attr)


def _installed_version(package: str) -> str:
    """Return the version of a package; "" if it is not installed. `fastmcp` may be there as `fastmcp-slim` alone."""
    for name in (package, f"{package}-slim"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return ""
