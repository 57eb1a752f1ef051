"""Answers the requests of the tasks extension: `tools/call` may begin a task, and three other methods follow the task.

    tools/call    runs the call at once, or makes it a task
    tasks/get     returns the task with its questions or its result, and requests a worker if the last one has died
    tasks/update  gives answers to the task's questions
    tasks/cancel  ends the task, or asks its worker to stop

A worker is an invocation of a second Lambda function with the same code; it runs the tool once. No process watches the
workers. Clients poll with `tasks/get`, and each poll checks the worker.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from mcp_functions import observability
from mcp_functions.http import access_tokens
from mcp_functions.protocol.constants import META_TASK_TTL
from mcp_functions.protocol.errors import ContentTooLarge, InvalidParams, UnknownTask
from mcp_functions.protocol.messages import complete, is_dict_of
from mcp_functions.protocol.results import tool_error
from mcp_functions.rounds.input_requests import missing_capabilities
from mcp_functions.seal.binding import caller_id, principal_digest
from mcp_functions.store import ItemTooLarge
from mcp_functions.tasks import task_requests, transitions
from mcp_functions.tasks.open_tasks import TooManyTasks, digest_caller
from mcp_functions.tasks.task import COMPLETED, FAILED, INPUT_REQUIRED, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_functions.handlers.base import Handler
    from mcp_functions.handlers.tools import Tool
    from mcp_functions.protocol.messages import Request
    from mcp_functions.protocol.wire_types import JSONValue, Params, ResultObject
    from mcp_functions.rounds.round import Round
    from mcp_functions.settings import Settings
    from mcp_functions.tasks.task_store import TaskStore


class Tasks:
    """The tasks of one function, as its clients use them.

    Attributes:
        tools: the function's tools whose calls may become tasks, by name.
    """

    def __init__(
        self,
        handlers: Sequence[Handler[..., Any]],
        settings: Settings,
        store: TaskStore,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Use the parts of a deployment; no request is sent. `now` returns unix seconds."""
        self.tools = {handler.name: cast("Tool[..., Any]", handler) for handler in handlers if handler.task}
        self._store = store
        self._settings = settings
        self._now = now

    def call(self, request: Request, params: Params, round_: Round) -> ResultObject:
        """Run this round of a call, or begin a task."""
        tool = self.tools[params["name"]]
        support = tool.task_support(params)  # for the arguments of this call
        takes_tasks = task_requests.declares_extension(request)
        if support == "required" and not takes_tasks:
            raise task_requests.missing_extension()
        # Tasks extension: "A server MUST NOT return CreateTaskResult to a client that did not declare the extension on
        # the request."
        if support is None or not takes_tasks:
            return tool.call(params, round_)
        # A client that shows questions only in an MCP app can continue a call, and not a task.
        if support == "allowed" and tool.asks and round_.options.has_app:
            return tool.call(params, round_)
        # A parameter of the handler may be a question to the client. The task begins when each of these has its answer;
        # before that, this raises InputRequired with the questions.
        tool.require_declared_answers(params, round_)
        return self._begin(tool, request, round_)

    def _begin(self, tool: Tool[..., Any], request: Request, round_: Round) -> ResultObject:
        """Turn a call into a task with the record of its rounds, and return a CreateTaskResult."""
        owner = principal_digest(request.principal)
        task = self._new_task(tool, request, round_)
        try:
            task_id = self._store.create(task, owner)
        except TooManyTasks:
            most = self._settings.max_open_tasks
            return tool_error(f"You have {most} tasks open, and may have no more: finish or cancel one of them.")
        except ItemTooLarge as error:
            observability.current().reason = error.reason  # the author reads the reason in the log
            return tool_error("The call has more data than a task can keep. Call with less.")
        return {"resultType": "task", **_description(task_id, task, task.created)}

    def _new_task(self, tool: Tool[..., Any], request: Request, round_: Round) -> Task:
        """Return the first state, which requests a worker for the next round."""
        now = self._now_ms()
        tool_ttl = tool.task_ttl * 1000
        wanted_ttl = request.params["_meta"].get(META_TASK_TTL)  # of a client of a dialect
        if type(wanted_ttl) is not int or wanted_ttl < 1:
            wanted_ttl = tool_ttl
        observability.current().caller_id = caller_id(request.principal, request.address)
        task = Task(
            tool=tool.name,
            arguments=request.params.get("arguments") or {},
            principal=tuple(request.principal) if request.principal else None,
            scopes=_scopes_of(request),
            declared=request.capabilities,
            flow=round_.history.flow or os.urandom(16).hex(),  # a round without a seal has no id
            created=now,
            ttl=min(tool_ttl, self._settings.max_task_ttl * 1000, wanted_ttl),
            updated=now,
            # `step.now` is the time of the call, so later rounds must read the same time.
            record={**transitions.round_record(round_), "began": round_.began},
            caller=digest_caller(caller_id(request.principal, request.address)),
        )
        return transitions.request_worker(task, now)

    def answer(self, request: Request) -> ResultObject:
        """Answer one of the three methods. Each may change the task, and `tasks/get` then returns it.

        Raises:
            UnknownTask: this principal has no task with this id (tasks extension: "-32602 if the taskId is invalid or
                not found").
            McpError: the request is invalid.
        """
        task_id = task_requests.read_task_id(request)
        observability.current().caller_id = caller_id(request.principal, request.address)
        owner = principal_digest(request.principal)
        try:
            task = self._store.change(task_id, owner, lambda task: self._next_state(task, request))
        except ItemTooLarge:
            raise ContentTooLarge(reason="task_item") from None
        if request.method == "tasks/get":
            return self._describe(task_id, task, request)
        return {}

    def _next_state(self, task: Task, request: Request) -> Task:
        """Return the task after a request; an exception refuses the request."""
        observability.current().handler = task.tool
        if task.tool not in self.tools:
            raise UnknownTask  # this release of the function no longer has the tool
        # Tasks extension: "authorization on every task request"
        access_tokens.require_scopes(self.tools[task.tool], request, self._settings)
        now = self._now_ms()
        if request.method == "tasks/get":
            after = transitions.request_worker_if_lost(task, now)
            if after.status == FAILED != task.status:  # no worker began it
                observability.current().conclude("failed", "worker_gave_up")
            return after
        if request.method == "tasks/cancel":
            return transitions.request_cancel(task, now)
        responses: JSONValue = request.params.get("inputResponses")
        if not is_dict_of(dict, responses):
            raise InvalidParams(message="params.inputResponses must be an object of objects")
        answered = transitions.apply_answers(task, responses, _scopes_of(request), now)
        if answered.given != task.given:
            self._store.check_answers(answered)
        return answered

    def _describe(self, task_id: str, task: Task, request: Request) -> ResultObject:
        """Return a task with its questions or its outcome."""
        questions = {wire_key: question for wire_key, (_elicit_key, question) in task.requests.items()}
        # Tasks extension: "MUST NOT send an inputRequests that the client has not declared support for in its
        # capabilities"
        missing = missing_capabilities(questions.values(), request.capabilities)
        if missing:
            from mcp_functions.rounds import unfinished

            raise unfinished.missing_capability_error(missing, questions, {})
        description = _description(task_id, task, self._now_ms())
        if task.status == INPUT_REQUIRED:
            return {**description, "inputRequests": questions}
        if task.status == COMPLETED:
            return {**description, "result": complete(task.outcome["result"], self._settings.server_info)}
        if task.status == FAILED:
            return {**description, **task.outcome}
        return description

    def _now_ms(self) -> int:
        return int(self._now() * 1000)


def _scopes_of(request: Request) -> list[str]:
    """Return the scopes of a request's token as a task keeps them; a list, because the item is JSON."""
    return sorted(request.scopes)


MIN_POLL_MS = 1000  # the shortest time that a client is asked to wait before its next poll
MAX_POLL_MS = 30_000  # the longest


def _description(task_id: str, task: Task, now: int) -> ResultObject:
    """Return a task's members for the client. An older task is polled less often: after a tenth of its age."""
    age = now - task.created
    poll_interval = min(max(MIN_POLL_MS, age // 10), MAX_POLL_MS)
    return {
        "taskId": task_id,
        "status": task.status,
        **({"statusMessage": task.message} if task.message else {}),
        "createdAt": _iso(task.created),
        "lastUpdatedAt": _iso(task.updated),
        "ttlMs": task.ttl,
        "pollIntervalMs": poll_interval,
    }


def _iso(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
