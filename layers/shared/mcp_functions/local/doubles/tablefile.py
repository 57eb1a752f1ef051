"""The items of the project's table, in a file, so that questions and tasks survive a restart of the harness.

SQLite writes an item atomically, even if the harness is killed. Each write reaches the file before the function gets
its answer. The items are sealed, and only their owner can read the file.
"""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

from mcp_functions.local.problems import stop
from mcp_functions.store import DynamoDbError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mcp_functions.store.dynamodb import Call

FILE = "table.sqlite"
WRITES = ("PutItem", "UpdateItem", "DeleteItem")
BUSY_SECONDS = 5.0  # how long one harness waits for another one's write
# With auto_vacuum the file shrinks when items are deleted.
CREATE = """
PRAGMA auto_vacuum = FULL;
CREATE TABLE IF NOT EXISTS items (key TEXT PRIMARY KEY, item TEXT NOT NULL, expires INTEGER) WITHOUT ROWID;
"""


class TableFile:
    """The file, open until `close`. Two harnesses of one project may have it open: each writes its own items."""

    def __init__(self, state_dir: Path, *, now: float) -> None:
        """Open the file, or create it, and delete expired items.

        Args:
            state_dir: the harness's existing folder.
            now: unix seconds.

        Raises:
            Problem: the file cannot be read or written, or is damaged.
        """
        file = state_dir / FILE
        try:
            file.touch(mode=0o600)
            # `DynamoDbApi` calls it from one thread at a time
            self._file = sqlite3.connect(file, timeout=BUSY_SECONDS, check_same_thread=False)
            self._file.executescript(CREATE)
            with self._file:
                self._file.execute("DELETE FROM items WHERE expires < ?", (int(now),))
        except (OSError, sqlite3.Error) as error:
            stop(
                f"{file} cannot be used ({error}): delete it; questions and tasks begun before must start again",
                after=error,
            )

    def items(self) -> Iterator[dict[str, Any]]:
        """Read every item, as DynamoDB's JSON."""
        for (item,) in self._file.execute("SELECT item FROM items").fetchall():
            yield json.loads(item)

    def write(self, key: str, item: Mapping[str, Any] | None) -> None:
        """Write one item, or delete it if it is None.

        Raises:
            DynamoDbError: the file cannot be written.
        """
        try:
            with self._file:
                if item is None:
                    self._file.execute("DELETE FROM items WHERE key = ?", (key,))
                else:
                    row = (key, json.dumps(item), item.get("expires", {}).get("N"))
                    self._file.execute("INSERT OR REPLACE INTO items VALUES (?, ?, ?)", row)
        except sqlite3.Error:  # the disk is full, or another harness takes too long
            code = "InternalServerError"
            raise DynamoDbError(code, 500) from None  # the function must see what AWS would answer, and no more

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class StoredTable:
    """Tables that are called like DynamoDB. The items of one are copied to a file."""

    def __init__(self, file: TableFile, name: str, tables: Call) -> None:
        """Take empty tables, and fill the one of this name with the items of the file."""
        self._file = file
        self._name = name
        self._tables = tables
        for item in file.items():
            self._tables("PutItem", {"TableName": name, "Item": item})

    def __call__(self, operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer one request.

        Raises:
            DynamoDbError: an error, with AWS's code.
        """
        answer = self._tables(operation, request)
        if operation in WRITES and request["TableName"] == self._name:
            key = {"key": (request.get("Item") or request["Key"])["key"]}
            stored = self._tables("GetItem", {"TableName": self._name, "Key": key, "ConsistentRead": True})
            self._file.write(key["key"]["S"], stored.get("Item"))
        return answer
