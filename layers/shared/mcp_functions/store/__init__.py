"""One table for data that outlives a request: tasks, and the used rounds of a conversation.

An item has a key, a version and an expiry time; its payload is sealed and bound to all three. Every write names the
version that it replaces, so one of two writers fails. Leases, owners and counters need no other mechanism.
An item is found only by its key: this package never lists, scans or counts items.
"""

from __future__ import annotations

from mcp_functions.store.blobs import Bucket, ObjectNotFound
from mcp_functions.store.dynamodb import DynamoDbError, DynamoDbTable, make_call
from mcp_functions.store.item_seal import BLOB_LABEL, LABEL
from mcp_functions.store.sealed_table import SealedTable
from mcp_functions.store.table import Conflict, Item, ItemTooLarge, Key, UnreadableItem

__all__ = [
    "BLOB_LABEL", "LABEL", "Bucket", "Conflict", "DynamoDbError", "DynamoDbTable", "Item", "ItemTooLarge", "Key",
    "ObjectNotFound", "SealedTable", "UnreadableItem", "make_call",
]  # fmt: skip
