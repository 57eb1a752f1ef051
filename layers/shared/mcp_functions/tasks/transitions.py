"""The state of a task after each event. These functions take a state and return the next one; they write nothing.

    the client polls           request_worker_if_lost
    the client answers         apply_answers
    the client cancels         request_cancel
    a worker begins            take
    a worker has run a step    save_progress
    a worker ends its round    finish, ask or continue_later

A worker is a Lambda invocation that runs the task's tool once (a round). A task that is working has one of two times:

    lease_until    a worker has the task until then, unless it renews its lease
    retry_at       a worker was requested; if none has taken the task by then, a poll requests another one

`TaskStore.change` writes the next state, and invokes a worker if the state requests one. If the client has cancelled
the task, the next worker that is requested, begins or ends a round finds that out, and the task ends instead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import InternalError
from mcp_functions.tasks.task import CANCELLED, COMPLETED, FAILED, INPUT_REQUIRED, WORKING, Task, TaskOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_functions.protocol.wire_types import InputRequest, InputRequests, InputResponses, TaskStatus
    from mcp_functions.rounds.round import Round


class NotAvailable(Exception):
    """A worker may not take the task: it has ended, waits for the client, or belongs to another worker."""


def request_worker_if_lost(task: Task, now: int) -> Task:
    """Request another worker if the task is working, and both of its times are over."""
    if task.status != WORKING or now < task.lease_until or now < task.retry_at:
        return task
    return request_worker(task, now)


INVOCATION_MS = 15_000  # how long the first requested worker may take to start
MAX_INVOCATION_MS = 900_000  # how long any later one may take
MAX_INVOCATIONS = 3  # after so many requests without a worker, in 5 minutes, the task fails


def request_worker(task: Task, now: int) -> Task:
    """Request a worker, or end a task that is cancelled or that no worker begins.

    Lambda may lose or throttle the invocation, and a worker may die before it takes the task. Each request in a row
    waits four times as long as the one before.
    """
    if task.cancel:
        return cancel(task, now)
    if task.invocations >= MAX_INVOCATIONS:
        return fail_without_worker(task, now)
    wait: int = min(INVOCATION_MS * 4**task.invocations, MAX_INVOCATION_MS)
    return replace(task, lease_until=0, retry_at=now + wait, invocations=task.invocations + 1)


def fail_without_worker(task: Task, now: int) -> Task:
    """End a task that no worker will continue; the log has the cause."""
    if task.ended:
        return task
    return finish(task, now, {"error": InternalError(message="No worker continues the task").to_json()})


MAX_ATTEMPTS = 5  # the task fails after so many workers in a row that took it without progress


def take(task: Task, now: int, lease_ms: int) -> Task:
    """Give the task to a worker for the time of a lease. A cancelled task ends instead, and one without progress fails.

    Raises:
        NotAvailable: no worker may take the task now.
    """
    if task.status != WORKING or now < task.lease_until:
        raise NotAvailable
    if task.cancel:
        return cancel(task, now)
    taken = replace(
        task,
        epoch=task.epoch + 1,
        lease_until=now + lease_ms,
        retry_at=0,
        invocations=0,
        attempts=task.attempts + 1,
    )
    if task.attempts < MAX_ATTEMPTS:
        return taken
    error = InternalError(message="The task was begun again and again, and never came further")
    return finish(taken, now, {"error": error.to_json()})


def save_progress(task: Task, round_: Round) -> Task:
    """Save the answers and steps that a round has so far, and its message for the client.

    The last questions and their answers are deleted, because the record now holds the answers that the round has read.
    """
    message = round_.progress_message or task.message
    return replace(task, record=round_record(round_), message=message, asked={}, given={}, attempts=0)


def round_record(round_: Round) -> dict[str, Any]:
    """Return what the next round must know: the answers and steps so far.

    The member `sheds`, the number of rounds that ended for lack of time, is left out. A task may have any number of
    such rounds, and another number alone is no progress.
    """
    return {name: value for name, value in round_.next_record().items() if name != "sheds"}


def finish(task: Task, now: int, outcome: TaskOutcome) -> Task:
    """End the task with a worker's outcome, {"result": …} or {"error": …}."""
    if "error" in outcome:
        return _end(replace(task, message=str(outcome["error"]["message"])), now, FAILED, outcome)
    return _end(replace(task, message=""), now, COMPLETED, outcome)


