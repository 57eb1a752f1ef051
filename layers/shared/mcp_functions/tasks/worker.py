"""A worker continues one task: a tool call that outlives its request, and that a table keeps.

A worker is the second Lambda function of a function with tasks. Each invocation runs one round: the tool's function
starts from its first line, and gets the answers and the results of steps that the task has so far.

    1. take the task    no other invocation may take it for some seconds (the lease, which a thread renews)
    2. run the round    each step is saved when it ends; no step begins if the task is cancelled or the lease is lost
    3. audit            the author's `audit` gets a record of the round
    4. save             the function returned or raised: its outcome, {"result": …} or {"error": …}, ends the task
                        it asked its user: the client gets the questions; after the answers, another one continues
                        the time is up: another invocation continues after the last step

`tasks.transitions` has the state of the task after each of these.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from mcp_functions import observability
from mcp_functions.handlers.runner import crash_message, crash_result
from mcp_functions.http import identity
from mcp_functions.http.events import lambda_deadline
from mcp_functions.protocol.errors import CallerStopped, Crash, DeveloperError, UnknownTask
from mcp_functions.protocol.messages import Principal, value_at
from mcp_functions.rounds.audit import audit_record
from mcp_functions.rounds.round import History, Round, RoundOptions, RoundRequest
from mcp_functions.store import ItemTooLarge
from mcp_functions.tasks import transitions
from mcp_functions.tasks.lease import Lease, LeaseLost
from mcp_functions.tasks.task import FAILED, INPUT_REQUIRED, WORKING, Task, TaskOutcome
from mcp_functions.tasks.tool_round import ends_task, error_outcome, run_tool, too_large_outcome
from mcp_functions.tasks.transitions import NotAvailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.tools import Tool
    from mcp_functions.protocol.event_types import LambdaContext, WorkerOrder
    from mcp_functions.protocol.wire_types import JSONObject
    from mcp_functions.rounds.audit import AuditRecord
    from mcp_functions.settings import Settings
    from mcp_functions.tasks.task_store import TaskStore


class Worker:
    """Continues the tasks of one function, one at a time."""

    def __init__(
        self,
        tools: Mapping[str, Tool[..., Any]],
        store: TaskStore,
        settings: Settings,
        *,
        now: Callable[[], float] = time.time,
        audit: Callable[[AuditRecord], object] | None = None,
    ) -> None:
        """Use the parts of a deployment; `audit`, the author's function, receives a record of each round."""
        self._tools = tools
        self._store = store
        self._now = now
        self._settings = settings
        self._lease_ms = int(settings.task_lease * 1000)
        self._audit = audit

    def work(self, order: WorkerOrder, context: LambdaContext) -> None:
        """Take a task and run its next round; do nothing if the task needs no worker now.

        Raises:
            McpError: the table does not answer. Saved steps remain; the next poll after the lease invokes a worker.
        """
        change_task = partial(self._store.change, str(order["id"]), order["owner"])
        deadline = lambda_deadline(context, self._now())
        try:
            task = change_task(self._take)
        except (NotAvailable, UnknownTask):
            return  # it waits for its client, has ended, or has another worker
        except CallerStopped as error:
            # The task waits. After the stop, a poll of its client invokes another worker.
            observability.current().add_error(error)
            return
        _note_start(task)
        if task.ended:  # `transitions.take` has ended it
            return
        lease = Lease(change_task, task, lease_ms=self._lease_ms, now_ms=self._now_ms)
        self._run(task, lease, deadline)

    def _take(self, task: Task) -> Task:
        if task.tool not in self._tools:
            raise NotAvailable  # this release of the function no longer has the tool
        if task.principal is not None:  # without one, the address of the call would name the caller
            identity.refuse_stopped_caller(Principal(*task.principal), "", self._settings, self._now())
        return transitions.take(task, self._now_ms(), self._lease_ms)

    def _run(self, task: Task, lease: Lease, deadline: float) -> None:
        """Run the next round of a task, report it to the author's audit, and save how it ended."""
        tool = self._tools[task.tool]
        round_ = self._make_round(task, lease, deadline)
        audit = self._audit if tool.needs_state else None
        audited_questions = False  # whether the audit has received questions of this round
        try:
            with lease.renewed_by_thread(round_):
                outcome = run_tool(task, tool, round_)
                if audit:
                    failure, audited_questions = _report(audit, tool, round_, lease, asks=outcome is None)
                    outcome = failure or outcome
            saved = self._save(tool, round_, lease, outcome)
        except LeaseLost:
            return  # another worker runs this round, and reports it
        _note_end(saved)
        # The client has cancelled the task meanwhile, or the table cannot keep the questions.
        if audit and audited_questions and saved.status != INPUT_REQUIRED:
            audit(audit_record(round_, tool.name, sent=False))

    def _make_round(self, task: Task, lease: Lease, deadline: float) -> Round:
        principal = None if task.principal is None else Principal(*task.principal)
        request = RoundRequest(
            responses=cast("dict[str, JSONObject]", task.given),
            capabilities=task.declared,
            principal=principal,
            scopes=frozenset(task.scopes),
            deadline=deadline,
            now=self._now,
        )
        history = History(task.flow, task.rounds + 1, task.record, task.asked)
        options = RoundOptions(camel_case=self._tools[task.tool].camel_case)
        return Round(request, history, options, lease)

    def _save(self, tool: Tool[..., Any], round_: Round, lease: Lease, outcome: TaskOutcome | None) -> Task:
        """Save how a round ended, and return the task; LeaseLost if the worker has lost it."""
        try:
            return lease.change(lambda task: self._next_state(task, round_, outcome))
        except ItemTooLarge as error:
            unsaved = too_large_outcome(error, outcome)
        except DeveloperError as error:  # the result is not JSON
            unsaved = {"result": crash_result(tool, Crash(crash_message(tool), error))}
        return lease.change(lambda task: transitions.finish(task, self._now_ms(), unsaved))

    def _next_state(self, task: Task, round_: Round, outcome: TaskOutcome | None) -> Task:
        if outcome is not None:
            return transitions.finish(task, self._now_ms(), outcome)
        if round_.requests:
            return transitions.ask(task, round_, self._now_ms())
        return transitions.continue_later(task, round_, self._now_ms())

    def _now_ms(self) -> int:
        return int(self._now() * 1000)


