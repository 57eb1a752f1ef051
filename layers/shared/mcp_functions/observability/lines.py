"""The line of a request: a record of `logging` with a message and fields (`extra=`).

Lambda's own JSON formatter writes it, or the author's Powertools Logger (`serve(logger=…)`).
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from mcp_functions.observability import CRASHED, UNKNOWN, failed, fields
from mcp_functions.protocol.constants import METHODS, PROTOCOL_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.observability import Notes

NAME = "mcp_functions"

# Usual reasons of responses to clients of 2025: an answer came twice or too late, or the client has cancelled or could
# not ask. The server has not failed.
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


def write_line(notes: Notes, logger: Logger | None = None) -> None:
    """Write the line of one request: at INFO, or at ERROR if the operator or the author has to act."""
    level = level_of(notes)
    if logger is None and not log.isEnabledFor(level):
        return
    with suppress(Exception):  # a line that fails must not cost the client its response
        extra = all_fields(notes)
        if logger is not None:
            extra = {"logger": NAME, **extra}  # Lambda's formatter writes a logger's name, Powertools' does not
        write = (logger or log).error if level == logging.ERROR else (logger or log).info
        write(message(notes), extra=extra)


def set_correlation_id(logger: Any, identifier: object) -> object:  # noqa: ANN401 - Powertools' Logger, which is not imported
    """Set the correlation id of a Powertools Logger, and return its earlier one. Another logger has none."""
    if hasattr(logger, "set_correlation_id"):
        with suppress(Exception):  # a logger that raises must not prevent the response
            earlier = logger.get_correlation_id()
            logger.set_correlation_id(identifier)
            return earlier
    return None


def all_fields(notes: Notes) -> dict[str, Any]:
    """Return the fields of a log line: this package's own, and those of OpenTelemetry's conventions."""
    return {**fields(notes), **conventions(notes)}


def conventions(notes: Notes) -> dict[str, str]:
    """Return a request's attributes by OpenTelemetry's "Semantic conventions for Model Context Protocol" (Development).

    `jsonrpc.request.id` and `mcp.resource.uri` are left out because the client writes them; it could write a secret.
    """
    method = notes.method if notes.method in METHODS else None
    handler = None if notes.handler == UNKNOWN else notes.handler
    # A refused request may be of any revision.
    revision = PROTOCOL_VERSION if method and notes.outcome != "refused" else None
    known = {
        "mcp.method.name": method,
        "mcp.protocol.version": notes.revision or revision,
        "gen_ai.tool.name": handler if method == "tools/call" else None,
        "gen_ai.prompt.name": handler if method == "prompts/get" else None,
        "error.type": error_type(notes),
    }
    return {name: value for name, value in known.items() if value is not None}


def error_type(notes: Notes) -> str | None:
    """Return the class of an error: `tool_error`, or the JSON-RPC code, or the HTTP status. None: there is none."""
    if notes.tool_error:
        return "tool_error"
    if notes.outcome in {"refused", "failed", CRASHED}:
        return str(notes.status if notes.code is None else notes.code)
    return None


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
