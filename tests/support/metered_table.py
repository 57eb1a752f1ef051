"""A table in memory that counts the units that DynamoDB bills: for reads by 4 KB, and for writes by 1 KB.

AWS, "DynamoDB read and write operations", is quoted beside each rule.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mcp_functions.aws.errors import ClientError
from mcp_functions_harness.testing.dynamodb import MemoryTable

if TYPE_CHECKING:
    from collections.abc import Mapping

REJECTED = "ConditionalCheckFailedException"


class MeteredTable(MemoryTable):
    """A table with a meter.

    Attributes:
        reads: the read units since `reset`.
        writes: the write units since `reset`.
        conflicts: how many of the next writes fail, as if another writer had been faster.
    """

    def __init__(self) -> None:
        super().__init__()
        self.conflicts = 0
        self.reset()

    def reset(self) -> None:
        """Count from zero."""
        self.reads = 0.0
        self.writes = 0

    def __call__(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Bill an operation, and run it."""
        key = request.get("Key") or {"key": request["Item"]["key"]}
        before = self.items.get(key["key"]["S"], {})
        if operation == "GetItem":
            # "one strongly consistent read … of an item up to 4 KB in size", and half of it for others
            self.reads += units(before, 4096) / (1 if request.get("ConsistentRead") else 2)
            return super().__call__(operation, request)
        if operation not in ("PutItem", "DeleteItem"):  # a transaction, for example, costs twice
            message = f"{operation} has no price here"
            raise NotImplementedError(message)
        try:
            answer = self._write_if_first(operation, request)
        except ClientError as error:
            if error.code == REJECTED:
                # A rejected write: "dependent on the size of the existing item (or a minimum of 1)"
                self.writes += units(before, 1024)
            raise
        # "the larger of the two" items for `PutItem`; `DeleteItem` costs what its item has
        self.writes += max(units(before, 1024), units(request.get("Item", {}), 1024))
        return answer

    def _write_if_first(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Run a write, unless another writer was faster."""
        if self.conflicts and "ConditionExpression" in request:
            self.conflicts -= 1
            raise ClientError(REJECTED)
        return super().__call__(operation, request)


def units(item: Mapping[str, Any], size: int) -> int:
    """Return the units of an item; an absent item costs one."""
    return max(1, math.ceil(item_bytes(item) / size))


def item_bytes(item: Mapping[str, Any]) -> int:
    """Return the bytes of an item: "the sum of the lengths of its attribute names and values"."""
    total = 0
    for name, attribute in item.items():
        ((kind, value),) = attribute.items()
        # a number: "approximately (1 byte per two significant digits) + (1 byte)"
        total += len(name.encode()) + (math.ceil(len(value) / 2) + 1 if kind == "N" else len(value.encode()))
    return total
