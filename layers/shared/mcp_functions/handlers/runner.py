"""Runs one round of a handler, and returns its result, or None if the round ended with a question.

An ended round stays ended, even if the author's code catches the signal `InputRequired`. An exception that the author
did not intend is a `Crash`: the log gets its type and frames, and its text never leaves this process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.protocol.errors import Crash, McpError, is_ctrl_c

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.base import Handler
    from mcp_functions.rounds.round import Round


def run_round(
    handler: Handler[..., Any],
    params: Mapping[str, Any],
    round_: Round | None,
    call: Callable[[Mapping[str, Any], Round], dict[str, Any]] | None = None,
) -> dict[str, Any] | None:
    """Run one round of a handler; return None if the round ended without a result.

    Args:
        handler: runs the author's function.
        params: of the request.
        round_: the round; a handler that only returns needs none.
        call: runs in the place of `handler.call`; it may begin a task.

    Raises:
        McpError: the request has no result. `crash_result` writes one for a `Crash`.
    """
    result: dict[str, Any] | None = None
    error: BaseException | None = None
    try:
        result = call(params, round_) if call and round_ else handler.call(params, round_)
    except BaseException as raised:
        if is_ctrl_c(raised):
            raise
        error = raised
    if round_:
        round_.close()
    if round_ and (round_.ended or round_.error):  # also if the author's code has caught what ended it
        result, error = None, round_.error
    return result if error is None else _error_result(handler, error)


def crash_result(handler: Handler[..., Any], crash: Crash) -> dict[str, Any]:
    """Note a crash for the log, and write the result that reports it; a prompt or a resource has none."""
    observability.current().crash(crash.cause)
    if handler.kind != "tool":
        raise crash
    return handler.error_result(crash.message)


def crash_message(handler: Handler[..., Any]) -> str:
    """Return a message about a crash, without the text of the exception."""
    return f"The {handler.kind.partition('_')[0]} {handler.name} failed unexpectedly. The server's log says why."


def _error_result(handler: Handler[..., Any], error: BaseException) -> dict[str, Any]:
    """Write the result for an exception that is meant for the model; raise any other."""
    if isinstance(error, McpError):
        raise error
    text = _text_for_model(handler, error)
    if text is None:
        raise Crash(crash_message(handler), error) from None
    return handler.error_result(text)


def _text_for_model(handler: Handler[..., Any], error: BaseException) -> str | None:
    """Return the text for the model: of several tasks' exceptions the first one's, if all are meant for the model."""
    if not isinstance(error, BaseExceptionGroup):
        return handler.text_for_model(error)
    texts = [_text_for_model(handler, each) for each in error.exceptions]
    return None if None in texts else texts[0]
