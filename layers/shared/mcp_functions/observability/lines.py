"""The line of a request: a record of `logging` with a level, a message and fields (`extra=`).

    DEBUG  answered: forwarded                                  {"method": "tools/call", "handler": "book_flight", …}
    INFO   answered: input_required                             …
    INFO   refused: -32602 expired                              …
    ERROR  failed: ValueError at app.py:12 in book_flight < …   …

Lambda's own JSON formatter writes it, or the author's Powertools Logger (`serve(logger=…)`). The input is the notes on
the request (`observability.Notes`).
"""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mcp_functions.observability import ERRORS, UNKNOWN
from mcp_functions.protocol.constants import METHODS, PROTOCOL_VERSION
from mcp_functions.protocol.json_writer import base64url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.observability import Notes

    Field: TypeAlias = "str | float | None"  # one that is unknown (None) is left out

NAME = "mcp_functions"  # the name of the logger

# Attributes of the notes that are fields of the line, with the same name and value.
UNCHANGED_FIELDS = (
    "method", "revision", "handler", "round", "answered_by", "outcome", "status", "code", "reason", "caller",
    "request_bytes", "response_bytes", "kms_calls", "cold_start",
)  # fmt: skip

log = logging.getLogger(NAME)


class Logger(Protocol):
    """A logger of Powertools or of `logging`."""

    def debug(self, msg: object, /, *, extra: Mapping[str, Any]) -> object:
        """Write a line at DEBUG; `extra` holds its fields."""

    def info(self, msg: object, /, *, extra: Mapping[str, Any]) -> object:
        """Write a line at INFO; `extra` holds its fields."""

    def error(self, msg: object, /, *, extra: Mapping[str, Any]) -> object:
        """Write a line at ERROR; `extra` holds its fields."""


def write_line(notes: Notes, logger: Logger | None = None) -> None:
    """Write the line of one request at its level (`level_of`)."""
    level = level_of(notes)
    with suppress(Exception):  # a line that fails must not cost the client its response
        if logger is not None:
            write = {logging.DEBUG: logger.debug, logging.INFO: logger.info, logging.ERROR: logger.error}[level]
            # Powertools does not write the name of the logger. Lambda's own formatter does.
            write(message(notes), extra={"logger": NAME, **all_fields(notes)})
        elif log.isEnabledFor(level):  # otherwise nothing would write the fields
            log.log(level, message(notes), extra=all_fields(notes))


def replace_correlation_id(logger: object, identifier: object) -> object:
    """Set the correlation id of a Powertools Logger, and return its earlier one; None if the logger has no such id."""
    if hasattr(logger, "get_correlation_id") and hasattr(logger, "set_correlation_id"):
        with suppress(Exception):  # a logger that raises must not prevent the response
            earlier = logger.get_correlation_id()
            logger.set_correlation_id(identifier)
            return earlier
    return None


def all_fields(notes: Notes) -> dict[str, Field]:
    """Return the fields of a log line, without those that are unknown (None)."""
    fields = {**own_fields(notes), **opentelemetry_fields(notes)}
    return {name: value for name, value in fields.items() if value is not None}


def own_fields(notes: Notes) -> dict[str, Field]:
    """Return the fields that have this package's names."""
    unchanged: dict[str, Field] = {name: getattr(notes, name) for name in UNCHANGED_FIELDS}
    return unchanged | {
        # The next three are left out if they are False or 0.
        "tool_error": notes.tool_error or None,
        "misconfigured": notes.misconfigured or None,
        "kms_failures": notes.kms_failures or None,
        "flow": None if notes.flow is None else digest(notes.flow),
        "jti": None if notes.jti is None else base64url(notes.jti),
        "duration_ms": _milliseconds(notes.seconds),
        "forward_ms": None if notes.forward_seconds is None else _milliseconds(notes.forward_seconds),
        "kms_ms": _milliseconds(notes.kms_seconds),
        "correlation_id": checked_id(notes.correlation_id),
        "trace_id": notes.trace_id or _xray_trace_id(),
    }


