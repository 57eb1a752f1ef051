"""The transitions of a task: each function takes a state and returns the next one. They write nothing.

    the client polls           replace_worker, if the task has no worker
    the client answers         apply_answers
    the client cancels         request_cancel
    a worker                   take, renew, save_progress; then pause, ask or finish

They use these two:

    await_worker               the task waits for a worker, which `TaskStore.change` invokes
    cancel                     the task has ended because its client has cancelled it

A transition that has no effect returns its argument. A worker's transitions get its epoch, the number of its turn
(`tasks.lease`). They raise `LeaseLost` after another worker took the task, or after it ended.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.tasks.task import CANCELLED, COMPLETED, FAILED, INPUT_REQUIRED, WORKING, Task

if TYPE_CHECKING:
    from collections.abc import Mapping

LEASE_MS = 30_000  # a worker that does not renew its lease in this time loses the task
INVOCATION_MS = 15_000  # how long the first invoked worker may take to start
MAX_INVOCATION_MS = 900_000  # how long any later one may take


class LeaseLost(Exception):
    """The worker has lost its task: another worker has taken it, it has ended, or it was deleted."""


class Progress(NamedTuple):
    """The progress that a worker writes during a round."""

    epoch: int  # the number of the worker's turn, from `Task.epoch`
    record: Mapping[str, Any]  # the answers and steps so far, from `round_record`
    message: str  # the client sees it as `statusMessage`


def replace_worker(task: Task, now: int) -> Task:
    """Wait for another worker if the task is working, and no worker has it or is expected."""
    if task.status != WORKING or now < task.until:
        return task
    return await_worker(task, now)


def await_worker(task: Task, now: int) -> Task:
    """Wait for an invoked worker, or end a task that is cancelled.

    Each lost invocation makes the time before the next one four times as long.
    """
    if task.cancel:
        return cancel(task, now)
    wait: int = min(INVOCATION_MS * 4**task.summons, MAX_INVOCATION_MS)
    return replace(task, held=False, until=now + wait, summons=task.summons + 1)


def take(task: Task, now: int, lease: int) -> Task:
    """Give the task to a worker for `lease` milliseconds.

    Raises:
        LeaseLost: the task has ended, waits for the client, or belongs to another worker.
    """
    if task.status != WORKING:
        raise LeaseLost
    if task.held and now < task.until:
        raise LeaseLost
    if task.cancel:
        return cancel(task, now)
    return replace(task, epoch=task.epoch + 1, held=True, until=now + lease, summons=0, attempts=task.attempts + 1)


def renew(task: Task, epoch: int, until: int, message: str) -> Task:
    """Extend the lease of a worker."""
    _require_lease(task, epoch)
    return replace(task, until=until, message=message)


def save_progress(task: Task, progress: Progress, until: int) -> Task:
    """Save a round's record, which includes the answers that the round has read; extend the lease of its worker."""
    renewed = renew(task, progress.epoch, until, progress.message)
    return replace(renewed, record=progress.record, asked={}, given={}, attempts=0)


def pause(task: Task, progress: Progress, now: int) -> Task:
    """End a round without a question, for lack of time; another worker continues."""
    attempts = 0 if progress.record != task.record else task.attempts
    saved = save_progress(task, progress, now)
    return await_worker(replace(saved, rounds=task.rounds + 1, summons=0, attempts=attempts), now)


def ask(task: Task, progress: Progress, now: int, requests: Mapping[str, Any], fingerprints: Mapping[str, str]) -> Task:
    """End a round with questions (elicit key -> request), each under a wire key that this task has never had."""
    saved = save_progress(task, progress._replace(message=""), now)
    if task.cancel:
        return cancel(saved, now)
    open_requests = dict(zip(_fresh_keys(requests, task.used), requests.items(), strict=True))
    return replace(
        saved,
        status=INPUT_REQUIRED,
        updated=now,
        rounds=task.rounds + 1,
        held=False,
        requests=open_requests,
        asked=dict(fingerprints),
        used=(*task.used, *open_requests),
    )


def finish(task: Task, epoch: int, now: int, outcome: Mapping[str, Any]) -> Task:
    """End the task with a worker's outcome, {"result": …} or {"error": …}."""
    _require_lease(task, epoch)
    if "error" in outcome:
        return _end(replace(task, message=str(outcome["error"]["message"])), now, FAILED, outcome)
    return _end(replace(task, message=""), now, COMPLETED, outcome)


def cancel(task: Task, now: int) -> Task:
    """End the task as cancelled."""
    return _end(task, now, CANCELLED, {})


def request_cancel(task: Task, now: int) -> Task:
    """Cancel the task: at once, or at the next step or question of the worker that has it."""
    if task.ended:
        return task
    is_running = task.status == WORKING and task.held and now < task.until
    return replace(task, cancel=True) if is_running else cancel(task, now)


def apply_answers(task: Task, responses: Mapping[str, Any], now: int) -> Task:
    """Accept answers; after the last one the task works again.

    Tasks extension, "Task Update": "Unknown, answered and superseded keys are ignored".
    """
    answered = {key: responses[key] for key in task.requests if key in responses}
    if task.status != INPUT_REQUIRED or not answered:
        return task
    unanswered = {key: request for key, request in task.requests.items() if key not in answered}
    given = dict(task.given)
    for key, response in answered.items():
        elicit_key, _request = task.requests[key]
        given[elicit_key] = response
    after = replace(task, requests=unanswered, given=given)
    if unanswered:
        return after
    working = replace(after, status=WORKING, updated=now, summons=0, attempts=0)
    return await_worker(working, now)


def _require_lease(task: Task, epoch: int) -> None:
    if task.ended or task.epoch != epoch or not task.held:
        raise LeaseLost


def _end(task: Task, now: int, status: str, outcome: Mapping[str, Any]) -> Task:
    """End the task and delete its arguments, answers and record, because nothing reads them after the end."""
    deleted: dict[str, Any] = {"arguments": {}, "record": {}, "requests": {}, "asked": {}, "given": {}, "used": ()}
    return replace(task, status=status, updated=now, outcome=outcome, held=False, until=0, **deleted)


def _fresh_keys(requests: Mapping[str, Any], used: tuple[str, ...]) -> list[str]:
    """Return a wire key for each request: its own key, or the next of "key-2", "key-3", … that is free.

    Tasks extension: "Keyring MUST be unique over the lifetime of the task". A question that is asked again is new.
    """
    taken = {*used, *requests}
    fresh: list[str] = []
    for key in requests:
        wire_key = key
        number = 1
        if key in used:
            while wire_key in taken:
                number += 1
                wire_key = f"{key}-{number}"
        taken.add(wire_key)
        fresh.append(wire_key)
    return fresh
