"""The open tasks of each caller, to limit their number.

    item of a caller    {"open": {"kZ3f9Qw1": 1785086400}}    the begin of a task's random id, and when the task expires

A call that the limit refuses reads this one item, of about 4 KB for 100 tasks, and not the tasks themselves. An entry
is removed when its task ends; if that fails, the next request for the ended task removes it, or else its expiry does.
So no error keeps a caller out for ever, and an item that does not open limits nobody.

A caller is a person with all OAuth clients, or without sign-in an address, as in each limit of `binding.caller_id`. So
nobody can use up the tasks of another.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import Busy, McpError
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.store import Conflict, Key, UnreadableItem

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.store import Item, SealedTable

ENTRY_CHARS = 8  # characters of a random id: 48 bits, which differ among the tasks of one caller
ADDITIONS = 10  # how often an addition is tried while other writers are faster
REMOVALS = 3  # how often a removal is tried; a later request repeats it


class TooManyTasks(Exception):
    """The caller has as many open tasks as the deployment allows."""


class OpenTasks:
    """The items with the open tasks of each caller of one function."""

    def __init__(self, table: SealedTable, most: int, now: Callable[[], float]) -> None:
        """Use a table; no request is sent. A caller may have `most` open tasks, and `now` returns unix seconds."""
        self._table = table
        self._most = most
        self._now = now

    def add(self, task_id: str, expires: int, caller: str) -> None:
        """Add a task to the open tasks of a caller (`digest_caller`). It expires at `expires`, in unix seconds.

        Raises:
            TooManyTasks: the caller has too many open tasks.
            Busy: another writer was faster at each attempt.
        """
        for _ in range(ADDITIONS):
            try:
                item = self._table.get(_key(caller))
            except UnreadableItem:  # with a new MCP_GENERATION (a setting), older items do not open
                return
            expiries = self._not_expired(item)
            if len(expiries) >= self._most:
                raise TooManyTasks
            expiries[_entry(task_id)] = expires
            last_expiry = max(expiries.values())
            try:
                if item:
                    self._table.replace(item, {"open": expiries}, expires=last_expiry)
                else:
                    self._table.create(_key(caller), {"open": expiries}, expires=last_expiry)
            except Conflict:
                continue
            return
        raise Busy(reason="tasks:contention")

    def remove(self, task_id: str, caller: str) -> None:
        """Remove a task that has ended, if it is there. A failure is no error, because a later request repairs it."""
        with suppress(McpError, UnreadableItem):
            for _ in range(REMOVALS):
                item = self._table.get(_key(caller))
                expiries = self._not_expired(item)
                if item is None or expiries.pop(_entry(task_id), None) is None:
                    return
                with suppress(Conflict):
                    self._table.replace(item, {"open": expiries})
                    return

    def _not_expired(self, item: Item | None) -> dict[str, int]:
        """Return when each open task expires, by its entry."""
        if item is None:
            return {}
        return {entry: expires for entry, expires in item.payload["open"].items() if expires > self._now()}


def digest_caller(caller_id: str) -> str:
    """Return the digest of a caller (`binding.caller_id`), so that no key of the table has an address."""
    return base64url(hashlib.sha256(b"ks1/open-tasks\0" + caller_id.encode()).digest())


def _key(caller: str) -> Key:
    return Key("open-tasks", "all", caller)


def _entry(task_id: str) -> str:
    return task_id.partition(".")[2][:ENTRY_CHARS]
