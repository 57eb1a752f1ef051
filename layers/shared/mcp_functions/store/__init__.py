"""One table for what must outlive a request: tasks, and which rounds of a conversation were used.

An item has a key, a version and an end; what it says is sealed, and bound to all three. Every write names the version
that it replaces, so of two writers one fails: leases, owners and counters need nothing more, and stand in what is
sealed. Only an item's own key finds it: nothing here lists, scans or counts.
"""

from __future__ import annotations

from mcp_functions.store.blobs import Bucket, Missing
from mcp_functions.store.dynamodb import DynamoDb, Refused, make_call
from mcp_functions.store.items import Conflict, Item, ItemTooLarge, Key, Table, Unreadable
from mcp_functions.store.sealed import SealedTable
from mcp_functions.store.seals import BLOB_LABEL, LABEL, envelope

__all__ = [
    "BLOB_LABEL", "LABEL", "Bucket", "Conflict", "DynamoDb", "Item", "ItemTooLarge", "Key", "Missing", "Refused",
    "SealedTable", "Table", "Unreadable", "envelope", "make_call",
]  # fmt: skip
