"""The tasks of one function in the table, and the workers that continue them.

    kind "task",  id "<folder>.<random text>"  one item for each task
    kind "tasks", id "open"                    one item for each principal: ids of its tasks -> when they expire

`TaskStore.change` writes the next state of a task:

    1. read the task
    2. let a function of `tasks.transitions` make the next state
    3. write that state; if another writer was faster, begin again
    4. invoke a worker, if the task now waits for one

The owner of a task is the digest of its principal (issuer, subject and client), None on a server without sign-in.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict
from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import Busy, UnknownTask
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.store import Conflict, Key, UnreadableItem
from mcp_functions.tasks.task import Task, from_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.store import Item, SealedTable

TASK_ID = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{22}")
RANDOM_BYTES = 16  # random bytes in a task id, which must be unguessable
ATTEMPTS = 10  # how often a change is tried while other writers are faster
KIND = "task"
OPEN_TASKS = Key("tasks", "open")
CONTENTION = "tasks:contention"  # the reason in the log after the last attempt


class TooManyTasks(Exception):
    """The principal has as many open tasks as the deployment allows."""


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

        Args:
            table: the table that keeps the tasks.
            function: the function's folder, with which task ids begin.
            invoke_worker: invokes a worker for a task's id and owner.
            max_open_tasks: how many tasks of one principal may be open.
            now: the clock, in unix seconds.
        """
        self._table = table
        self._function = function
        self._invoke_worker = invoke_worker
        self._max_open_tasks = max_open_tasks
        self._now = now

    def create(self, task: Task, owner: str | None) -> str:
        """Write the first state of a task, invoke its first worker, and return its id.

        Raises:
            TooManyTasks: the principal has too many open tasks.
            ItemTooLarge: the task does not fit into an item.
        """
        task_id = f"{self._function}.{base64url(os.urandom(RANDOM_BYTES))}"
        self._register(task_id, task.expires, owner)
        self._table.create(Key(KIND, task_id, owner), asdict(task), expires=task.expires)
        self._invoke_worker(task_id, owner)
        return task_id

    def get(self, task_id: str, owner: str | None) -> Task:
        """Return a task of this principal; UnknownTask if there is no such task, or it has expired."""
        return from_json(self._item(task_id, owner).payload)

    def change(self, task_id: str, owner: str | None, transition: Callable[[Task], Task]) -> Task:
        """Write the next state of a task and return it; the steps are at the top of this module.

        Raises:
            UnknownTask: see `get`.
            TemporarilyUnavailable: too many writers, or the table does not answer.
            Exception: from `transition`; nothing is written.
        """
        for _ in range(ATTEMPTS):
            item = self._item(task_id, owner)
            before = from_json(item.payload)
            after = transition(before)
            if after == before:
                return after
            try:
                self._table.replace(item, asdict(after))
            except Conflict:
                continue
            if after.summons > before.summons:  # `transitions.await_worker` counts the invocations
                self._invoke_worker(task_id, owner)
            return after
        raise Busy(CONTENTION)

    def _item(self, task_id: str, owner: str | None) -> Item:
        if not TASK_ID.fullmatch(task_id) or task_id.partition(".")[0] != self._function:
            raise UnknownTask
        try:
            item = self._table.get(Key(KIND, task_id, owner))
        except UnreadableItem:
            raise UnknownTask from None  # the operator chose another MCP_GENERATION, which ends all tasks
        if item is None:
            raise UnknownTask
        return item

    def _register(self, task_id: str, expires: int, owner: str | None) -> None:
        """Add a task to the principal's open tasks; ended tasks are removed only if the limit is reached."""
        key = OPEN_TASKS._replace(principal=owner)
        for _ in range(ATTEMPTS):
            item = self._table.get(key)
            ids: dict[str, int] = dict(item.payload["ids"]) if item else {}
            if len(ids) >= self._max_open_tasks:
                ids = {other: end for other, end in ids.items() if self._is_open(other, end, owner)}
            if len(ids) >= self._max_open_tasks:
                raise TooManyTasks
            ids[task_id] = expires
            last_expiry = max(ids.values())
            try:
                if item:
                    self._table.replace(item, {"ids": ids}, expires=last_expiry)
                else:
                    self._table.create(key, {"ids": ids}, expires=last_expiry)
            except Conflict:
                continue
            return
        raise Busy(CONTENTION)

    def _is_open(self, task_id: str, end: int, owner: str | None) -> bool:
        if end <= self._now():
            return False
        try:
            return not self.get(task_id, owner).ended
        except UnknownTask:
            return False
