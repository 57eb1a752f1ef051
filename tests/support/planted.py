"""Secrets that tests put into requests and exceptions, and the search for them in everything that the suite writes.

    SECRET         no log may have it; a response may repeat it to the client that sent it
    UNSPEAKABLE    no log and no response may have it

A test that leaks a secret fails, even if its assertions hold.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions.observability import lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcp_functions.observability import Notes

SECRET_MARKS = ("planted-", "hunter2")  # texts that every secret has
SECRET = "planted-secret"  # noqa: S105 - in arguments and answers
UNSPEAKABLE = "planted-unspeakable"  # in exceptions, principals, tokens and the contents of states
CONTEXT_CHARS = 60  # characters that a report shows before a secret, and from it on

_leaks: list[str] = []


@contextmanager
def search_logs() -> Iterator[None]:
    """Search every log record, and the notes on every request, also where the log level suppresses their line."""
    handle = logging.Logger.handle
    write_line = lines.write_line

    def search_and_handle(self: logging.Logger, record: logging.LogRecord) -> None:
        search(f"a log record of {record.name}", record.getMessage())
        if record.name.startswith(lines.NAME):
            search(f"a field of a log record of {record.name}", str(vars(record)))
        handle(self, record)

    def write_and_search(notes: Notes, logger: lines.Logger | None = None) -> None:
        write_line(notes, logger)
        search("the line of a request", f"{lines.message(notes)} {lines.all_fields(notes)}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging.Logger, "handle", search_and_handle)
        patch.setattr(lines, "write_line", write_and_search)
        yield


def search(where: str, text: str) -> None:
    """Record every secret in a text as a leak."""
    for mark in SECRET_MARKS:
        _search_one(where, text, mark)


def search_response(response: Mapping[str, Any]) -> None:
    """Record an `UNSPEAKABLE` in a response as a leak."""
    _search_one("a response", f"{response['headers']} {response['body']}", UNSPEAKABLE)


def _search_one(where: str, text: str, secret: str) -> None:
    at = text.find(secret)
    if at >= 0:
        _leaks.append(f"{where}: …{text[max(0, at - CONTEXT_CHARS) : at + CONTEXT_CHARS]}…")


def take_leaks() -> list[str]:
    """Return the leaks so far, and clear them."""
    leaks = list(_leaks)
    _leaks.clear()
    return leaks


def fail_leaking_test(report: pytest.TestReport) -> pytest.TestReport:
    """Search the output of a test too, and let the test fail if there was a leak."""
    for title, text in report.sections:
        search(title, text)
    leaks = take_leaks()
    if leaks and report.passed:
        report.outcome = "failed"
        report.longrepr = "a planted secret got out:\n  " + "\n  ".join(leaks)
    return report
