"""Tool, Prompt, Resource, ResourceTemplate: an author's function, its description, and how a request calls it.

The signature is the contract. Before `*` stands what the client sends (and the schema says so); after it, what the
function may do: a handler without `elicit` can never ask, which its Lambda's permissions show. Decorating leaves the
function callable as it was.
"""

from __future__ import annotations

from mcp_functions.handlers.base import Handler
from mcp_functions.handlers.completing import Completing
from mcp_functions.handlers.prompts import Prompt
from mcp_functions.handlers.resources import Resource, ResourceTemplate
from mcp_functions.handlers.tools import Tool

__all__ = ["Completing", "Handler", "Prompt", "Resource", "ResourceTemplate", "Tool"]
