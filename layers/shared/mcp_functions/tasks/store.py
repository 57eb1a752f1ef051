"""Tasks in the table: made within what a principal may have open, read, and changed by one writer at a time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import Busy, UnknownTask
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.store import Conflict, Key, UnreadableItem
from mcp_functions.tasks.task import Task, read, written

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.store import Item, Table

ID = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{22}")
RANDOM_BYTES = 16  # of an id: "unguessable"
TRIES = 10  # of one change, on what others left meanwhile
KIND, OPEN = "task", Key("tasks", "open")
REASON = "tasks:contention"


class TooMany(Exception):
    """The principal has as many tasks open as it may."""


class Store:
    """The tasks of one function."""

    def __init__(
        self, table: Table, function: str, *, most: int, now: Callable[[], float], rand: Callable[[int], bytes]
    ) -> None:
        """Remember the table; no call is made.

        Args:
            table: that keeps them.
            function: whose tasks they are: the first part of every id.
            most: tasks that one principal may have open at once.
            now: unix seconds.
            rand: `n` random bytes.

        """
        self._table, self._function, self._most, self._now, self._rand = table, function, most, now, rand

    def create(self, task: Task, owner: str | None) -> str:
        """Write a task down, and return its id once everybody who asks for it would find it.

        Args:
            task: as it begins.
            owner: digest of the principal.

        Raises:
            TooMany: the principal has too many open.
            ItemTooLarge: it does not fit into an item.

        """
        name = base64url(self._rand(RANDOM_BYTES))
        task_id = f"{self._function}.{name}"
        self._count(task_id, task.expires, owner)
        self._table.create(Key(KIND, task_id, owner), written(task), expires=task.expires)
        return task_id

    def get(self, task_id: str, owner: str | None) -> Task:
        """Read a task of this principal.

        Raises:
            UnknownTask: there is none, or no longer, or it is another's: that one has another key.

        """
        return read(self._item(task_id, owner).payload)

    def change(self, task_id: str, owner: str | None, to: Callable[[Task], Task]) -> Task:
        """Change a task, as often as it takes until nobody else has written in between.

        Args:
            task_id: of the task.
            owner: digest of its principal.
            to: says what it becomes; it is asked again for what another writer left.

        Returns:
            What it is now.

        Raises:
            UnknownTask: as `get`.
            TemporarilyUnavailable: too many write at once, or the table does not answer.
            Exception: what `to` raised; nothing is written.

        """
        for _ in range(TRIES):
            item = self._item(task_id, owner)
            before = read(item.payload)
            after = to(before)
            if after == before:
                return before
            try:
                self._table.replace(item, written(after))
            except Conflict:
                continue
            return after
        raise Busy(REASON)

    def _item(self, task_id: str, owner: str | None) -> Item:
        if not ID.fullmatch(task_id) or task_id.partition(".")[0] != self._function:
            raise UnknownTask
        try:
            item = self._table.get(Key(KIND, task_id, owner))
        except UnreadableItem:  # sealed before a new generation, say: to everybody it is gone
            item = None
        # The end is the protocol's, not only the table's: the item may be there for days after it.
        if item is None or item.expires <= self._now():
            raise UnknownTask
        return item

    def _count(self, task_id: str, expires: int, owner: str | None) -> None:
        """Add a task to those that its principal has open; who has too many loses what is over before being refused."""
        key = OPEN._replace(principal=owner)
        for _ in range(TRIES):
            found = self._list(key)
            known: dict[str, int] = dict(found.payload["ids"]) if found else {}
            if len(known) >= self._most:
                known = {other: ends for other, ends in known.items() if self._open(other, ends, owner)}
            if len(known) >= self._most:
                raise TooMany
            known[task_id] = expires
            ends = max(known.values())
            try:
                if found:
                    self._table.replace(found, {"ids": known}, expires=ends)
                else:
                    self._table.create(key, {"ids": known}, expires=ends)
            except Conflict:
                continue
            return
        raise Busy(REASON)

    def _list(self, key: Key) -> Item | None:
        return self._table.get(key)

    def _open(self, task_id: str, ends: int, owner: str | None) -> bool:
        try:
            return ends > self._now() and not self.get(task_id, owner).ended
        except UnknownTask:
            return False
