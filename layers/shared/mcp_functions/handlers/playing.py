"""One round of a handler, played: what it returned, or None if it ended with the signal.

Whatever the author's code does with the signal, an ended round has ended; and what it broke is the author's to hear.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from mcp_functions.errors import DeveloperError, InputRequired, InternalError, NotAnswered, ToolError
from mcp_functions.observing import redacted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.handlers.base import Handler
    from mcp_functions.rounds import Round


class Playable(Protocol):
    """What plays a round: a handler, or what stands in for one."""

    def call(self, params: Mapping[str, Any], round_: Round) -> dict[str, Any]:
        """Run one round of a request."""

    def failed(self, reason: str) -> dict[str, Any]:
        """Say that the request cannot be completed."""


def play(handler: Playable, params: Mapping[str, Any], round_: Round) -> dict[str, Any] | None:
    """Run one round of a handler; None if it ended with the signal, whatever the author's code did with that.

    Raises:
        McpError: the request has no result.
        Exception: what the author's function raised, and nobody knows.

    """
    try:
        result: dict[str, Any] | None = handler.call(params, round_)
    except InputRequired:
        result = None
    except BaseExceptionGroup as group:  # of tasks in an async handler
        result = None if round_.ended else handler.failed(_said(group))
    except DeveloperError as error:
        raise InternalError(reason=_told(str(error), params, round_)) from None
    except Exception:
        # The round has ended, whatever the author made of the signal; if that is wrong, the last round will say so.
        if not round_.ended:
            raise
        result = None
    if round_.broken:
        raise InternalError(reason=_told(round_.broken, params, round_))
    if round_.gave_up:
        return handler.failed(round_.gave_up)
    return None if round_.ended else result


def returned(handler: Handler[..., Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Run a handler that can do nothing but return.

    Raises:
        McpError, Exception: as `play` says.

    """
    try:
        return handler.call(params, None)
    except BaseExceptionGroup as group:  # of tasks in an async handler
        return handler.failed(_said(group))
    except DeveloperError as error:
        raise InternalError(reason=redacted(str(error), params.get("arguments"), params.get("uri"))) from None
    except InputRequired:
        reason = f"{handler.name} raised InputRequired by hand; to ask, it takes a capability after *"
        raise InternalError(reason=reason) from None


def _told(rule: str, params: Mapping[str, Any], round_: Round) -> str:
    """Say which rule the author broke, in words that hold nothing of the client's: keys are made of arguments."""
    heard = [*params.get("inputResponses", {}).values()]
    heard += [answer for known in round_.record.get("answers", {}).values() for answer in known.values()]
    steps = [step[1] for step in round_.record.get("steps", {}).values()]
    contents = [answer.get("content") for answer in heard]
    return redacted(rule, params.get("arguments"), params.get("uri"), round_.state, *contents, *steps)


def _said(group: BaseExceptionGroup[BaseException]) -> str:
    """Return what tasks want the model to know, if that is all they raised."""
    said, others = group.split((ToolError, NotAnswered))
    if others is not None or said is None:
        raise group
    first: BaseException = said
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return str(first)
