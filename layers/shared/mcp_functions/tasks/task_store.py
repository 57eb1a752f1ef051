"""The tasks of one function in the table, and the workers that continue them.

Each task has one item, which `tasks.task` describes. `tasks.open_tasks` limits the number of open tasks.

The owner of a task is the digest of its principal (issuer, subject and client), None on a server without sign-in.

`TaskStore.change` writes the next state of a task:

    1. read the task
    2. let a function of `tasks.transitions` make the next state
    3. write that state; if another writer was faster, begin again
    4. invoke a worker, if that state requests one; end the task, if Lambda will never invoke it

A worker is a second Lambda function with the same code, and the time that a task needs. The invocation is asynchronous,
so Lambda may lose or repeat it. If it is lost, a later poll of the client invokes another worker. If it is repeated,
the lease of the task lets only one worker run.
"""

from __future__ import annotations

import json
import logging
import os
import re
from typing import TYPE_CHECKING

from mcp_functions import aws, observability
from mcp_functions.aws.errors import read_failure
from mcp_functions.http.events import WORKER_ORDER
from mcp_functions.protocol.errors import Busy, UnknownTask
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.seal.resets import PerProcess
from mcp_functions.store import Conflict, Key, UnreadableItem
from mcp_functions.tasks import transitions
from mcp_functions.tasks.open_tasks import OpenTasks
from mcp_functions.tasks.task import Task, from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.aws.clients import LambdaClient
    from mcp_functions.store import Item, SealedTable

THROTTLED = "TooManyRequestsException"  # the code of the Invoke API if too many run
RANDOM_BYTES = 16  # random bytes in a task id, which must be unguessable
RANDOM_PART = re.compile(r"[A-Za-z0-9_-]{22}")  # these bytes as base64url
WRITES = 4  # how often a change is tried while other writers are faster
LIMITS = aws.CallLimits(connect_seconds=1, read_seconds=2, attempts=2)  # two workers do no harm

log = logging.getLogger("mcp_functions")


def lambda_client() -> LambdaClient:
    """Return the client that invokes workers; it repeats a request without a response."""
    client: LambdaClient = aws.make_client("lambda", LIMITS)
    return client


class NoWorker(Exception):
    """Lambda will never invoke this worker: the permission or the function is missing. The text is AWS's code."""


class WorkerInvoker:
    """Invokes the workers of one function."""

    def __init__(self, worker: str) -> None:
        """Use the physical name of the worker's Lambda, with its qualifier; no client is made before the first call."""
        self._worker = worker
        self._client = PerProcess(lambda_client)

    def __call__(self, task_id: str, owner: str | None) -> None:
        """Invoke a worker for a task. A failure that may pass is only logged; NoWorker if the operator has to act."""
        order = json.dumps({WORKER_ORDER: {"id": task_id, "owner": owner}}).encode()
        try:
            self._client().invoke(FunctionName=self._worker, InvocationType="Event", Payload=order)
        except Exception as error:  # noqa: BLE001 - botocore makes its exceptions at run time
            # Only the code is logged, because a traceback could quote the request.
            failure = read_failure(error)
            reason = f"invoke_{failure.code}"
            if not failure.is_outage:
                log.log(logging.ERROR, "no worker: %s", reason)
                raise NoWorker(failure.code) from None
            # The request succeeds, so only these fields tell metric filters of it. Throttling is no outage.
            fields = {"reason": reason} if failure.code == THROTTLED else {"reason": reason, "outcome": "failed"}
            log.log(logging.ERROR, "no worker: %s", reason, extra=fields)


class TaskStore:
    """The tasks of one function."""

    def __init__(
        self,
        table: SealedTable,
        function: str,
        invoke_worker: Callable[[str, str | None], None],
        *,
        max_open_tasks: int,
        now: Callable[[], float],
    ) -> None:
        """Use a table; no request is sent.

        The ids of tasks begin with the folder of the function. A caller may have `max_open_tasks`.
        """
        self._table = table
        self._function = function
        self._invoke_worker = invoke_worker
        self._now = now
        self._open_tasks = OpenTasks(table, max_open_tasks, now)

    def create(self, task: Task, owner: str | None) -> str:
        """Write the first state of a task, invoke its first worker, and return its id.

        Raises:
            TooManyTasks: the caller has too many open tasks.
            ItemTooLarge: the call of the task is too large to be kept.
        """
        self._table.check_client_size([task.arguments, task.declared])
        task_id = f"{self._function}.{base64url(os.urandom(RANDOM_BYTES))}"
        if task.caller:
            self._open_tasks.add(task_id, task.expires, task.caller)
        try:
            self._table.create(_task_key(task_id, owner), to_json(task), expires=task.expires)
        except BaseException:
            self._remove_from_open_tasks(task_id, task)
            raise
        self._start_worker(task_id, owner, task)
        return task_id

    def check_answers(self, task: Task) -> None:
        """Check the size of the answers that a task has got in its round; ItemTooLarge if it cannot keep them."""
        self._table.check_client_size(task.given)

    def get(self, task_id: str, owner: str | None) -> Task:
        """Return a task of this owner; UnknownTask if there is no such task, or it has expired."""
        return from_json(self._item(task_id, owner).payload)

    def change(self, task_id: str, owner: str | None, transition: Callable[[Task], Task]) -> Task:
        """Write the next state of a task and return it; the steps are at the top of this module.

        Raises:
            UnknownTask: see `get`.
            Busy: another writer was faster at each attempt.
            TemporarilyUnavailable: the table does not answer.
            Exception: from `transition`; nothing is written.
        """
        for _ in range(WRITES):
            item = self._item(task_id, owner)
            before = from_json(item.payload)
            after = transition(before)
            try:
                if after != before:
                    self._table.replace(item, to_json(after))
            except Conflict:
                continue
            if after.ended:  # also if it had ended before: the removal may have failed then
                self._remove_from_open_tasks(task_id, after)
            if after.invocations > before.invocations:  # `transitions.request_worker` counts them
                return self._start_worker(task_id, owner, after)
            return after
        raise Busy(reason="tasks:contention")

    def _start_worker(self, task_id: str, owner: str | None, task: Task) -> Task:
        """Invoke a worker; if Lambda will never invoke one, end the task, and say so in the line of this request."""
        try:
            self._invoke_worker(task_id, owner)
        except NoWorker as error:
            notes = observability.current()
            notes.conclude("failed", f"invoke_{error}")
            notes.misconfigured = True
            now_ms = int(self._now() * 1000)
            return self.change(task_id, owner, lambda task: transitions.fail_without_worker(task, now_ms))
        return task

    def _item(self, task_id: str, owner: str | None) -> Item:
        folder, _dot, random_part = task_id.partition(".")
        if folder != self._function or not RANDOM_PART.fullmatch(random_part):
            raise UnknownTask
        try:
            item = self._table.get(_task_key(task_id, owner))
        except UnreadableItem:  # with a new MCP_GENERATION (a setting), older items do not open
            raise UnknownTask from None
        if item is None:
            raise UnknownTask
        return item

    def _remove_from_open_tasks(self, task_id: str, task: Task) -> None:
        if task.caller:
            self._open_tasks.remove(task_id, task.caller)


def _task_key(task_id: str, owner: str | None) -> Key:
    return Key("task", task_id, owner)
