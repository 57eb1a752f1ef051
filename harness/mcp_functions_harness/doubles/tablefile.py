"""Keeps the items of the project's table in a file, so that questions and tasks survive a restart of the harness.

The table itself is moto's, in memory. `StoredTable` copies each written item into the file before the function gets its
answer. SQLite writes an item as a whole, even if the harness is killed. The items are encrypted by the functions.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mcp_functions.aws.errors import ClientError
from mcp_functions_harness.doubles.dynamodb import Operate
from mcp_functions_harness.problems import Problem

FILE = "table.sqlite"
WRITES = ("PutItem", "UpdateItem", "DeleteItem")
BUSY_SECONDS = 5.0  # the longest wait while another harness writes into the file
# auto_vacuum: the file shrinks when items are deleted.
CREATE = """
PRAGMA auto_vacuum = FULL;
CREATE TABLE IF NOT EXISTS items (key TEXT PRIMARY KEY, item TEXT NOT NULL, expires INTEGER) WITHOUT ROWID;
"""


class TableFile:
    """The file, open until `close`. Two harnesses of one project may have it open."""

    def __init__(self, state_dir: Path, *, now: float) -> None:
        """Open the file in the harness's folder, or create it, and delete what has expired at `now` (unix seconds).

        Raises:
            Problem: the file cannot be read or written, or is damaged.
        """
        file = state_dir / FILE
        try:
            file.touch(mode=0o600)
            # check_same_thread: several threads use the file, but `DynamoDbApi` lets only one at a time.
            self._file = sqlite3.connect(file, timeout=BUSY_SECONDS, check_same_thread=False)
            self._file.executescript(CREATE)
            with self._file:
                self._file.execute("DELETE FROM items WHERE expires < ?", (int(now),))
        except (OSError, sqlite3.Error) as error:
            lost = "delete it; questions and tasks begun before must start again"
            raise Problem(f"{file} cannot be used ({error}): {lost}") from error

    def items(self) -> Iterator[dict[str, Any]]:
        """Read every item, as DynamoDB's JSON."""
        for (item,) in self._file.execute("SELECT item FROM items").fetchall():
            yield json.loads(item)

    def write(self, key: str, item: Mapping[str, Any] | None) -> None:
        """Write one item in DynamoDB's JSON; None deletes it.

        Raises:
            ClientError: the file cannot be written.
        """
        try:
            with self._file:
                if item is None:
                    self._file.execute("DELETE FROM items WHERE key = ?", (key,))
                else:
                    row = (key, json.dumps(item), item.get("expires", {}).get("N"))
                    self._file.execute("INSERT OR REPLACE INTO items VALUES (?, ?, ?)", row)
        except sqlite3.Error:  # the disk is full, or another harness takes too long
            raise ClientError("InternalServerError", 500) from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class StoredTable:
    """DynamoDB with one table that is kept in a file."""

    def __init__(self, file: TableFile, name: str, tables: Operate) -> None:
        """Fill the table of this name with the items of the file; `tables` runs operations, and has it empty."""
        self._file = file
        self._name = name
        self._tables = tables
        for item in file.items():
            self._tables("PutItem", {"TableName": name, "Item": item})

    def __call__(self, operation: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run one operation, and copy the item that it has written into the file."""
        result = self._tables(operation, params)
        if operation in WRITES and params["TableName"] == self._name:
            key = {"key": (params.get("Item") or params["Key"])["key"]}
            written = self._tables("GetItem", {"TableName": self._name, "Key": key, "ConsistentRead": True})
            self._file.write(key["key"]["S"], written.get("Item"))
        return result
