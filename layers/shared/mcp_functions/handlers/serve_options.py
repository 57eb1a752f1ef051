"""The options of `serve` that change its handlers: exceptions for the model, a hook around calls, who the server is."""

from __future__ import annotations

from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcp_functions.handlers.base import Handler
from mcp_functions.handlers.tools import Tool, exceptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from mcp_functions.handlers.hooks import Call


def apply(
    handlers: Sequence[Handler[..., Any]],
    *,
    errors: Sequence[type[Exception]],
    around: Callable[[Call], AbstractContextManager[object]] | None,
    about: Mapping[str, Any],
) -> tuple[Handler[..., Any], ...]:
    """Return copies of the handlers that have the options.

    Args:
        handlers: what the author decorated; they stay as they are, because another function may serve them too.
        errors: exceptions whose text is meant for the model, besides those of each tool.
        around: the hook.
        about: what the function says of itself, as `catalog.read_about` returns it.

    Raises:
        TypeError: an option is wrong, or the hook is to run around an adopted server.
    """
    changes: dict[str, Any] = {}
    if around is not None:
        _check_hook(around, handlers)
        import_module("mcp_functions.handlers.hooks")  # at init; a function without a hook does not need it
        changes["around"] = around
    checked = exceptions(errors)
    return tuple(_change(handler, changes, about, checked) for handler in handlers)


def _check_hook(around: object, handlers: Sequence[Handler[..., Any]]) -> None:
    if not callable(around):
        message = "around is a function that takes a Call and returns a context manager"
        raise TypeError(message)
    if any(type(handler).call is not Handler.call for handler in handlers):
        message = "around is for @tool, @prompt and @resource: an adopted server has the middleware of its library"
        raise TypeError(message)


def _change(
    handler: Handler[..., Any], changes: Mapping[str, Any], about: Mapping[str, Any], errors: frozenset[type[Exception]]
) -> Handler[..., Any]:
    changed = copy(handler)
    vars(changed).update(changes, server={**handler.server, **about})
    if isinstance(changed, Tool):
        changed.errors = changed.errors | errors
    return changed