def ask(task: Task, round_: Round, now: int) -> Task:
    """End a round with its questions to the client, or end a cancelled task.

    Each question gets a wire key that this task has never had.
    """
    saved = replace(save_progress(task, round_), message="")
    if task.cancel:
        return cancel(saved, now)
    open_requests = _with_wire_keys(round_.requests, task.used)
    return replace(
        saved,
        status=INPUT_REQUIRED,
        updated=now,
        rounds=task.rounds + 1,
        lease_until=0,
        requests=open_requests,
        asked=round_.questions.open_fingerprints(),
        used=(*task.used, *open_requests),
    )


def continue_later(task: Task, round_: Round, now: int) -> Task:
    """End a round without a question, because the worker's time is up, and request another worker."""
    saved = replace(save_progress(task, round_), message=round_.progress_message)
    attempts = task.attempts if saved.record == task.record else 0
    return request_worker(replace(saved, rounds=task.rounds + 1, invocations=0, attempts=attempts), now)


def cancel(task: Task, now: int) -> Task:
    """End the task as cancelled."""
    return _end(task, now, CANCELLED, {})


def request_cancel(task: Task, now: int) -> Task:
    """Cancel the task: at once, or at the next step or question of the worker that has it."""
    if task.ended:
        return task
    if now < task.lease_until:
        return replace(task, cancel=True)
    return cancel(task, now)


def apply_answers(task: Task, responses: InputResponses, scopes: Sequence[str], now: int) -> Task:
    """Accept the client's responses (wire key -> response); after the last one the task works again.

    From an accepted response on, the task has the scopes of the token that brought it, because a person may have lost
    rights since the task began. Tasks extension, "Task Update": "Unknown, answered and superseded keys are ignored".
    """
    if task.status != INPUT_REQUIRED or task.requests.keys().isdisjoint(responses):
        return task
    given = dict(task.given)
    unanswered: dict[str, tuple[str, InputRequest]] = {}
    for wire_key, question in task.requests.items():
        if wire_key in responses:
            elicit_key, _request = question
            given[elicit_key] = responses[wire_key]
        else:
            unanswered[wire_key] = question
    after = replace(task, requests=unanswered, given=given, scopes=scopes)
    if unanswered:
        return after
    working = replace(after, status=WORKING, updated=now, invocations=0, attempts=0)
    return request_worker(working, now)


def _end(task: Task, now: int, status: TaskStatus, outcome: TaskOutcome) -> Task:
    """End the task and delete its arguments, answers and record, because nothing reads them after the end."""
    deleted: dict[str, Any] = {"arguments": {}, "record": {}, "requests": {}, "asked": {}, "given": {}, "used": ()}
    return replace(task, status=status, updated=now, outcome=outcome, lease_until=0, retry_at=0, **deleted)


def _with_wire_keys(requests: InputRequests, used: Sequence[str]) -> dict[str, tuple[str, InputRequest]]:
    """Return each request by its wire key: its own key, or the next of "key-2", "key-3", … that is free.

    Tasks extension: "Keyring MUST be unique over the lifetime of the task". A question that is asked again is new.
    """
    taken = {*used, *requests}
    open_requests: dict[str, tuple[str, InputRequest]] = {}
    for key, request in requests.items():
        wire_key = key
        if key in used:
            number = 2
            while f"{key}-{number}" in taken:
                number += 1
            wire_key = f"{key}-{number}"
        taken.add(wire_key)
        open_requests[wire_key] = (key, request)
    return open_requests