def opentelemetry_fields(notes: Notes) -> dict[str, Field]:
    """Return the fields of OpenTelemetry's "Semantic conventions for Model Context Protocol" (Development).

    `jsonrpc.request.id` and `mcp.resource.uri` are left out because the client writes them; it could write a secret.
    """
    method = notes.method if notes.method in METHODS else None
    handler = None if notes.handler == UNKNOWN else notes.handler
    revision = notes.revision
    # A refused request may be of any revision.
    if revision is None and method and notes.outcome != "refused":
        revision = PROTOCOL_VERSION
    error_type = _code(notes) if notes.outcome in ERRORS else None
    return {
        "mcp.method.name": method,
        "mcp.protocol.version": revision,
        "gen_ai.tool.name": handler if method == "tools/call" else None,
        "gen_ai.prompt.name": handler if method == "prompts/get" else None,
        "error.type": "tool_error" if notes.tool_error else error_type,
    }


# Reasons of a complete response that no operator has to act on. Clients of 2025 cause them: an answer came twice or too
# late, or the client has cancelled or could not ask.
NORMAL_REASONS = {
    "answered_before", "answered_late", "cancelled", "client_error", "not_answered", "not_cancelled", "nothing_waits",
}  # fmt: skip


def level_of(notes: Notes) -> int:
    """Return the level of a request's line: ERROR if the operator or the author has to act, else INFO.

    It is DEBUG for a response that the front door only passed on, because the function behind it writes the same facts.
    A cold start of the front door is no fact of that function.
    """
    has_failed = notes.outcome in {"crashed", "failed"}  # a crashed tool has the HTTP status 200
    # With any other reason, a conversation or a table's item exceeded a limit. The text of the reason has the number of
    # the limit, so no set can list these reasons.
    exceeded_limit = notes.outcome == "complete" and notes.reason and notes.reason not in NORMAL_REASONS
    if has_failed or exceeded_limit:
        return logging.ERROR
    return logging.DEBUG if notes.outcome == "forwarded" and not notes.cold_start else logging.INFO


def message(notes: Notes) -> str:
    """Return the text of a request's line, for people; metric filters and queries read the fields.

    The text says what the client received: "failed" if an author's function crashed, "refused" for every other error,
    also for an error of the server. Only the field `outcome` tells those apart.
    """
    if notes.outcome == "crashed":
        return f"failed: {notes.reason} at {notes.place}"
    if notes.outcome in {"refused", "failed"}:
        return f"refused: {_code(notes)} {notes.reason}"
    if notes.reason:
        return f"answered: {notes.outcome}: {notes.reason}"
    return f"answered: {notes.outcome}"


def _code(notes: Notes) -> str:
    """Return the JSON-RPC code of an error, or the HTTP status of one that HTTP alone decided."""
    return str(notes.status if notes.code is None else notes.code)


def _xray_trace_id() -> str | None:
    """Return the trace id of X-Ray, if Lambda traces this request: "Root=1-5759e988-bd862e3fe1be46a994272793;…"."""
    found = re.search(r"Root=(1-[0-9a-f]{8}-[0-9a-f]{24})\b", os.environ.get("_X_AMZN_TRACE_ID", ""))
    return found[1] if found else None


def checked_id(value: object) -> str | None:
    """Return an id of API Gateway or Lambda; None for any other value, because a client could put a secret there."""
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_=+/.-]{1,64}", value):
        return value
    return None


DIGEST_CHARS = 16  # 12 bytes: enough to tell conversations apart in a log


def digest(name: str) -> str:
    """Return a digest of an id that the log must not hold. Lines with the same id have the same digest."""
    import hashlib

    hashed = hashlib.sha256(name.encode("utf-8", "surrogatepass"))
    return base64url(hashed.digest())[:DIGEST_CHARS]


def _milliseconds(seconds: float) -> float:
    """Return rounded milliseconds for a log line."""
    return round(seconds * 1000, 2)
