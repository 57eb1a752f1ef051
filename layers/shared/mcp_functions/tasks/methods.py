"""The calls that become tasks, and `tasks/get`, `tasks/update`, `tasks/cancel` (io.modelcontextprotocol/tasks).

Who polls also looks after the task: one that has to go on while nobody has it is given to a worker here, so that
nothing else has to watch over it.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.http import access_tokens
from mcp_functions.protocol.errors import ContentTooLarge, InvalidParams, MissingRequiredClientCapability, UnknownTask
from mcp_functions.protocol.messages import complete
from mcp_functions.rounds.input_requests import in_words, missing
from mcp_functions.seal.request_state import payer, principal_digest
from mcp_functions.store import ItemTooLarge
from mcp_functions.tasks.lease import left
from mcp_functions.tasks.store import Store, TooMany
from mcp_functions.tasks.task import (
    COMPLETED,
    FAILED,
    INPUT_REQUIRED,
    LONGEST_POLL_MS,
    POLL_MS,
    SUMMONS_MS,
    Task,
    answered,
    cancelled,
    cancelling,
    principal_of,
    summoned,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.handlers.base import Handler
    from mcp_functions.handlers.runner import Runnable
    from mcp_functions.handlers.tools import Tool
    from mcp_functions.protocol.messages import Request
    from mcp_functions.rounds.round import Round
    from mcp_functions.settings import Settings
    from mcp_functions.store import Table

FLOW_BYTES = 16
TOO_LARGE = "The call has more to remember than a task can keep. Call with less."


class Tasks:
    """The tasks of one function, as its clients see them.

    Attributes:
        store: keeps them.
        tools: those of the function whose calls may become tasks, by name.

    """

    def __init__(  # noqa: PLR0913 - what tasks consist of
        self,
        handlers: Sequence[Handler[..., Any]],
        settings: Settings,
        function: str,
        table: Table,
        summon: Callable[[str, str | None], None],
        *,
        now: Callable[[], float] = time.time,
        rand: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """Remember what there is; no call is made.

        Args:
            handlers: of the function.
            settings: what the deployment decided.
            function: the folder it lives in; the ids of its tasks begin with it.
            table: keeps the tasks.
            summon: calls a worker for a task, by its id and the digest of its principal.
            now: the clock, unix seconds.
            rand: `n` random bytes.

        """
        self.tools: dict[str, Tool[..., Any]] = {tool.name: tool for tool in handlers if tool.task}  # type: ignore[misc]
        self.store = Store(table, function, most=settings.max_open_tasks, now=now, rand=rand)
        self._settings, self._summon, self._now, self._rand = settings, summon, now, rand

    def instead_of(self, handler: Handler[..., Any], request: Request) -> Runnable:
        """Return what plays this round of a call: the handler, or the beginning of a task in its place."""
        return _Call(self, self.tools[handler.name], request)

    def begin(self, tool: Tool[..., Any], request: Request, round_: Round) -> dict[str, Any]:
        """Turn a call into a task; what rounds before it brought goes with it (CreateTaskResult)."""
        now = self._ms()
        task = Task(
            tool=tool.name,
            arguments=request.params.get("arguments") or {},
            principal=principal_of(request.principal),
            scopes=tuple(sorted(request.scopes)),
            declared=request.capabilities,
            flow=round_.flow or self._rand(FLOW_BYTES).hex(),
            created=now,
            ttl=min(tool.task_ttl * 1000, self._settings.max_task_ttl * 1000, request.task_ttl or tool.task_ttl * 1000),
            updated=now,
            # It names the conversation from its first step on: a repetition is no other conversation.
            record={**left(round_), "began": round_.began},
            until=now + SUMMONS_MS,
            summons=1,
        )
        owner = principal_digest(request.principal)
        try:
            task_id = self.store.create(task, owner)
        except TooMany:
            most = self._settings.max_open_tasks
            return tool.error_result(f"You have {most} tasks open, and may have no more: finish or cancel one of them.")
        except ItemTooLarge as error:
            observability.current().reason = error.reason  # for the author
            return tool.error_result(TOO_LARGE)
        self._summon(task_id, owner)
        return {"resultType": "task", **_shown(task_id, task, now)}

    def answer(self, request: Request) -> dict[str, Any]:
        """Answer one of the three methods.

        Raises:
            UnknownTask: "-32602 if the taskId is invalid or not found", or expired, or somebody else's.
            McpError: whatever else is wrong with the request.

        """
        task_id = request.params.get("taskId")
        if not isinstance(task_id, str):
            text = "params.taskId must be a string"
            raise InvalidParams(text)
        observability.current().payer = payer(request.principal, request.address)
        owner, method = principal_digest(request.principal), request.message["method"]
        task = self.store.get(task_id, owner)
        observability.current().handler = task.tool
        self._permit(task, request)
        if method == "tasks/get":
            return self._get(task_id, owner, task, request)
        return (self._update if method == "tasks/update" else self._cancel)(task_id, owner, request)

    def _permit(self, task: Task, request: Request) -> None:
        # "authorization on every task request": what the call needed, its task needs
        if task.tool not in self.tools:
            raise UnknownTask  # another release offers it no more
        access_tokens.permit(task.tool, self.tools[task.tool].scopes, request.scopes, self._settings)

    def _get(self, task_id: str, owner: str | None, task: Task, request: Request) -> dict[str, Any]:
        if task.abandoned(self._ms()):
            task = self._looked_after(task_id, owner)
        # "MUST NOT send an inputRequests that the client has not declared support for in its capabilities"
        if lacking := missing((asked for _key, asked in task.requests.values()), request.capabilities):
            asks = {key: in_words(asked) for key, (_own, asked) in task.requests.items()}
            raise MissingRequiredClientCapability(lacking, asks)
        shown = _shown(task_id, task, self._ms())
        match task.status:
            case status if status == INPUT_REQUIRED:
                return {**shown, "inputRequests": {key: asked for key, (_own, asked) in task.requests.items()}}
            case status if status == COMPLETED:
                return {**shown, "result": complete(task.outcome["result"], self._settings.server_info)}
            case status if status == FAILED:
                return {**shown, **task.outcome}
        return shown

    def _update(self, task_id: str, owner: str | None, request: Request) -> dict[str, Any]:
        responses = request.params.get("inputResponses")
        if not isinstance(responses, dict) or not all(isinstance(value, dict) for value in responses.values()):
            text = "params.inputResponses must be an object of objects"
            raise InvalidParams(text)
        resumed = False

        def to(task: Task) -> Task:
            nonlocal resumed
            after = answered(task, responses, self._ms())
            resumed = after.status != task.status
            return after

        try:
            self.store.change(task_id, owner, to)
        except ItemTooLarge:
            raise ContentTooLarge(reason="task_item") from None
        if resumed:
            self._summon(task_id, owner)
        return {}

    def _cancel(self, task_id: str, owner: str | None, _request: Request) -> dict[str, Any]:
        self.store.change(task_id, owner, lambda task: cancelling(task, self._ms()))
        return {}

    def _looked_after(self, task_id: str, owner: str | None) -> Task:
        """Have a task gone on with that nobody has."""
        called = False

        def to(task: Task) -> Task:
            nonlocal called
            now = self._ms()
            called = task.abandoned(now) and not task.cancel
            if not task.abandoned(now):
                return task
            return cancelled(task, now) if task.cancel else summoned(task, now)

        task = self.store.change(task_id, owner, to)
        if called:
            self._summon(task_id, owner)
        return task

    def _ms(self) -> int:
        return int(self._now() * 1000)


class _Call:
    """Stands in for a tool whose calls may become tasks: decides, and then asks what the signature declares."""

    def __init__(self, tasks: Tasks, tool: Tool[..., Any], request: Request) -> None:
        self._tasks, self._tool, self._request = tasks, tool, request
        self.label = tool.label

    def call(self, params: Mapping[str, Any], round_: Round) -> dict[str, Any]:
        """Run the round, or begin the task, once all that is asked before it has its answer.

        "A server MUST NOT return CreateTaskResult to a client that did not declare the extension on the request."

        Raises:
            MissingRequiredClientCapability: the call must become a task, and this client knows none.
            InputRequired: the round ends with a question.

        """
        try:
            support = self._tool.task_support(params)
            if support == "required":
                self._request.must_take_tasks()
            if not support or not self._request.takes_tasks:
                return self._tool.call(params, round_)
            self._tool.ask_declared(self._tool.bind(params), round_)
        except Exception as error:
            if (text := self._tool.text_for_model(error)) is None:
                raise
            return self._tool.error_result(text)
        return self._tasks.begin(self._tool, self._request, round_)

    def error_result(self, reason: str) -> dict[str, Any]:
        """Say that the call cannot be completed."""
        return self._tool.error_result(reason)

    def text_for_model(self, error: BaseException) -> str | None:
        """Return the text of an exception that is meant for the model; None if it is not."""
        return self._tool.text_for_model(error)


def _shown(task_id: str, task: Task, now: int) -> dict[str, Any]:
    # The older a task, the less often one need ask: a tenth of its age, within limits.
    poll = min(max(POLL_MS, (now - task.created) // 10), LONGEST_POLL_MS)
    return {
        "taskId": task_id,
        "status": task.status,
        **({"statusMessage": task.message} if task.message else {}),
        "createdAt": _iso(task.created),
        "lastUpdatedAt": _iso(task.updated),
        "ttlMs": task.ttl,
        "pollIntervalMs": poll,
    }


def _iso(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
