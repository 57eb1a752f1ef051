"""Tool, Prompt, Resource, ResourceTemplate: an author's function, its description, and how a request calls it.

The signature is the contract. Before `*` stands what the client sends (and the schema says so); after it, what the
function may do: a handler without `elicit` can never ask, which its Lambda's permissions show. Decorating leaves the
function callable as it was. A tool does not load what prompts and resources need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_functions.handlers.base import Handler as Handler
    from mcp_functions.handlers.base import Mode as Mode
    from mcp_functions.handlers.completing import Completing as Completing
    from mcp_functions.handlers.prompts import Prompt as Prompt
    from mcp_functions.handlers.resources import Resource as Resource
    from mcp_functions.handlers.resources import ResourceTemplate as ResourceTemplate
    from mcp_functions.handlers.tools import Tool as Tool

_HOME = {
    "Completing": "completing",
    "Handler": "base",
    "Mode": "base",
    "Prompt": "prompts",
    "Resource": "resources",
    "ResourceTemplate": "resources",
    "Tool": "tools",
}
__all__ = sorted(_HOME)  # noqa: PLE0605 - a list of the words above

if not TYPE_CHECKING:  # which would take every misspelt word for an object

    def __getattr__(word: str) -> object:
        """Import a class's module when the class is first used."""
        if word not in _HOME:
            message = f"module {__name__!r} has no attribute {word!r}"
            raise AttributeError(message)
        value = globals()[word] = getattr(import_module(f"{__name__}.{_HOME[word]}"), word)
        return value
