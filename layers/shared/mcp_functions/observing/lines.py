"""The line: a record of the logger `mcp_functions`, whose fields stand beside its message, whoever formats it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mcp_functions.observing.notes import CRASHED, failed, fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.observing.notes import Notes

NAME = "mcp_functions"
INFO = logging.INFO
LEVELS = {  # as Lambda and Powertools write them
    "TRACE": logging.DEBUG, "DEBUG": logging.DEBUG, "INFO": INFO, "WARN": logging.WARNING, "WARNING": logging.WARNING,
    "ERROR": logging.ERROR, "FATAL": logging.CRITICAL, "CRITICAL": logging.CRITICAL,
}  # fmt: skip

# Why the answer to a client of 2025 is what it is, where nothing here is wrong: it came twice or too late, the client
# has cancelled, or could not ask.
USUAL = {
    "answered_before", "answered_late", "cancelled", "client_error", "not_answered", "not_cancelled", "nothing_waits",
}  # fmt: skip

log = logging.getLogger(NAME)


def level(environ: Mapping[str, str], name: str) -> int | None:
    """Read a log level; None if the variable names none."""
    return LEVELS.get(environ.get(name, "").upper())


def tell(notes: Notes) -> None:
    """Write the line of one request: at INFO, or at ERROR if it is for the operator or the author."""
    told = level_of(notes)
    if log.isEnabledFor(told):
        log.log(told, message(notes), extra=fields(notes))


def level_of(notes: Notes) -> int:
    """Say at which level the line of a request is written."""
    # What the function remembers may have found no room.
    limited = notes.outcome == "complete" and notes.reason and notes.reason not in USUAL
    return logging.ERROR if failed(notes) or limited else INFO


def message(notes: Notes) -> str:
    """Write what a person reads of a request."""
    if notes.outcome == CRASHED:
        return f"failed: {notes.reason} at {notes.place}"
    if notes.outcome in {"refused", "failed"}:
        return f"refused: {notes.status if notes.code is None else notes.code} {notes.reason}"
    return f"answered: {notes.outcome}" + (f": {notes.reason}" if notes.reason else "")
