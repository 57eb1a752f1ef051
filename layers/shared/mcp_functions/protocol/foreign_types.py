"""Classes that are types of the protocol: of this toolkit, of the official SDK, or of FastMCP.

A class is recognized by its package and its name, so `mcp` is never imported. An author's own model with a field `type`
is not a protocol type, and neither is a dict, whatever it holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = frozenset({"mcp_functions", "mcp_types", "mcp", "fastmcp"})
CONTENT = "content"
MESSAGE = "message"
CONTENTS = "contents"
RESULT = "result"
ROLES = {
    **dict.fromkeys(("Text", "TextContent", "Image", "ImageContent", "Audio", "AudioContent", "File"), CONTENT),
    **dict.fromkeys(("EmbeddedResource", "ResourceLink"), CONTENT),
    **dict.fromkeys(("PromptMessage", "SamplingMessage", "Message"), MESSAGE),
    **dict.fromkeys(("ResourceContents", "ReadResourceContents"), CONTENTS),
    **dict.fromkeys(("CallToolResult", "ToolResult", "GetPromptResult", "ReadResourceResult"), RESULT),
}


class Model(Protocol):
    """A model of the official SDK, for type checkers."""

    def model_dump(self, *, mode: str, by_alias: bool, exclude_none: bool) -> dict[str, Any]:
        """Write it as a dict."""


def role(value: object) -> str:
    """Return the role of a value in the protocol: CONTENT, MESSAGE, CONTENTS or RESULT; "" if it has none."""
    return role_of(type(value))


def role_of(kind: type) -> str:
    """Return the role of a class, which it may inherit."""
    return next((ROLES[base.__name__] for base in _protocol_bases(kind)), "")


def name(value: object) -> str:
    """Return the name of the protocol type that the class of a value is, or inherits from."""
    return next(base.__name__ for base in _protocol_bases(type(value)))


def is_protocol(kind: type) -> bool:
    """Check whether a class comes from a package of MCP, or inherits from one that does."""
    return any(_is_of_package(base) for base in kind.__mro__)


def is_ours(kind: type) -> bool:
    """Check whether a class is content of this toolkit, or inherits from it."""
    return any(base.__module__ == "mcp_functions.protocol.content" for base in kind.__mro__)


def is_of_a_server(kind: type) -> bool:
    """Check whether a class belongs to the server of another toolkit, so that its values are no data."""
    return kind.__module__.startswith(("mcp.server.", "fastmcp."))


def _protocol_bases(kind: type) -> Iterator[type]:
    return (base for base in kind.__mro__ if base.__name__ in ROLES and _is_of_package(base))


def _is_of_package(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in PACKAGES
