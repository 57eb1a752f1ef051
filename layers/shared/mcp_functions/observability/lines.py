"""The line of a request: a record of `logging` with a message and fields (`extra=`).

Lambda's own JSON formatter writes it, or the author's Powertools Logger (`serve(logger=…)`).
"""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

from mcp_functions.observability.notes import CRASHED, correlation, failed, fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcp_functions.observability.notes import Notes

NAME = "mcp_functions"

# Reasons of responses to clients of 2025 that are no fault of the server: an answer came twice or too late, or the
# client has cancelled or could not ask.
USUAL = {
    "answered_before", "answered_late", "cancelled", "client_error", "not_answered", "not_cancelled", "nothing_waits",
}  # fmt: skip

log = logging.getLogger(NAME)


class Logger(Protocol):
    """A logger of Powertools or of `logging`."""

    def info(self, msg: object, /, *, extra: Mapping[str, Any]) -> object:
        """Write a line at INFO; `extra` holds its fields."""

    def error(self, msg: object, /, *, extra: Mapping[str, Any]) -> object:
        """Write a line at ERROR; `extra` holds its fields."""


def tell(notes: Notes, logger: Logger | None = None) -> None:
    """Write the line of one request: at INFO, or at ERROR if the operator or the author has to act."""
    level = level_of(notes)
    if logger is None and not log.isEnabledFor(level):
        return
    # Lambda's formatter writes a logger's name as `logger`, and Powertools' does not.
    extra = fields(notes) if logger is None else {"logger": NAME, **fields(notes)}
    write = (logger or log).error if level == logging.ERROR else (logger or log).info
    write(message(notes), extra=extra)


@contextmanager
def correlated(logger: Any, notes: Notes) -> Iterator[None]:  # noqa: ANN401 - Powertools' Logger, which is not imported
    """Set a Powertools Logger's correlation id to API Gateway's request id; restore the earlier one afterwards."""
    identifier = correlation(notes.correlation_id) if hasattr(logger, "set_correlation_id") else None
    if identifier is None:
        yield
        return
    before = None
    with suppress(Exception):  # a logger that raises must not prevent the response
        before = logger.get_correlation_id()
        logger.set_correlation_id(identifier)
    try:
        yield
    finally:
        with suppress(Exception):
            logger.set_correlation_id(before)


def level_of(notes: Notes) -> int:
    """Return the level of a request's line."""
    # A complete response with another reason: the conversation's record exceeded a limit.
    limited = notes.outcome == "complete" and notes.reason and notes.reason not in USUAL
    return logging.ERROR if failed(notes) or limited else logging.INFO


def message(notes: Notes) -> str:
    """Return the text of a request's line."""
    if notes.outcome == CRASHED:
        return f"failed: {notes.reason} at {notes.place}"
    if notes.outcome in {"refused", "failed"}:
        return f"refused: {notes.status if notes.code is None else notes.code} {notes.reason}"
    return f"answered: {notes.outcome}" + (f": {notes.reason}" if notes.reason else "")
