"""One DynamoDB table for data that outlives a request: tasks, and which states of a conversation were used already.

An item has a key, a version and an expiry time; its payload is sealed (encrypted and authenticated) and bound to all
three. Every write names the version that it replaces, so one of two writers fails. Tasks build their locks on that.
An item is found only by its key: this package never lists, scans or counts items.
"""

from __future__ import annotations

from mcp_functions.store.blobs import S3, BlobStore, Bucket, ObjectNotFound
from mcp_functions.store.dynamodb import DynamoDbTable, make_call
from mcp_functions.store.sealed_table import SealedTable
from mcp_functions.store.table import BLOB_LABEL, LABEL, Conflict, Item, ItemTooLarge, Key, UnreadableItem

__all__ = [
    "BLOB_LABEL", "LABEL", "S3", "BlobStore", "Bucket", "Conflict", "DynamoDbTable", "Item", "ItemTooLarge",
    "Key", "ObjectNotFound", "SealedTable", "UnreadableItem", "make_call",
]  # fmt: skip
