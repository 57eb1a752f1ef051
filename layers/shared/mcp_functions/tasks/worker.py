"""A worker continues one task: it takes the lease, runs one round of the handler, and saves the outcome.

    1. take the task    for the time of a lease, no other worker may take it (`tasks.lease`)
    2. run the round    the handler starts from its first line, with the answers and steps that the task's record holds
    3. audit            the author's `audit` gets the record of the round
    4. save             the outcome, {"result": …} or {"error": …}, which ends the task; or
                        the questions to the client; or
                        the steps so far, if the time was up; then another worker continues

A worker is one asynchronous invocation of the function. Each step is saved when it ends. Before each step the worker
checks its lease, and whether the client has cancelled the task. If the lease is lost, no further step runs.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.handlers.runner import crash_message, crash_result, run_round
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
from mcp_functions.protocol.results import tool_error
from mcp_functions.rounds.audit import audit_record
from mcp_functions.rounds.input_requests import missing_capabilities
from mcp_functions.rounds.round import Round, RoundRequest
from mcp_functions.store import ItemTooLarge
from mcp_functions.tasks import transitions
from mcp_functions.tasks.lease import Lease, round_record
from mcp_functions.tasks.task import FAILED, INPUT_REQUIRED, WORKING, Task
from mcp_functions.tasks.transitions import LeaseLost, NotAvailable, Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.tools import Tool
    from mcp_functions.http.events import LambdaContext
    from mcp_functions.rounds.audit import AuditRecord
    from mcp_functions.tasks.task_store import TaskStore


class Worker:
    """Continues the tasks of one function, one at a time."""

    def __init__(  # noqa: PLR0913 - tools, storage, lease, audit and the sources that tests replace
        self,
        tools: Mapping[str, Tool[..., Any]],
        store: TaskStore,
        *,
        now: Callable[[], float] = time.time,
        lease_seconds: float = 30,
        audit: Callable[[AuditRecord], object] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Use the parts of a deployment.

        Args:
            tools: the function's tools whose calls may become tasks, by name.
            store: the items of the tasks.
            now: the clock, in unix seconds.
            lease_seconds: the time after which a worker that has not renewed its lease loses the task.
            audit: the author's function that receives a record of each round; None if there is none.
            sleep: the function that waits some seconds.
        """
        self._tools = tools
        self._store = store
        self._now = now
        self._lease_ms = int(lease_seconds * 1000)
        self._audit = audit
        self._sleep = sleep

    def work(self, order: Mapping[str, Any], context: LambdaContext) -> None:
        """Run one round of a task, if the task is available; `order` is {"id": task id, "owner": digest or None}.

        Raises:
            McpError: the table does not answer. Saved steps remain; the lease ends, and the next poll invokes another
                worker.
        """
        change_task = partial(self._store.change, str(order["id"]), order["owner"])
        deadline = lambda_deadline(context, self._now())
        try:
            task = change_task(self._take)
        except (NotAvailable, UnknownTask):
            return
        _note_start(task)
        if task.ended:  # `transitions.take` has ended it
            return
        lease = Lease(change_task, task.epoch, lease_ms=self._lease_ms, now_ms=self._now_ms, sleep=self._sleep)
        self._run(task, lease, deadline)

    def _take(self, task: Task) -> Task:
        if task.tool not in self._tools:
            raise NotAvailable  # this release of the function no longer has the tool
        return transitions.take(task, self._now_ms(), self._lease_ms)

    def _make_round(self, task: Task, lease: Lease, deadline: float) -> Round:
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
            camel_case=self._tools[task.tool].camel_case,
        )
        return Round(request, task.record, task.asked, lease)

    def _run(self, task: Task, lease: Lease, deadline: float) -> None:
        """Run the next round, report it to the author's audit, and save its outcome."""
        tool = self._tools[task.tool]
        round_ = self._make_round(task, lease, deadline)
        has_reported_questions = False
        with lease.renewed_by_thread(round_):
            outcome = _run_handler(task, tool, round_)
            try:
                has_reported_questions = self._report(tool, round_, lease, outcome)
            except BaseException as error:  # the author's audit may raise anything
                if _must_run_again(error):
                    raise
                outcome = _error_outcome(tool, error)
        try:
            after = self._save(tool, round_, lease, outcome)
        except LeaseLost:
            return  # another worker runs this round
        _note_outcome(after)
        # The client does not get the questions if it has cancelled the task, or if they do not fit into the item.
        if self._audit and has_reported_questions and after.status != INPUT_REQUIRED:
            self._audit(audit_record(round_, tool.name, sent=False))

    def _report(self, tool: Tool[..., Any], round_: Round, lease: Lease, outcome: Mapping[str, Any] | None) -> bool:
        """Report a round to the author's audit, and return whether the report has questions to the client.

        The audit gets the questions before the table does. If a write has no response, the worker cannot know whether
        the client already sees them.
        """
        if self._audit is None or not tool.needs_state:
            return False
        try:
            task = lease.renew(round_)
        except LeaseLost:
            return False  # another worker runs this round, and reports it
        asks = outcome is None and bool(round_.requests) and not task.cancel
        self._audit(audit_record(round_, tool.name, sent=asks))
        return asks

    def _save(self, tool: Tool[..., Any], round_: Round, lease: Lease, outcome: Mapping[str, Any] | None) -> Task:
        """Save the outcome of a round; an outcome that does not fit into the item, or is not JSON, becomes an error.

        Raises:
            LeaseLost: the worker has lost its task.
        """
        try:
            return lease.change(lambda task: self._next(task, round_, lease.epoch, outcome))
        except ItemTooLarge as error:
            instead = _error_outcome(tool, error)
            if outcome is not None:
                instead = {"error": InternalError("The result is larger than a task can keep (about 290 KB)").to_json()}
        except DeveloperError as error:
            instead = _error_outcome(tool, Crash(crash_message(tool), error))
        return lease.change(lambda task: self._next(task, round_, lease.epoch, instead))

    def _next(self, task: Task, round_: Round, epoch: int, outcome: Mapping[str, Any] | None) -> Task:
        """Return the state after a round: a task without an outcome has questions, or the time was up."""
        now = self._now_ms()
        if outcome is not None:
            return transitions.finish(task, epoch, now, outcome)
        progress = Progress(epoch, round_record(round_), round_.progress_message)
        if round_.requests:
            return transitions.ask(task, progress, now, round_.requests, round_.questions.open_fingerprints())
        return transitions.pause(task, progress, now)

    def _now_ms(self) -> int:
        return int(self._now() * 1000)


