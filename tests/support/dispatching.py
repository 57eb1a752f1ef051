"""A dispatcher without a deployment: handlers, settings, and the parts of conversations that a test gives."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from mcp_functions.dispatch.conversations import Conversations
from mcp_functions.dispatch.dispatcher import Dispatcher

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_functions.handlers.base import Handler
    from mcp_functions.seal.request_state import RequestStates
    from mcp_functions.settings import Settings
    from mcp_functions.store import SealedTable


def no_table(_seconds: int) -> NoReturn:
    message = "this test has no table"
    raise AssertionError(message)


def dispatcher(
    handlers: Sequence[Handler[..., Any]],
    settings: Settings,
    audience: str,
    states: Callable[..., RequestStates] | None,
    table: Callable[[int], SealedTable] = no_table,
    **options: Any,  # noqa: ANN401 - as Conversations takes them
) -> Dispatcher:
    """Make the dispatcher of some handlers."""
    conversations = partial(Conversations, audience, states, table, **options)
    return Dispatcher(handlers, settings, conversations, options.get("tasks"))
