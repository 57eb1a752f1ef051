"""Secrets that tests plant, and the search for them in every log record and output of the whole suite.

A test that leaks one fails, even if its assertions hold. A response may repeat a `SECRET` to the client that sent it.
No response may contain an `UNSPEAKABLE`.
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

MARKS = ("planted-", "hunter2")
SECRET = "planted-secret"  # noqa: S105 - in arguments and answers
UNSPEAKABLE = "planted-unspeakable"  # in exceptions, principals, tokens and what a state remembers
AROUND = 60  # characters that a report shows around a leak

_leaks: list[str] = []


@contextmanager
def searching() -> Iterator[None]:
    """Search every log record, and the notes on every request, even those that no log level writes."""
    handle, write_line = logging.Logger.handle, lines.write_line

    def handled(self: logging.Logger, record: logging.LogRecord) -> None:
        search(f"a log record of {record.name}", record.getMessage())
        if record.name.startswith(lines.NAME):
            search(f"a field of a log record of {record.name}", str(vars(record)))
        handle(self, record)

    def written(notes: Notes, logger: lines.Logger | None = None) -> None:
        write_line(notes, logger)
        search("the line of a request", f"{lines.message(notes)} {lines.all_fields(notes)}")  # as it would be written

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging.Logger, "handle", handled)
        patch.setattr(lines, "write_line", written)
        yield


def search(where: str, text: str) -> None:
    """Record every secret in a text as a leak."""
    for mark in MARKS:
        if mark in text:
            at = text.index(mark)
            _leaks.append(f"{where}: …{text[max(0, at - AROUND) : at + AROUND]}…")


def search_response(response: Mapping[str, Any]) -> None:
    """Record an `UNSPEAKABLE` in a response as a leak."""
    if UNSPEAKABLE in (text := f"{response['headers']} {response['body']}"):
        at = text.index(UNSPEAKABLE)
        _leaks.append(f"a response: …{text[max(0, at - AROUND) : at + AROUND]}…")


def found() -> list[str]:
    """Return the leaks so far, and clear them."""
    leaks = list(_leaks)
    _leaks.clear()
    return leaks


def judge(report: pytest.TestReport) -> pytest.TestReport:
    """Let a test fail that let a secret out, into a log or what it wrote."""
    for title, text in report.sections:
        search(title, text)
    if (leaks := found()) and report.passed:
        report.outcome, report.longrepr = "failed", "a planted secret got out:\n  " + "\n  ".join(leaks)
    return report
