"""Runs one round of a handler, and returns its result, or None if the round ended with a question.

An ended round stays ended, even if the author's code catches the signal `InputRequired`. An exception that the author
did not intend is a `Crash`: the log gets its type and frames, and its text never leaves this process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from mcp_functions import observability
from mcp_functions.protocol.errors import Crash, DeveloperError, InputRequired, McpError, is_ctrl_c

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.handlers.base import Handler
    from mcp_functions.rounds.round import Round

BY_HAND = "a function raised InputRequired by hand; to ask, it takes a capability after *"


class Runnable(Protocol):
    """A handler, or an object that runs in its place."""

    @property
    def label(self) -> str:
        """Its kind and its name, for error messages."""

    def call(self, params: Mapping[str, Any], round_: Round) -> dict[str, Any]:
        """Run one round of a request."""

    def error_result(self, text: str) -> dict[str, Any]:
        """Write the result of a request that cannot be completed."""

    def text_for_model(self, error: BaseException) -> str | None:
        """Return the text of an exception that is meant for the model; None if it is not."""


def run_round(handler: Runnable, params: Mapping[str, Any], round_: Round | None) -> dict[str, Any] | None:
    """Run one round of a handler; return None if the round ended without a result.

    Raises:
        McpError: the request has no result. `crash_result` writes one for a `Crash`.
    """
    result: dict[str, Any] | None = None
    try:
        result = handler.call(params, round_)  # type: ignore[arg-type]  # a handler that only returns takes None
    except InputRequired as signal:
        if round_ is None:
            raise Crash(crash_message(handler), _raised_by_hand(signal)) from None
        if not round_.ended:
            round_.error = round_.error or _raised_by_hand(signal)
    except BaseException as error:  # noqa: BLE001 - Lambda's runtime would log the text of every exception
        has_ended = round_ is not None and (round_.ended or round_.error)
        if is_ctrl_c(error) or not has_ended:
            result = _error_result(handler, error)
    return result if round_ is None else _close(handler, round_, result)


def _close(handler: Runnable, round_: Round, result: dict[str, Any] | None) -> dict[str, Any] | None:
    round_.close()
    if isinstance(round_.error, DeveloperError):
        raise Crash(crash_message(handler), round_.error)
    if round_.error:
        return handler.error_result(str(round_.error))
    return None if round_.ended else result


def _raised_by_hand(signal: InputRequired) -> DeveloperError:
    """Return the error for a signal that the author's code raised: no question ended the round."""
    return DeveloperError(BY_HAND).with_traceback(signal.__traceback__)


def crash_result(handler: Handler[..., Any], crash: Crash) -> dict[str, Any]:
    """Note a crash for the log, and write the result that reports it; a prompt or a resource has none."""
    observability.current().crash(crash.cause)
    if handler.kind != "tool":
        raise crash
    return handler.error_result(crash.message)


def crash_message(handler: Runnable) -> str:
    """Return a message about a crash, without the text of the exception."""
    return f"The {handler.label} failed unexpectedly. The server's log says why."


def _error_result(handler: Runnable, error: BaseException) -> dict[str, Any]:
    """Write the result for the exceptions of several tasks, if each is meant for the model; raise any other."""
    if isinstance(error, McpError) or is_ctrl_c(error):
        raise error
    text = _group_text(handler, error) if isinstance(error, BaseExceptionGroup) else None
    if text is None:
        raise Crash(crash_message(handler), error) from None
    return handler.error_result(text)


def _group_text(handler: Runnable, group: BaseExceptionGroup[BaseException]) -> str | None:
    """Return the text of the first exception in a group, if all of them are meant for the model."""
    for_model, others = group.split(lambda error: handler.text_for_model(error) is not None)
    if others is not None or for_model is None:
        return None
    first: BaseException = for_model
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return handler.text_for_model(first)
