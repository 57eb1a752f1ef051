"""A worker continues one task: it takes the lease, runs one round of the handler, and saves the outcome.

A worker is one asynchronous invocation of the function. Its lease is the time in which no other worker may take the
task. A round replays the handler from its first line, with the answers and steps that the task's record holds.

Each step is saved when it ends. Before each step the worker checks its lease, and whether the client has cancelled the
task. So a worker that lost its lease runs no further step.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.handlers.runner import crash_message, crash_result, run_round
from mcp_functions.http import outcomes
from mcp_functions.http.events import lambda_deadline
from mcp_functions.protocol.errors import (
    Crash,
    DeveloperError,
    InternalError,
    McpError,
    TemporarilyUnavailable,
    UnknownTask,
    is_ctrl_c,
)
from mcp_functions.protocol.messages import Principal
from mcp_functions.rounds.input_requests import missing_capabilities
from mcp_functions.rounds.round import Round, RoundRequest
from mcp_functions.store import ItemTooLarge
from mcp_functions.tasks import transitions
from mcp_functions.tasks.lease import LeasedTask, round_record
from mcp_functions.tasks.task import COMPLETED, FAILED, INPUT_REQUIRED, WORKING, Task
from mcp_functions.tasks.transitions import LEASE_MS, LeaseLost, Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.tools import Tool
    from mcp_functions.http.events import LambdaContext
    from mcp_functions.rounds.audit import AuditRecord
    from mcp_functions.tasks.task_store import TaskStore

MAX_ATTEMPTS = 5  # the task fails after so many workers in a row that took it without progress
# How many rounds in a row may end for lack of time. A call has a low limit, because a client that repeats it too often
# gives up. Workers invoke each other instead, so a task needs no limit: it never reaches this number.
UNLIMITED_ROUNDS = 1 << 31
GAVE_UP = "The task was begun again and again, and never came further"  # the log has the cause
RESULT_TOO_LARGE = "The result is larger than a task can keep (about 290 KB)"
TOO_LARGE = "This call has more data than a task can keep. Answer more briefly."


class Worker:
    """Continues the tasks of one function, one at a time."""

    def __init__(  # noqa: PLR0913 - tools, storage, worker, lease and the sources that tests replace
        self,
        tools: Mapping[str, Tool[..., Any]],
        store: TaskStore,
        invoke_worker: Callable[[str, str | None], None],
        *,
        now: Callable[[], float] = time.time,
        lease_seconds: float = LEASE_MS / 1000,
        audit: Callable[[AuditRecord], object] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Use the parts of a deployment.

        Args:
            tools: the function's tools whose calls may become tasks, by name.
            store: the items of the tasks.
            invoke_worker: invokes a worker for a task's id and the digest of its owner.
            now: the clock, in unix seconds.
            lease_seconds: the time after which a worker that has not renewed its lease loses the task.
            audit: the author's function that receives a record of each round; None if there is none.
            sleep: the function that waits some seconds.
        """
        self._tools = tools
        self._store = store
        self._invoke_worker = invoke_worker
        self._now = now
        self._lease = int(lease_seconds * 1000)  # milliseconds
        self._audit = audit
        self._sleep = sleep

    def work(self, order: Mapping[str, Any], context: LambdaContext) -> None:
        """Run one round of a task, if the task is available; `order` has its `id` and the digest of its `owner`.

        Raises:
            McpError: the table does not answer. Saved steps remain; the lease ends, and the next poll invokes another
                worker.
        """
        task_id = str(order["id"])
        owner = order["owner"]
        deadline = lambda_deadline(context, self._now())
        try:
            _before, task = self._store.change(task_id, owner, self._take)
        except (LeaseLost, UnknownTask):
            # The task stays as it is. It has ended or expired, waits for the client, belongs to another worker, or this
            # release of the function does not have its tool.
            return
        notes = observability.current()
        notes.handler = task.tool
        notes.round = task.rounds + 1
        notes.flow = task.flow
        if task.status == FAILED:
            notes.conclude("failed", "worker_gave_up")
        if not task.held:
            return  # there is no round to run: `_take` has ended the task, as failed or as cancelled
        tool = self._tools[task.tool]
        round_ = self._round(task, tool, deadline)
        leased = LeasedTask(
            self._store, task_id, owner, task, round_, lease=self._lease, now=self._now, sleep=self._sleep
        )
        self._run_round(leased, tool, task)

    def _take(self, task: Task) -> Task:
        """Return the task with a lease for this worker; ended, if it was cancelled or too many workers took it."""
        if task.tool not in self._tools:
            raise UnknownTask  # this release no longer has the tool: `work` leaves the task alone, until it expires
        after = transitions.take(task, self._now_ms(), self._lease)
        if after.held and task.attempts >= MAX_ATTEMPTS:
            return transitions.give_up(task, self._now_ms(), InternalError(GAVE_UP).to_json())
        return after

    def _round(self, task: Task, tool: Tool[..., Any], deadline: float) -> Round:
        principal = None if task.principal is None else Principal(*task.principal)
        request = RoundRequest(
            responses=task.given,
            capabilities=task.declared,
            principal=principal,
            scopes=frozenset(task.scopes),
            flow=task.flow,
            number=task.rounds + 1,
            deadline=deadline,
            now=self._now,
            camel_case=tool.camel_case,
            max_sheds=UNLIMITED_ROUNDS,
        )
        return Round(request, task.record, task.asked)

    def _run_round(self, leased: LeasedTask, tool: Tool[..., Any], task: Task) -> None:
        round_ = leased.round
        lease_seconds = self._lease / 1000
        with leased.renewing(lease_seconds / 3):  # one renewal may fail before the lease ends
            outcome = _outcome(tool, partial(_play, tool, task, round_))
            if self._audit and tool.needs_state:
                asks = outcome is None and bool(round_.requests)
                # An audit that raises replaces the outcome by its error.
                outcome = _outcome(tool, partial(leased.audit, self._audit, asks=asks)) or outcome
        after = self._save(leased, tool, outcome)
        # The audit has seen questions that the client will not: the task was cancelled, or its item is too large.
        if leased.has_audited_questions and after and after.status != INPUT_REQUIRED and self._audit:
            self._audit(round_.audit(leased.tool, leased.owner, sent=False))

    def _save(self, leased: LeasedTask, tool: Tool[..., Any], outcome: Mapping[str, Any] | None) -> Task | None:
        """Save the outcome of a round and return the task; None if the worker has lost its lease."""
        try:
            after = self._write(leased, tool, outcome)
        except LeaseLost:
            return None
        _note_outcome(after)
        if after.status == WORKING and not after.held:
            self._invoke_worker(leased.task_id, leased.owner)
        return after

    def _write(self, leased: LeasedTask, tool: Tool[..., Any], outcome: Mapping[str, Any] | None) -> Task:
        """Write the outcome, or an error in its place if it does not fit into the item or is not JSON."""
        try:
            return leased.change(lambda task: self._next(task, leased, outcome))
        except ItemTooLarge as error:
            observability.current().reason = error.reason  # the author reads the reason in the log
            if outcome is None:
                instead = {"result": tool.error_result(TOO_LARGE)}
            else:
                instead = {"error": InternalError(RESULT_TOO_LARGE).to_json()}
        except DeveloperError as error:
            instead = {"result": crash_result(tool, Crash(crash_message(tool), error))}
        return leased.change(lambda task: self._next(task, leased, instead))

    def _next(self, task: Task, leased: LeasedTask, outcome: Mapping[str, Any] | None) -> Task:
        """Return the state after a round: ended with an outcome; otherwise it asks, is cancelled, or pauses."""
        now = self._now_ms()
        round_ = leased.round
        if outcome is not None:
            status = FAILED if "error" in outcome else COMPLETED
            return transitions.finish(task, leased.epoch, now, status, outcome)
        progress = Progress(leased.epoch, now, round_record(round_), round_.progress_message)
        if round_.requests:
            return transitions.ask(task, progress, round_.requests, round_.questions.open_fingerprints())
        if task.cancel:
            renewed = transitions.renew(task, leased.epoch, now, round_.progress_message)
            return transitions.cancel(renewed, now)
        return transitions.pause(task, progress)

    def _now_ms(self) -> int:
        return int(self._now() * 1000)


