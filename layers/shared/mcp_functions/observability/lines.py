"""The line of a request: a record of `logging` with a level, a message and fields (`extra=`).

    INFO   answered: input_required                             {"method": "tools/call", "handler": "book_flight", …}
    INFO   refused: -32602 expired                              …
    ERROR  failed: ValueError at app.py:12 in book_flight < …   …

Lambda's own JSON formatter writes it, or the author's Powertools Logger (`serve(logger=…)`). The input is the notes on
the request (`observability.Notes`).
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from mcp_functions.observability import CRASHED, FAILED, UNKNOWN, fields
from mcp_functions.protocol.constants import METHODS, PROTOCOL_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.observability import Notes

NAME = "mcp_functions"  # the name of the logger

# Reasons of complete responses to clients of 2025 (`legacy`): an answer came twice or too late, or the client has
# cancelled or could not ask. Neither the operator nor the author has to act.
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
        target = logger or log
        if level == logging.ERROR:
            target.error(message(notes), extra=extra)
        else:
            target.info(message(notes), extra=extra)


def set_correlation_id(logger: Any, identifier: object) -> object:  # noqa: ANN401 - Powertools' Logger, which is not imported
    """Set the correlation id of a Powertools Logger, and return its earlier one; None if the logger has no such id."""
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
    revision = notes.revision
    if revision is None and method and notes.outcome != "refused":  # a refused request may be of any revision
        revision = PROTOCOL_VERSION
    known = {
        "mcp.method.name": method,
        "mcp.protocol.version": revision,
        "gen_ai.tool.name": handler if method == "tools/call" else None,
        "gen_ai.prompt.name": handler if method == "prompts/get" else None,
        "error.type": error_type(notes),
    }
    return {name: value for name, value in known.items() if value is not None}


def error_type(notes: Notes) -> str | None:
    """Return the class of an error: `tool_error`, or the JSON-RPC code, or the HTTP status. None: there is none."""
    if notes.tool_error:
        return "tool_error"
    if notes.outcome in {"refused", FAILED, CRASHED}:
        return _code(notes)
    return None


def level_of(notes: Notes) -> int:
    """Return the level of a request's line."""
    has_failed = notes.outcome in {CRASHED, FAILED}  # the HTTP status does not show it: a crashed tool has 200
    # A complete response with any other reason: a conversation, or a table's item, exceeded a limit. The reason has
    # the limit's number in it, so it cannot be looked up here.
    is_limited = notes.outcome == "complete" and notes.reason and notes.reason not in USUAL
    return logging.ERROR if has_failed or is_limited else logging.INFO


def message(notes: Notes) -> str:
    """Return the text of a request's line, for people; metric filters and queries read the fields.

    The text says what the client received: "failed" if an author's function crashed, "refused" for every other error,
    also for an error of the server. Only the field `outcome` tells those apart.
    """
    if notes.outcome == CRASHED:
        return f"failed: {notes.reason} at {notes.place}"
    if notes.outcome in {"refused", FAILED}:
        return f"refused: {_code(notes)} {notes.reason}"
    if notes.reason:
        return f"answered: {notes.outcome}: {notes.reason}"
    return f"answered: {notes.outcome}"


def _code(notes: Notes) -> str:
    """Return the JSON-RPC code of an error, or the HTTP status of one that HTTP alone decided."""
    return str(notes.status if notes.code is None else notes.code)
