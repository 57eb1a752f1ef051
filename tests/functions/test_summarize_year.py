"""A computation that takes longer than a round, by a simulated clock."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from functions.summarize_year import app
from functions.summarize_year.app import handler, summarize_year
from mcp_functions import serve
from mcp_functions.testing import Conversation
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.local.api_gateway.events import Moment

    Recorded = Callable[[Conversation, list[str]], None]

SUMMARY = "468 tickets in 2026, most of them in September: 79."


class Slow:
    """A database and a clock: a query takes its time, and is remembered."""

    def __init__(self, seconds: float, began: float) -> None:
        self.seconds, self.now, self.queried = seconds, began, list[int]()

    def count_tickets(self, year: int, month: int) -> int:
        self.now += self.seconds
        self.queried.append(month)
        return QUICK(year, month)


QUICK = app.count_tickets


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch, moment: Callable[[], Moment]) -> Slow:
    slow = Slow(seconds=6, began=moment().now)
    monkeypatch.setattr(app, "count_tickets", slow.count_tickets)
    return slow


def begin(slow: Slow, moment: Callable[[], Moment]) -> Conversation:
    function = serve(summarize_year, now=lambda: slow.now)
    return Conversation(function, moment=lambda: replace(moment(), now=slow.now)).call(year=2026)


def test_seventy_two_seconds_of_work_are_done_in_three_rounds(
    recorded: Recorded, moment: Callable[[], Moment], slow: Slow
) -> None:
    talk = begin(slow, moment)
    for _ in range(2):
        assert (talk.result["resultType"], talk.asked) == ("input_required", [])
        talk.answer()
    assert talk.text == SUMMARY
    assert slow.queried == list(range(1, 13))
    recorded(talk, ["call", "go-on", "go-on"])


def test_a_lost_response_repeats_its_own_round_and_no_other(moment: Callable[[], Moment], slow: Slow) -> None:
    talk = begin(slow, moment)
    first = list(slow.queried)
    talk.answer()
    second = slow.queried[len(first) :]
    assert second
    talk.retry().answer()
    assert slow.queried == [*first, *second, *second, *range(second[-1] + 1, 13)]
    assert talk.text == SUMMARY


def test_a_year_that_takes_too_many_rounds_ends_with_an_error_that_names_the_setting(
    moment: Callable[[], Moment], slow: Slow
) -> None:
    slow.seconds = 20
    talk = begin(slow, moment).answer().answer()
    assert talk.result["isError"]
    assert "max_sheds" in talk.text


def test_each_month_is_counted_once_and_told_without_the_year(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")
    monkeypatch.setattr(app.metrics.provider, "service", "sample")
    app.metrics.clear_metrics()  # of other tests
    out = io.StringIO()
    monkeypatch.setattr(app.logger.registered_handler, "stream", out)
    capsys.readouterr()
    params = {"name": "summarize_year", "arguments": {"year": 2026}}
    handler(wire.event(wire.message("tools/call", params), context={"requestId": "JKJa="}), wire.Context())
    mine, ours = map(json.loads, out.getvalue().splitlines())
    assert (mine["message"], mine["months"], mine["correlation_id"]) == ("summarized", 12, "JKJa=")
    assert (ours["handler"], ours["outcome"]) == ("summarize_year", "complete")
    assert "2026" not in mine["message"] + str(mine.keys())
    assert sum(json.loads(capsys.readouterr().out)["MonthsCounted"]) == 12


def test_a_quick_year_is_done_in_one_round() -> None:
    assert Conversation(handler).call(year=2026).text == SUMMARY
