"""A table of sealed items with a clock and a fake KMS, for the tests of the store."""

from __future__ import annotations

from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

from mcp_functions import store as tables
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.token_format import MAX_TOKEN_CHARS
from mcp_functions.store import DynamoDbTable, Key, SealedTable
from mcp_functions_harness.doubles import dynamodb as local
from mcp_functions_harness.doubles.dynamodb import Moto
from mcp_functions_harness.environment import TABLE
from tests.support.strict_kms import SCOPE, Clock, StrictKms, make_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.seal.keyring import Keyring
    from mcp_functions.store.dynamodb import Call


DAY = 86_400
KEY = Key("task", "update_work_item.0123456789", "principal-of-43-characters-as-base64url-has")
OTHER_PRINCIPALS_KEY = KEY._replace(principal="another-of-43-characters-as-base64url-hasit")
SERVICE = SCOPE.service


@cache
def moto_table() -> Moto:
    return Moto(local.table(TABLE))


class Backend:
    """A table and the clock of all its users. Each call of `open` acts as a new container."""

    def __init__(self, call: Call) -> None:
        self.call, self.clock, self.kms = call, Clock(), StrictKms()
        self.arn = self.kms.create_key()

    def open(self, *, scope: Any = SCOPE, max_age: int = DAY, keys: Keyring | None = None) -> SealedTable:  # noqa: ANN401
        keys = keys or make_keys(self.kms, self.arn, scope=scope, clock=self.clock)
        seal = Envelope(keys, label=tables.LABEL, max_chars=MAX_TOKEN_CHARS, max_age=max_age)
        return SealedTable(DynamoDbTable(TABLE, lambda: self.call), seal, SERVICE, max_age=max_age, now=self.clock)

    def soon(self, seconds: int = 3600) -> int:
        return int(self.clock()) + seconds

    def stored(self, key: Key = KEY) -> dict[str, Any]:
        named = {"S": f"{SERVICE}/{key.kind}/{key.principal}/{key.id}"}
        found = self.call("GetItem", {"TableName": TABLE, "Key": {"key": named}, "ConsistentRead": True})
        return dict(found["Item"])

    def put(self, item: Mapping[str, Any]) -> None:
        self.call("PutItem", {"TableName": TABLE, "Item": item})


def first(fault: str, *, of: str) -> Callable[[str], Any]:
    """Let the first call of an operation fail."""
    seen = count()
    return lambda operation: fault if operation == of and not next(seen) else None