def _outcome(tool: Tool[..., Any], run: Callable[[], dict[str, Any] | None]) -> dict[str, Any] | None:
    """Return the outcome of a round, {"result": …} or {"error": …}; None if the task continues.

    An exception becomes the outcome that it would be for a call. Only TemporarilyUnavailable passes: the task's lease
    ends, and another worker runs the round again.
    """
    try:
        return run()
    except TemporarilyUnavailable:
        raise
    except ItemTooLarge as error:
        observability.current().reason = error.reason  # the author reads the reason in the log
        return {"result": tool.error_result(TOO_LARGE)}
    except Crash as crash:
        return {"result": crash_result(tool, crash)}
    except McpError as error:
        outcomes.note_error(observability.current(), error)
        return {"error": error.to_json()}
    except BaseException as error:  # the author's audit may raise anything
        if is_ctrl_c(error):
            raise
        observability.current().crash(error)
        return {"error": InternalError().to_json()}


def _play(tool: Tool[..., Any], task: Task, round_: Round) -> dict[str, Any] | None:
    """Run a round and return its result as an outcome; None if the task continues."""
    result = run_round(tool, {"name": task.tool, "arguments": task.arguments, "_meta": {}}, round_)
    if result is not None:
        return {"result": result}
    lacking = missing_capabilities(round_.requests.values(), task.declared)
    if lacking:
        from mcp_functions.apps import rungs  # noqa: PLC0415 - only for clients without elicitation

        return {"result": tool.error_result(rungs.not_asked(tool, round_.requests, lacking))}
    return None


def _note_outcome(task: Task) -> None:
    """Note for the log how a round ended. The error of a failed task was noted when it was made."""
    notes = observability.current()
    if task.status == FAILED:
        return
    logged = {INPUT_REQUIRED: "input_required", WORKING: "shed"}  # "shed": the round ended for lack of time
    notes.conclude(logged.get(task.status, "complete"))
    notes.tool_error = task.outcome.get("result", {}).get("isError") is True
