"""A DynamoDB table in memory, for tests, with the three operations that the toolkit calls.

It checks conditions and expression names as AWS does. Where AWS may behave in several ways, it takes the one that is
hardest for the toolkit: an expired item stays until the test calls `expire`, and a read without `ConsistentRead` gives
the item before the last write.
"""

import copy
import re
from collections.abc import Callable, Mapping
from operator import eq, le, lt
from threading import RLock
from typing import Any, Literal, NoReturn, TypeAlias

from mcp_functions.aws.errors import ClientError
from mcp_functions_harness.environment import TABLE

Fault: TypeAlias = Literal["throttled", "lost", "unanswered", "denied"] | None

OPERATIONS = ("GetItem", "PutItem", "DeleteItem")
KEY = "key"  # the attribute with the key of an item
WRONG_KEY = "The provided key element does not match the schema"  # AWS's own message
# Amazon DynamoDB developer guide, "Constraints"
MAX_KEY_BYTES = 2048
MAX_ITEM_BYTES = 400 * 1024
# A term of a condition: `attribute_not_exists(#key)`, or a comparison as in `#expires < :now`.
TERM = re.compile(r"attribute_not_exists\((?P<absent>[#\w]+)\)|(?P<name>[#\w]+) (?P<comparison>=|<=|<) (?P<value>:\w+)")
PLACEHOLDER = re.compile(r"[#:]\w+")
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "<=": le, "<": lt}
# The faults that a test may choose: AWS's error code, and the HTTP status (0: no response).
FAULTS = {
    "throttled": ("ThrottlingException", 400),  # the operation does not happen
    "lost": ("InternalServerError", 500),  # the operation happens, but its response is lost
    # the operation does not happen, and there is no response
    "unanswered": ("ReadTimeoutError", 0),
    "denied": ("AccessDeniedException", 400),  # the operation does not happen
}
# the members of a request with a condition
CONDITION = {"ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"}


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
        self.items: dict[str, dict[str, Any]] = {}
        self.calls: list[str] = []
        # the item before the last write, for inconsistent reads
        self._previous: dict[str, dict[str, Any]] = {}
        self._lock = RLock()

    def __call__(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one request.

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

    def _run(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        if operation not in OPERATIONS:
            _invalid(f"{operation} is none of {', '.join(OPERATIONS)}")
        if request.pop("TableName", None) != self.name:
            code = "ResourceNotFoundException"
            raise ClientError(code)
        if operation == "PutItem":
            item = request.pop("Item")
            if _size(item) > MAX_ITEM_BYTES:
                _invalid("Item size has exceeded the maximum allowed size")
            return self._write(_key(item), item, condition=request)
        key = _only_key(request.pop("Key"))
        if operation == "DeleteItem":
            return self._write(key, None, condition=request)
        items = self.items if request.get("ConsistentRead") else self._previous
        return {"Item": items[key]} if key in items else {}

    def _write(self, key: str, item: dict[str, Any] | None, *, condition: Mapping[str, Any]) -> dict[str, Any]:
        """Write an item, or delete it for None, if the condition holds for the stored item; a missing item is {}."""
        stored = self.items.get(key, {})
        if condition and not _holds(stored, condition):
            code = "ConditionalCheckFailedException"
            raise ClientError(code)
        self._previous.pop(key, None)
        if stored:
            self._previous[key] = stored
        if item is None:
            self.items.pop(key, None)
        else:
            self.items[key] = item
        return {}


def _holds(item: Mapping[str, Any], condition: Mapping[str, Any]) -> bool:
    """Tell whether a condition holds for an item. Its terms may be joined by OR; nothing else is supported."""
    if condition.keys() != CONDITION:
        _invalid(f"not supported: {', '.join(sorted(condition.keys() ^ CONDITION))}")
    expression = condition["ConditionExpression"]
    names, values = condition["ExpressionAttributeNames"], condition["ExpressionAttributeValues"]
    used = set(PLACEHOLDER.findall(expression))
    defined = {*names, *values}
    if used != defined:
        _invalid(f"unused or undefined in expressions: {', '.join(sorted(used ^ defined))}")
    return any(_term_holds(item, term, names, values) for term in expression.split(" OR "))


def _term_holds(item: Mapping[str, Any], term: str, names: Mapping[str, str], values: Mapping[str, Any]) -> bool:
    """Tell whether one term holds for an item; the names and values are those of the request."""
    parsed = TERM.fullmatch(term)
    if parsed is None:
        _invalid(f"not understood: {term}")
    name = parsed["absent"] or parsed["name"]
    if not name.startswith("#"):
        _invalid(f"{name} may be one of DynamoDB's own words: write #{name}")
    attribute = item.get(names[name])
    if parsed["absent"]:
        return attribute is None
    value = values[parsed["value"]]
    # A comparison with a missing attribute, or with one of another type, is false.
    if attribute is None or attribute.keys() != value.keys():
        return False
    return COMPARISONS[parsed["comparison"]](_value(attribute), _value(value))


def _value(attribute: Mapping[str, str]) -> str | int:
    """Read an attribute value: `{"N": "7"}` is 7."""
    ((kind, value),) = attribute.items()
    return int(value) if kind == "N" else value


def _key(item: Mapping[str, Any]) -> str:
    """Return the key of an item, `{"key": {"S": "…"}}`, after a check as AWS makes it."""
    match item.get(KEY):
        case {"S": str(key), **others} if not others:
            size = len(key.encode())
        case _:
            _invalid(WRONG_KEY)
    if size == 0 or size > MAX_KEY_BYTES:
        _invalid(WRONG_KEY)
    return key


def _only_key(item: Mapping[str, Any]) -> str:
    """Return the key of an item that may have no other attribute."""
    if len(item) > 1:
        _invalid(WRONG_KEY)
    return _key(item)


def _size(item: Mapping[str, Any]) -> int:
    """Return the bytes of all names and values, about as AWS counts them."""
    size = 0
    for name, attribute in item.items():
        value = next(iter(attribute.values()))
        size += len(name.encode()) + len(str(value).encode())
    return size


def _invalid(message: str) -> NoReturn:
    """Raise DynamoDB's error for a wrong request. The exception has AWS's code; its cause has the message."""
    code = "ValidationException"
    raise ClientError(code) from ValueError(message)
