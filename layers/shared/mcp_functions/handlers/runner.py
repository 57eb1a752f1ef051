"""One round of a handler, played: what it returned, or None if it ended with the signal.

Whatever the author's code does with the signal, an ended round has ended. What the author's code raises by accident, or
breaks, is a `Crash`: the type, the rule and the frames are logged, and its text stays in this process.
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
    """What plays a round: a handler, or what stands in for one."""

    @property
    def label(self) -> str:
        """What errors call it: its kind and its name."""

    def call(self, params: Mapping[str, Any], round_: Round) -> dict[str, Any]:
        """Run one round of a request."""

    def error_result(self, reason: str) -> dict[str, Any]:
        """Say that the request cannot be completed."""

    def text_for_model(self, error: BaseException) -> str | None:
        """Return the text of an exception that is meant for the model; None if it is not."""


def run_round(handler: Runnable, params: Mapping[str, Any], round_: Round | None) -> dict[str, Any] | None:
    """Run one round of a handler; None if it ended with the signal, whatever the author's code did with that.

    Args:
        handler: what plays it.
        params: of the request.
        round_: None for a handler that can do nothing but return.

    Raises:
        McpError: the request has no result. A `Crash` becomes one by `crash_result`.

    """
    result: dict[str, Any] | None = None
    try:
        result = handler.call(params, round_)  # type: ignore[arg-type]  # a handler that can only return takes None
    except InputRequired as signal:
        if round_ is None:
            raise Crash(crash_message(handler), _by_hand(signal)) from None
        if not round_.ended:
            round_.broken = round_.broken or _by_hand(signal)
    except BaseException as error:  # noqa: BLE001 - Lambda's runtime would log the text of whatever is raised
        # The round has ended, whatever the author made of the signal; if that is wrong, the last round will say so.
        if is_ctrl_c(error) or not (round_ and (round_.ended or round_.broken)):
            result = _failed(handler, error)
    if round_ is None:
        return result
    round_.close()
    if round_.broken:
        raise Crash(crash_message(handler), round_.broken)
    if round_.gave_up:
        return handler.error_result(round_.gave_up)
    return None if round_.ended else result


def crash_result(handler: Handler[..., Any], crash: Crash) -> dict[str, Any]:
    """Note a crash for the log, and return the result that says so.

    Raises:
        Crash: itself, where no result can say so: of a prompt or a resource.

    """
    observability.current().crash(crash.cause)
    return handler.crashed(crash)


def crash_message(handler: Runnable) -> str:
    """Say that a handler crashed, and nothing of what it raised."""
    return f"The {handler.label} failed unexpectedly. The server's log says why."


def _by_hand(signal: InputRequired) -> DeveloperError:
    """Say that the author's code raised the signal itself: no question stands behind it, so no round could go on."""
    return DeveloperError(BY_HAND).with_traceback(signal.__traceback__)


def _failed(handler: Runnable, error: BaseException) -> dict[str, Any]:
    """Return what an exception tells the model, if it is meant to.

    Raises:
        McpError: the exception itself, if it is one; else a `Crash`.

    """
    if isinstance(error, McpError) or is_ctrl_c(error):
        raise error
    if isinstance(error, BaseExceptionGroup) and (text := _told(handler, error)) is not None:
        return handler.error_result(text)
    raise Crash(crash_message(handler), error) from None


def _told(handler: Runnable, group: BaseExceptionGroup[BaseException]) -> str | None:
    """Return what tasks of an async handler tell the model, if that is all they raised."""
    told, others = group.split(lambda error: handler.text_for_model(error) is not None)
    if others is not None or told is None:
        return None
    first: BaseException = told
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return handler.text_for_model(first)
