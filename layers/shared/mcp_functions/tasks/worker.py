"""A worker goes on with one task: it takes the lease, plays rounds of the handler, and writes down what becomes of it.

Each step is written down as it ends. Before each step the worker looks whether the task is still its own, and still
wanted: so one that slept through its lease does nothing more, and a cancellation is seen at the next step or question.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.handlers.runner import crash_message, crash_result, run_round
from mcp_functions.protocol.errors import (
    Crash,
    DeveloperError,
    InternalError,
    McpError,
    Misconfigured,
    MissingRequiredClientCapability,
    TaskResultTooLarge,
    TemporarilyUnavailable,
    UnknownTask,
    WorkerGaveUp,
    is_ctrl_c,
)
from mcp_functions.protocol.messages import Principal
from mcp_functions.rounds.input_requests import in_words, missing
from mcp_functions.rounds.round import Round
from mcp_functions.store import ItemTooLarge
from mcp_functions.tasks.lease import Held, left
from mcp_functions.tasks.task import (
    COMPLETED,
    FAILED,
    INPUT_REQUIRED,
    LEASE_MS,
    MAX_ATTEMPTS,
    WORKING,
    Lost,
    Task,
    asking,
    cancelled,
    exhausted,
    finished,
    paused,
    renewed,
    taken,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.handlers.tools import Tool
    from mcp_functions.rounds.round import AuditRecord
    from mcp_functions.tasks.store import Store

NO_LIMIT = 1 << 31  # on rounds without a question: a task has no client that gives up
TOO_MUCH = "This call has more to remember than a task can keep. Answer more briefly."


class Worker:
    """Goes on with the tasks of one function, one at a time."""

    def __init__(  # noqa: PLR0913 - what a worker works with
        self,
        tools: Mapping[str, Tool[..., Any]],
        store: Store,
        summon: Callable[[str, str | None], None],
        *,
        now: Callable[[], float] = time.time,
        lease_seconds: float = LEASE_MS / 1000,
        audit: Callable[[AuditRecord], object] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Remember what there is.

        Args:
            tools: of the function, by name.
            store: of its tasks.
            summon: calls the next worker.
            now: the clock, unix seconds.
            lease_seconds: for which a task is held without a word.
            audit: is told of every round of a handler that may ask.
            sleep: waits, for seconds.

        """
        self._tools, self._store, self._summon, self._now = tools, store, summon, now
        self._lease, self._audit, self._sleep = int(lease_seconds * 1000), audit, sleep

    def work(self, order: Mapping[str, Any], context: Any) -> None:  # noqa: ANN401 - Lambda's context object
        """Play one round of a task, if it is there to be had; otherwise do nothing.

        Args:
            order: `id` of the task, and `owner`, the digest of its principal.
            context: Lambda's.

        Raises:
            McpError: the table does not answer. What was done is written down as far as it went; the lease ends, and
                the next poll calls another worker.

        """
        task_id, owner = str(order["id"]), order["owner"]
        deadline = self._now() + context.get_remaining_time_in_millis() / 1000
        try:
            task = self._store.change(task_id, owner, self._taken)
        except (Lost, UnknownTask):
            return  # another has it, or it waits, or it is over
        if task.held:
            notes = observability.current()
            notes.handler, notes.round, notes.flow = task.tool, task.rounds + 1, task.flow
            self._played(self._hold(task_id, owner, task), task, deadline)

    def _taken(self, task: Task) -> Task:
        after = taken(task, self._ms(), self._lease)
        if after.held and task.attempts >= MAX_ATTEMPTS:
            return exhausted(task, self._ms(), _error(WorkerGaveUp()))
        return after

    def _hold(self, task_id: str, owner: str | None, task: Task) -> Held:
        return Held(self._store, task_id, owner, task, lease=self._lease, now=self._now, sleep=self._sleep)

    def _played(self, held: Held, task: Task, deadline: float) -> None:
        tool, round_ = self._tools.get(task.tool), self._round(task, deadline)
        held.playing(round_)
        told = False
        with held.beating(self._lease / 3000):
            outcome = self._outcome(tool, lambda: _result(tool, task, round_))
            if self._audit and tool and tool.asks:
                told, outcome = self._audited(self._audit, tool, held, round_, outcome)
        after = self._left(held, round_, outcome)
        if told and after and after.status != INPUT_REQUIRED and self._audit:
            self._audit(round_.audit(held.tool, held.owner, sent=False))  # it was cancelled meanwhile, or is too large

    def _audited(
        self,
        audit: Callable[[AuditRecord], object],
        tool: Tool[..., Any],
        held: Held,
        round_: Round,
        outcome: dict[str, Any] | None,
    ) -> tuple[bool, dict[str, Any] | None]:
        """Tell the author's audit how a round ended; what that raises is how it ended, and no question is seen."""
        told = False

        def tell() -> dict[str, Any] | None:
            nonlocal told
            told = held.audit(audit, round_, asks=outcome is None and bool(round_.requests))
            return outcome

        after = self._outcome(tool, tell)
        return told, after

    def _outcome(self, tool: Tool[..., Any] | None, ends: Callable[[], dict[str, Any] | None]) -> dict[str, Any] | None:
        """Say how a round ended: with a result or an error, as the call would have; None if it goes on."""
        try:
            return ends()
        except TemporarilyUnavailable:
            raise
        except ItemTooLarge as error:
            observability.current().reason = error.reason  # for the author
            return {"result": tool.error_result(TOO_MUCH)} if tool else None
        except Crash as crash:  # "isError" completes a task, as every other result of a tool does
            return {"result": crash_result(tool, crash)} if tool else None
        except McpError as error:
            return {"error": _noted(error)}
        except BaseException as error:  # of the author's audit
            if is_ctrl_c(error):
                raise
            observability.current().crash(error)
            return {"error": _error(InternalError())}

    def _left(self, held: Held, round_: Round, outcome: Mapping[str, Any] | None) -> Task | None:
        """Write down how a round ended; where the item cannot hold that, say so in its place. None: it was lost."""
        try:
            after = self._written(held, round_, outcome)
        except Lost:
            return None
        _note_end(after)
        if after.status == WORKING and not after.held:
            self._summon(held.task_id, held.owner)
        return after

    def _written(self, held: Held, round_: Round, outcome: Mapping[str, Any] | None) -> Task:
        try:
            return held.change(lambda task: self._after(task, held.epoch, round_, outcome))
        except ItemTooLarge as error:
            observability.current().reason = error.reason  # for the author
            too_much = {"result": self._tools[held.tool].error_result(TOO_MUCH)}
            instead = too_much if outcome is None else {"error": _error(TaskResultTooLarge())}
        except DeveloperError as error:
            tool = self._tools[held.tool]
            instead = {"result": crash_result(tool, Crash(crash_message(tool), error))}
        return held.change(lambda task: self._after(task, held.epoch, round_, instead))

    def _after(self, task: Task, epoch: int, round_: Round, outcome: Mapping[str, Any] | None) -> Task:
        now = self._ms()
        if outcome is not None:
            return finished(task, epoch, now, FAILED if "error" in outcome else COMPLETED, outcome)
        if round_.requests:
            return asking(task, epoch, now, left(round_), round_.requests, round_.leave_asked())
        if task.cancel:
            return cancelled(renewed(task, epoch, now, round_.told), now)
        return paused(task, epoch, now, left(round_), round_.told)

    def _round(self, task: Task, deadline: float) -> Round:
        return Round(
            record=task.record,
            asked=task.asked,
            flow=task.flow,
            number=task.rounds + 1,
            responses=task.given,
            declared=task.declared,
            deadline=deadline,
            now=self._now,
            max_sheds=NO_LIMIT,
            principal=None if task.principal is None else Principal(*task.principal),
            scopes=frozenset(task.scopes),
        )

    def _ms(self) -> int:
        return int(self._now() * 1000)


