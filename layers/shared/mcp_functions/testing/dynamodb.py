"""A DynamoDB table in memory, for tests: it refuses what AWS refuses, and fails when told.

It knows the three operations that the toolkit uses, checks conditions as AWS does, down to a name that an expression
does not use, and forgets nothing that has expired before it is told to: AWS may take days. A read that does not ask
for consistency is a write behind.
"""

from __future__ import annotations

import copy
import re
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

from mcp_functions.local.environment import TABLE
from mcp_functions.store import DynamoDbError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Fault: TypeAlias = Literal["throttled", "lost", "unanswered", "denied"] | None

KEY = "key"
MAX_KEY_BYTES = 2048  # "the minimum length of a partition key value is 1 byte. The maximum length is 2048 bytes"
MAX_ITEM_BYTES = 400 * 1024
TERM = re.compile(r"attribute_not_exists\((?P<absent>[#\w]+)\)|(?P<name>[#\w]+) (?P<compared>=|<=|<) (?P<value>:\w+)")
PLACEHOLDER = re.compile(r"[#:]\w+")
COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda found, wanted: bool(found == wanted),
    "<=": lambda found, wanted: bool(found <= wanted),
    "<": lambda found, wanted: bool(found < wanted),
}
FAULTS = {
    "throttled": ("ThrottlingException", 400),  # refused before anything happened
    "lost": ("InternalServerError", 500),  # done, and then not said
    "unanswered": ("ReadTimeoutError", 0),  # not done, and not said either
    "denied": ("AccessDeniedException", 400),
}


class MemoryTable:
    """One table. It is called as DynamoDB is: an operation, and a request in DynamoDB's own JSON.

    Attributes:
        items: by key, as the last write left them.
        calls: every operation, in the order in which it came.
        weather: asked before each call what goes wrong with it: "throttled"; "lost", which happens and is not said;
            "unanswered", which does not happen; "denied"; or None.

    """

    def __init__(self, name: str = TABLE, weather: Callable[[str], Fault] = lambda _operation: None) -> None:
        """Begin empty."""
        self.name, self.weather = name, weather
        self.items: dict[str, dict[str, Any]] = {}
        self.calls: list[str] = []
        self._before: dict[str, dict[str, Any]] = {}  # each write's predecessor, for readers who do not insist
        self._lock = RLock()

    def __call__(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one request.

        Raises:
            DynamoDbError: with AWS's code.

        """
        with self._lock:
            self.calls.append(operation)
            fault = self.weather(operation)
            if fault and fault != "lost":
                raise DynamoDbError(*FAULTS[fault])
            answer = self._do(operation, copy.deepcopy(dict(request)))
            if fault:
                raise DynamoDbError(*FAULTS[fault])
            return copy.deepcopy(answer)

    def expire(self, now: float) -> None:
        """Delete what has ended, as AWS does at some later time."""
        with self._lock:
            ended = [key for key, item in self.items.items() if int(item["expires"]["N"]) < now]
            for key in ended:
                self._before.pop(key, None)
                del self.items[key]

    def _do(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        operations: dict[str, Callable[..., dict[str, Any]]] = {
            "GetItem": self._get,
            "PutItem": self._put,
            "DeleteItem": self._delete,
        }
        if operation not in operations:
            _invalid(f"{operation} is none of {', '.join(operations)}")
        if request.pop("TableName", None) != self.name:
            code = "ResourceNotFoundException"
            raise DynamoDbError(code)
        return operations[operation](**request)

    def _get(self, Key: Mapping[str, Any], *, ConsistentRead: bool = False) -> dict[str, Any]:  # noqa: N803 - AWS's
        key = _key(Key, alone=True)
        found = (self.items if ConsistentRead else self._before).get(key)
        return {"Item": found} if found else {}

    def _put(
        self,
        Item: dict[str, Any],  # noqa: N803 - AWS's name, as below
        ReturnValuesOnConditionCheckFailure: str = "NONE",  # noqa: N803
        **condition: Any,  # noqa: ANN401 - what a condition consists of
    ) -> dict[str, Any]:
        key = _key(Item, alone=False)
        if _size(Item) > MAX_ITEM_BYTES:
            _invalid("Item size has exceeded the maximum allowed size")
        self._check(key, condition, told=ReturnValuesOnConditionCheckFailure == "ALL_OLD")
        self._keep_before(key)
        self.items[key] = Item
        return {}

    def _delete(self, Key: Mapping[str, Any], **condition: Any) -> dict[str, Any]:  # noqa: ANN401, N803
        key = _key(Key, alone=True)
        self._check(key, condition, told=False)
        self._keep_before(key)
        self.items.pop(key, None)
        return {}

    def _keep_before(self, key: str) -> None:
        self._before.pop(key, None)
        if key in self.items:
            self._before[key] = self.items[key]

    def _check(self, key: str, condition: Mapping[str, Any], *, told: bool) -> None:
        found = self.items.get(key)
        if condition and not _holds(found or {}, **condition):
            code = "ConditionalCheckFailedException"
            raise DynamoDbError(code, 400, copy.deepcopy(found) if told else None)


def _holds(
    item: Mapping[str, Any],
    ConditionExpression: str,  # noqa: N803 - AWS's name, as below
    ExpressionAttributeNames: Mapping[str, str],  # noqa: N803
    ExpressionAttributeValues: Mapping[str, Any],  # noqa: N803
) -> bool:
    """Say whether a condition holds. Of the language, only OR of single terms is known here."""
    used, given = set(PLACEHOLDER.findall(ConditionExpression)), {*ExpressionAttributeNames, *ExpressionAttributeValues}
    if used != given:
        _invalid(f"unused or undefined in expressions: {', '.join(sorted(used ^ given))}")
    return any(
        _term(item, term, ExpressionAttributeNames, ExpressionAttributeValues)
        for term in ConditionExpression.split(" OR ")
    )


def _term(item: Mapping[str, Any], term: str, names: Mapping[str, str], values: Mapping[str, Any]) -> bool:
    read = TERM.fullmatch(term)
    if read is None:
        _invalid(f"not understood: {term}")
    name = read["absent"] or read["name"]
    if not name.startswith("#"):
        _invalid(f"{name} may be one of DynamoDB's own words: write #{name}")
    found = item.get(names[name])
    if read["absent"]:
        return found is None
    wanted = values[read["value"]]
    # "a comparison with an attribute that does not exist, or is of another type, is false"
    if found is None or found.keys() != wanted.keys():
        return False
    return COMPARED[read["compared"]](_value(found), _value(wanted))


def _value(attribute: Mapping[str, str]) -> str | int:
    ((kind, value),) = attribute.items()
    return int(value) if kind == "N" else value


def _key(item: Mapping[str, Any], *, alone: bool) -> str:
    match item.get(KEY):
        case {"S": str(key), **rest} if not rest and 1 <= len(key.encode()) <= MAX_KEY_BYTES:
            if not alone or len(item) == 1:
                return key
    return _invalid("The provided key element does not match the schema")


def _size(item: Mapping[str, Any]) -> int:
    return sum(len(name.encode()) + len(str(next(iter(value.values()))).encode()) for name, value in item.items())


def _invalid(message: str) -> NoReturn:
    code = "ValidationException"
    raise DynamoDbError(code) from ValueError(message)
