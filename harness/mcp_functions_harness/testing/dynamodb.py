"""A DynamoDB table in memory, for tests, with the three operations that the toolkit calls.

It checks conditions and expression names as AWS does. Where AWS may behave in several ways, it takes the one that is
hardest for the toolkit: an expired item stays until the test calls `expire`, and a read without `ConsistentRead` gives
the item before the last write.
"""

import copy
from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any, Literal, TypeAlias

from mcp_functions.aws.errors import ClientError
from mcp_functions_harness.environment import TABLE
from mcp_functions_harness.testing import conditions
from mcp_functions_harness.testing.conditions import Item, invalid

Fault: TypeAlias = Literal["throttled", "lost", "unanswered", "denied"] | None

OPERATIONS = ("GetItem", "PutItem", "DeleteItem")
KEY = "key"  # the attribute with the key of an item
WRONG_KEY = "The provided key element does not match the schema"  # AWS's own message
MAX_KEY_BYTES = 2048  # Amazon DynamoDB developer guide, "Constraints"
MAX_ITEM_BYTES = 400 * 1024
# The faults that a test may choose: AWS's error code, and the HTTP status (0: no response). A lost operation happens,
# and its response is lost. The others do not happen.
FAULTS = {
    "throttled": ("ThrottlingException", 400),
    "lost": ("InternalServerError", 500),
    "unanswered": ("ReadTimeoutError", 0),
    "denied": ("AccessDeniedException", 400),
}


class MemoryTable:
    """One table. It is called as DynamoDB is: with an operation, and a request in DynamoDB's own JSON.

    Attributes:
        items: the items by key, after the last write.
        calls: every operation, in order.
        weather: decides about faults. It is called with the name of each operation, before the operation, and returns a
            key of `FAULTS`, or None.
    """

    def __init__(self, name: str = TABLE, weather: Callable[[str], Fault] = lambda _operation: None) -> None:
        """Start empty."""
        self.name = name
        self.weather = weather
        self.items: dict[str, Item] = {}
        self.calls: list[str] = []
        self._previous: dict[str, Item] = {}  # before the last write, for inconsistent reads
        self._lock = RLock()

    def __call__(self, operation: str, request: Mapping[str, Any]) -> dict[str, Item]:
        """Answer one request. Only `GetItem` returns something: the item, if there is one.

        Raises:
            ClientError: with AWS's code.
        """
        with self._lock:
            self.calls.append(operation)
            fault = self.weather(operation)
            if fault and fault != "lost":
                raise ClientError(*FAULTS[fault])
            response = self._run(operation, copy.deepcopy(dict(request)))
            if fault == "lost":
                raise ClientError(*FAULTS[fault])
            return copy.deepcopy(response)

    def expire(self, now: float) -> None:
        """Delete expired items, as AWS does at some later time."""
        with self._lock:
            expired = [key for key, item in self.items.items() if int(item["expires"]["N"]) < now]
            for key in expired:
                self._previous.pop(key, None)
                del self.items[key]

    def _run(self, operation: str, request: dict[str, Any]) -> dict[str, Item]:
        if operation not in OPERATIONS:
            raise invalid(f"{operation} is none of {', '.join(OPERATIONS)}")
        if request.pop("TableName", None) != self.name:
            raise ClientError("ResourceNotFoundException")
        if operation == "PutItem":
            item = request.pop("Item")
            if _size(item) > MAX_ITEM_BYTES:
                raise invalid("Item size has exceeded the maximum allowed size")
            return self._write(_key(item), item, condition=request)
        key = _only_key(request.pop("Key"))
        if operation == "DeleteItem":
            return self._write(key, None, condition=request)
        items = self.items if request.get("ConsistentRead") else self._previous
        return {"Item": items[key]} if key in items else {}

    def _write(self, key: str, item: Item | None, *, condition: Mapping[str, Any]) -> dict[str, Item]:
        """Write an item, or delete it for None, if the condition holds for the stored item."""
        stored = self.items.get(key, {})
        if not conditions.holds(stored, condition):
            raise ClientError("ConditionalCheckFailedException")
        self._previous.pop(key, None)
        if stored:
            self._previous[key] = stored
        if item is None:
            self.items.pop(key, None)
        else:
            self.items[key] = item
        return {}


def _key(item: Item) -> str:
    """Return the key of an item, `{"key": {"S": "…"}}`, after a check as AWS makes it."""
    match item.get(KEY):
        case {"S": str(key), **others} if not others and 0 < len(key.encode()) <= MAX_KEY_BYTES:
            return key
    raise invalid(WRONG_KEY)


def _only_key(item: Item) -> str:
    """Return the key of an item that may have no other attribute."""
    if len(item) > 1:
        raise invalid(WRONG_KEY)
    return _key(item)


def _size(item: Item) -> int:
    """Return the bytes of all names and values, about as AWS counts them."""
    size = 0
    for name, attribute in item.items():
        value = next(iter(attribute.values()))
        size += len(name.encode()) + len(str(value).encode())
    return size