def _report(
    audit: Callable[[AuditRecord], object], tool: Tool[..., Any], round_: Round, lease: Lease, *, asks: bool
) -> tuple[TaskOutcome | None, bool]:
    """Report a round to the audit before it is saved.

    The audit gets the questions before the table does. If a write has no response, the worker cannot know whether the
    client already sees them.

    Return the outcome with which the task ends, if the report failed, and whether the audit has received questions.

    Raises:
        LeaseLost: another worker runs this round, and reports it.
    """
    try:
        task = lease.renew(round_)
        has_questions = asks and bool(round_.requests) and not task.cancel
        audit(audit_record(round_, tool.name, sent=has_questions))
    except LeaseLost:
        raise
    except BaseException as error:  # the author's function may raise anything
        if not ends_task(error):
            raise
        return error_outcome(tool, error), False
    return None, has_questions


def _note_start(task: Task) -> None:
    """Note for the log which round of which task this worker has taken, or that it has ended the task."""
    notes = observability.current()
    notes.handler = task.tool
    notes.round = task.rounds + 1
    notes.flow = task.flow
    if task.status == FAILED:
        notes.conclude("failed", "worker_gave_up")


def _note_end(task: Task) -> None:
    """Note for the log how a round ended. The error of a failed task was noted when it was made."""
    notes = observability.current()
    if task.status == FAILED:
        return
    outcomes = {INPUT_REQUIRED: "input_required", WORKING: "shed"}  # "shed": the time was up
    notes.conclude(outcomes.get(task.status, "complete"))
    notes.tool_error = value_at(task.outcome, "result", "isError") is True
