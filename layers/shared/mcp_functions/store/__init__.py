"""One DynamoDB table for data that outlives a request: tasks, and which states of a conversation were used already.

An item has a key, a version and an expiry time; its payload is sealed (encrypted and authenticated) and bound to all
three. Every write names the version that it replaces, so one of two writers fails. Tasks build their locks on that.
An item is found only by its key: this package never lists, scans or counts items.
"""

from __future__ import annotations

from mcp_functions.store.blobs import BlobStore, Bucket, ObjectNotFound
from mcp_functions.store.dynamodb import DynamoDbError, DynamoDbTable, make_call
from mcp_functions.store.item_seal import BLOB_LABEL, LABEL
from mcp_functions.store.sealed_table import SealedTable
from mcp_functions.store.table import Conflict, Item, ItemTooLarge, Key, UnreadableItem

__all__ = [
    "BLOB_LABEL", "LABEL", "BlobStore", "Bucket", "Conflict", "DynamoDbError", "DynamoDbTable", "Item", "ItemTooLarge",
    "Key", "ObjectNotFound", "SealedTable", "UnreadableItem", "make_call",
]  # fmt: skip