def _result(tool: Tool[..., Any] | None, task: Task, round_: Round) -> dict[str, Any] | None:
    """Play a round; return its result as an outcome, None if it goes on."""
    if tool is None:
        raise UnknownTask  # another release offers it no more
    round_.camel_case = tool.camel_case
    result = run_round(tool, {"name": task.tool, "arguments": task.arguments, "_meta": {}}, round_)
    if result is not None:
        return {"result": result}
    if lacking := missing(round_.requests.values(), task.declared):
        asks = {key: in_words(asked) for key, asked in round_.requests.items()}
        raise MissingRequiredClientCapability(lacking, asks)
    return None


def _note_end(task: Task) -> None:
    notes, said = observability.current(), {INPUT_REQUIRED: "input_required", WORKING: "shed"}
    if task.status != FAILED:
        notes.conclude(said.get(task.status, "complete"))
        notes.tool_error = task.outcome.get("result", {}).get("isError") is True


def _noted(error: McpError) -> dict[str, Any]:
    notes = observability.current()
    notes.conclude("failed" if error.ours else "refused", error.reason)
    notes.code = error.code
    notes.misconfigured = isinstance(error, Misconfigured)
    return _error(error)


def _error(error: McpError) -> dict[str, Any]:
    return {"code": error.code, "message": error.message, **({} if error.data is None else {"data": error.data})}
