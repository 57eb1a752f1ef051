"""Finds the handler that a conversation calls: the named one, or the function's first."""

from collections.abc import Iterable
from typing import Any

from mcp_functions.handlers.base import Handler
from mcp_functions.protocol.wire_types import JSONObject

METHODS = {"tool": "tools/call", "prompt": "prompts/get"}


def find_called(handlers: Iterable[Handler[..., Any]], name: str | None) -> Handler[..., Any]:
    """Find a tool or a prompt.

    Raises:
        ValueError: there is none of this name.
    """
    callable_ones = [handler for handler in handlers if handler.kind in METHODS]
    for handler in callable_ones:
        if name in {None, handler.name}:
            return handler
    names = ", ".join(handler.name for handler in callable_ones) or "none (a resource is read: talk.read(uri))"
    raise ValueError(f"the function has no tool or prompt {name or ''}; it has: {names}")


def find_completing(handlers: Iterable[Handler[..., Any]], name: str | None) -> Handler[..., Any]:
    """Find a prompt or a URI template that completes arguments.

    Raises:
        ValueError: there is none of this name.
    """
    completing = [handler for handler in handlers if handler.has_completers]
    for handler in completing:
        if name in {None, handler.name}:
            return handler
    names = ", ".join(handler.name for handler in completing) or "none (see `complete` of a prompt or template)"
    raise ValueError(f"the function completes no arguments of {name or 'a prompt or template'}; it does for: {names}")


def reference(handler: Handler[..., Any]) -> JSONObject:
    """Return the `ref` with which `completion/complete` names a handler."""
    if handler.kind == "prompt":
        return {"type": "ref/prompt", "name": handler.key}
    return {"type": "ref/resource", "uri": handler.key}