def _run_handler(task: Task, tool: Tool[..., Any], round_: Round) -> dict[str, Any] | None:
    """Run the handler and return its outcome; None if the task continues."""
    try:
        result = run_round(tool, {"name": task.tool, "arguments": task.arguments, "_meta": {}}, round_)
        if result is not None:
            return {"result": result}
        missing = missing_capabilities(round_.requests.values(), task.declared)
        if not missing:
            return None
        from mcp_functions.apps import unasked  # noqa: PLC0415 - only for clients without elicitation

        return {"result": tool_error(unasked.explain(tool, round_.requests, missing))}
    except BaseException as error:  # an author's `sys.exit()` too must end the task
        if _must_run_again(error):
            raise
        return _error_outcome(tool, error)


def _must_run_again(error: BaseException) -> bool:
    """Return whether a round has no outcome: the table does not answer, or a developer has pressed Ctrl-C."""
    return isinstance(error, TemporarilyUnavailable) or is_ctrl_c(error)


def _error_outcome(tool: Tool[..., Any], error: BaseException) -> dict[str, Any]:
    """Return the outcome of a round that an exception ended: the same result or error as for a call."""
    notes = observability.current()
    if isinstance(error, ItemTooLarge):
        notes.reason = error.reason  # the author reads the reason in the log
        return {"result": tool_error("This call has more data than a task can keep. Answer more briefly.")}
    if isinstance(error, Crash):
        return {"result": crash_result(tool, error)}
    if isinstance(error, McpError):
        notes.add_error(error)
        return {"error": error.to_json()}
    notes.add_crash(error)
    return {"error": InternalError().to_json()}


def _note_start(task: Task) -> None:
    """Note for the log which round of which task this worker has taken, or that it has ended the task."""
    notes = observability.current()
    notes.handler = task.tool
    notes.round = task.rounds + 1
    notes.flow = task.flow
    if task.status == FAILED:
        notes.conclude("failed", "worker_gave_up")


def _note_outcome(task: Task) -> None:
    """Note for the log how a round ended. The error of a failed task was noted when it was made."""
    notes = observability.current()
    if task.status == FAILED:
        return
    outcomes = {INPUT_REQUIRED: "input_required", WORKING: "shed"}  # "shed": the round ended for lack of time
    notes.conclude(outcomes.get(task.status, "complete"))
    notes.tool_error = task.outcome.get("result", {}).get("isError") is True
