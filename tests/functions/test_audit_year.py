"""An audit as a task: its progress, its question, its end, and a worker that dies on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from functions.audit_year import app
from functions.audit_year.app import handler
from mcp_functions.http.gateway import WorkFailed
from mcp_functions.testing import EVERYTHING, WITH_TASKS, Conversation

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.local.api_gateway.events import Moment

    Recorded = Callable[[Conversation, list[str]], None]

AUDITED = "2026 is audited: 15 cents remain."


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "SECONDS", 0)


def begin(moment: Callable[[], Moment] | None = None) -> Conversation:
    return Conversation(handler, capabilities=WITH_TASKS, moment=moment).call(year=2026)


def test_an_audit_asks_in_the_middle_and_goes_on(recorded: Recorded, moment: Callable[[], Moment]) -> None:
    talk = begin(moment)
    assert (talk.result["resultType"], talk.result["status"]) == ("task", "working")
    recorded(talk, ["call"])
    talk.poll()
    assert talk.asked == ["write_off"]
    talk.accept(write_off=True)
    assert talk.done
    assert talk.text == AUDITED


def test_a_month_is_audited_once(monkeypatch: pytest.MonkeyPatch) -> None:
    audited = list[int]()

    def difference(year: int, month: int) -> int:
        audited.append(month)
        return (31 * year + 17 * month) % 7

    monkeypatch.setattr(app, "difference", difference)
    begin().poll().accept(write_off=False)
    assert audited == list(range(1, 13))


def test_an_audit_that_is_not_wanted_any_more_ends() -> None:
    talk = begin().poll().cancel_task()
    assert talk.result["status"] == "cancelled"
    assert talk.done


def test_a_client_that_knows_no_tasks_is_told_so() -> None:
    talk = Conversation(handler, capabilities=EVERYTHING).call(year=2026)
    assert talk.error["code"] == -32021


def test_a_worker_that_dies_leaves_the_months_that_it_audited(monkeypatch: pytest.MonkeyPatch) -> None:
    audited = list[int]()

    class Killed(KeyboardInterrupt):
        """The process is gone."""

    def difference(_year: int, month: int) -> int:
        audited.append(month)
        if audited == [1, 2, 3]:
            raise Killed
        return month % 2

    monkeypatch.setattr(app, "difference", difference)
    talk = begin()
    with pytest.raises((Killed, WorkFailed)):
        talk.poll()
    talk.later(seconds=31).poll().poll()
    assert audited == [1, 2, 3, 3, 4, 5, 6]
    assert talk.asked == ["write_off"]
