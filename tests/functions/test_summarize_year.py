"""The sample `summarize_year`: a computation that takes longer than one round.

`database` answers a query for a month in 6 seconds of a simulated clock. `recording` compares a conversation with the
API Gateway events in events/summarize_year.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest

from functions.summarize_year import app
from functions.summarize_year.app import count_tickets, handler, summarize_year
from mcp_functions import serve
from mcp_functions_harness.testing import Conversation
from tests.support import wire

if TYPE_CHECKING:
    from tests.support.recordings import Recording

SUMMARY = "468 tickets in 2026, most of them in September: 79."


class Database:
    """A slow database with a clock of its own."""

    def __init__(self) -> None:
        self.now = 1_785_000_000.0  # Unix time
        self.seconds_per_query = 6
        self.queried_months = list[int]()

    def count_tickets(self, year: int, month: int) -> int:
        self.now += self.seconds_per_query
        self.queried_months.append(month)
        return count_tickets(year, month)


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Database:
    database = Database()
    monkeypatch.setattr(app, "count_tickets", database.count_tickets)
    return database


def start_summary(database: Database) -> Conversation:
    return Conversation(serve(summarize_year, now=lambda: database.now)).call(year=2026)


def test_a_computation_of_72_seconds_takes_three_rounds(recording: Recording, database: Database) -> None:
    talk = start_summary(database).answer().answer()
    assert talk.text == SUMMARY
    assert database.queried_months == list(range(1, 13))
    recording.assert_matches(talk, steps=["call", "go-on", "go-on"])


def test_a_round_that_runs_out_of_time_asks_no_question(database: Database) -> None:
    talk = start_summary(database)
    assert talk.result["resultType"] == "input_required"
    assert talk.asked == []


def test_a_repeated_request_repeats_only_the_queries_of_its_round(database: Database) -> None:
    talk = start_summary(database)
    database.queried_months.clear()
    talk.answer()
    months = list(database.queried_months)
    database.queried_months.clear()
    talk.retry()
    assert database.queried_months == months


def test_a_computation_with_too_many_rounds_ends_with_an_error_that_names_the_setting(database: Database) -> None:
    database.seconds_per_query = 20
    talk = start_summary(database).answer().answer()
    assert talk.result["isError"]
    assert "max_sheds" in talk.text


def test_a_short_computation_takes_one_round() -> None:
    assert Conversation(handler).call(year=2026).text == SUMMARY


def test_the_author_and_the_package_write_to_one_logger(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(app.logger.registered_handler, "stream", stream)
    Conversation(handler).call(year=2026)
    line_of_author, line_of_package = map(json.loads, stream.getvalue().splitlines())
    assert line_of_author["message"] == "summarized"
    assert line_of_author["months"] == 12
    assert line_of_package["outcome"] == "complete"
    assert line_of_package["correlation_id"] == line_of_author["correlation_id"]


def test_the_metric_counts_each_month_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")
    monkeypatch.setattr(app.metrics.provider, "service", "sample")
    app.metrics.clear_metrics()  # of other tests
    capsys.readouterr()
    call = wire.message("tools/call", {"name": "summarize_year", "arguments": {"year": 2026}})
    handler(wire.event(call), wire.Context())  # a Conversation would call the function without the decorator
    metrics = json.loads(capsys.readouterr().out)
    assert sum(metrics["MonthsCounted"]) == 12
