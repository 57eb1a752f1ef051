"""The sample `audit_year`: a tool that runs as a task. A worker audits the months; the client polls and answers.

`recording` compares a conversation with the API Gateway events in events/audit_year.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from functions.audit_year import app
from functions.audit_year.app import handler
from mcp_functions.http.gateway import WorkFailed
from mcp_functions_harness.testing import EVERYTHING, WITH_TASKS, Conversation

if TYPE_CHECKING:
    from tests.support.recordings import Recording


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "SECONDS", 0)


def start_audit() -> Conversation:
    return Conversation(handler, capabilities=WITH_TASKS).call(year=2026)


def test_the_first_response_is_a_working_task(recording: Recording) -> None:
    talk = start_audit()
    assert talk.result["resultType"] == "task"
    assert talk.result["status"] == "working"
    recording.assert_matches(talk, steps=["call"])


def test_the_task_continues_after_the_user_answers_its_question() -> None:
    talk = start_audit().poll()
    assert talk.asked == ["write_off"]
    talk.accept(write_off=True)
    assert talk.done
    assert talk.text == "2026 is audited: 15 cents remain."


def test_each_month_is_audited_once(monkeypatch: pytest.MonkeyPatch) -> None:
    audited = list[int]()

    def difference(_year: int, month: int) -> int:
        audited.append(month)
        return month

    monkeypatch.setattr(app, "difference", difference)
    start_audit().poll().accept(write_off=False)
    assert audited == list(range(1, 13))


def test_the_client_can_cancel_the_task() -> None:
    talk = start_audit().poll().cancel_task()
    assert talk.result["status"] == "cancelled"
    assert talk.done


def test_a_client_without_the_tasks_capability_gets_an_error() -> None:
    talk = Conversation(handler, capabilities=EVERYTHING).call(year=2026)
    assert talk.error["code"] == -32021  # MissingRequiredClientCapability


def test_a_new_worker_continues_after_the_last_month_of_a_killed_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    audited = list[int]()

    class Killed(KeyboardInterrupt):
        """The end of the worker's process."""

    def difference(_year: int, month: int) -> int:
        audited.append(month)
        if audited == [1, 2, 3]:
            raise Killed
        return month % 2

    monkeypatch.setattr(app, "difference", difference)
    talk = start_audit()
    with pytest.raises((Killed, WorkFailed)):
        talk.poll()
    talk.later(seconds=31).poll().poll()  # the lease of a worker lasts 30 seconds
    assert audited == [1, 2, 3, 3, 4, 5, 6]
    assert talk.asked == ["write_off"]
