"""The rows of a DynamoDB table, found by their key. A write has a condition: the table still has the expected version.

A write without a response may have happened. So each write has a nonce: a random text that the row keeps. If a write
fails, and the row in the table has its nonce, then an earlier attempt of this write has succeeded. A deletion needs no
nonce: it succeeds also if the row is gone already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from mcp_functions import aws
from mcp_functions.aws.errors import read_failure
from mcp_functions.protocol.errors import McpError, Misconfigured, TemporarilyUnavailable, service_error
from mcp_functions.seal.resets import PerProcess
from mcp_functions.store.table import Conflict, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    # It takes an operation and a request in DynamoDB's JSON, and returns the response.
    Call = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
    Attributes = dict[str, dict[str, str]]  # a row in DynamoDB's JSON: "S" is a text, "N" a number

    class Condition(TypedDict):
        """The parameters of a conditional write."""

        ConditionExpression: str
        ExpressionAttributeNames: dict[str, str]
        ExpressionAttributeValues: Attributes


# AWS, "Constraints in Amazon DynamoDB": "The maximum item size in DynamoDB is 400 KB". Names of attributes count too.
MAX_BYTES = 400_000


class DynamoDbTable:
    """The rows of one table. Every method may also raise TemporarilyUnavailable and Misconfigured."""

    def __init__(self, name: str, make_call: Callable[[], Call]) -> None:
        """Use a table; nothing is sent. `make_call` makes the client of AWS, at the first request."""
        self._name = name
        self._call = PerProcess(make_call)

    def read(self, key: str) -> Row | None:
        """Return a row as the last write left it (strongly consistent); None if there is none."""
        attributes = self._send("GetItem", Key={"key": {"S": key}}, ConsistentRead=True)
        return row_of(attributes) if attributes else None

    def write(self, row: Row, *, replaced_version: int | None, now: int) -> None:
        """Write a row, if the table still has the version that it replaces: None if it must be absent or expired.

        Raises:
            Conflict: the table has another version.
            TemporarilyUnavailable: the table does not answer. The write may have happened.
        """
        if replaced_version is None:
            # DynamoDB deletes expired items only after days, so an expired row counts as absent.
            expression = "attribute_not_exists(#key) OR #expires <= :now"
            condition = _condition(expression, names=["key", "expires"], values={"now": now})
        else:
            condition = _condition("#version = :version", names=["version"], values={"version": replaced_version})
        try:
            self._send("PutItem", Item=_item(row), **condition)
        except (Conflict, TemporarilyUnavailable):
            # The write may have happened in spite of the error. The client of AWS repeats a request without a response:
            # if DynamoDB executed the first request, the second one fails on the condition.
            stored = self.read(row.key)
            if stored is None or stored.nonce != row.nonce:
                raise

    def delete(self, key: str, version: int) -> None:
        """Delete a row of this version, if it exists; Conflict if the table holds another version."""
        expression = "attribute_not_exists(#key) OR #version = :version"
        condition = _condition(expression, names=["key", "version"], values={"version": version})
        self._send("DeleteItem", Key={"key": {"S": key}}, **condition)

    def _send(self, operation: str, **request: object) -> Attributes | None:
        """Send a request, and turn the errors of AWS into those of this package. Only a read has a row."""
        try:
            call = self._call()
            return call(operation, {"TableName": self._name, **request}).get("Item")
        except McpError:
            raise
        except Exception as error:  # noqa: BLE001 - botocore makes its exceptions at run time
            failure = read_failure(error)
            # `from None`: a logged traceback would show AWS's error, which may quote the item.
            if failure.code == "ConditionalCheckFailedException":
                raise Conflict from None
            raise service_error(service="table", failure=failure) from None


LIMITS = aws.CallLimits(connect_seconds=0.5, read_seconds=1.0, attempts=3)
METHODS = {"GetItem": "get_item", "PutItem": "put_item", "DeleteItem": "delete_item"}


def make_call() -> Call:
    """Return a function that sends requests to DynamoDB."""
    client = aws.make_client("dynamodb", LIMITS)
    return lambda operation, request: getattr(client, METHODS[operation])(**request)


def _condition(expression: str, *, names: Sequence[str], values: Mapping[str, int]) -> Condition:
    """Return a condition, whose expression has `#name` for an attribute, and `:name` for a number of `values`."""
    return {
        "ConditionExpression": expression,
        "ExpressionAttributeNames": {f"#{name}": name for name in names},
        "ExpressionAttributeValues": {f":{name}": {"N": str(number)} for name, number in values.items()},
    }


def _item(row: Row) -> Attributes:
    """Write a row as DynamoDB's JSON."""
    return {
        "key": {"S": row.key},
        "version": {"N": str(row.version)},
        "expires": {"N": str(row.expires)},
        "nonce": {"S": row.nonce},
        "sealed": {"S": row.sealed},
    }


def row_of(item: Attributes) -> Row:
    """Read a row from DynamoDB's JSON; Misconfigured if another program wrote the item."""
    try:
        return Row(
            key=item["key"]["S"],
            version=int(item["version"]["N"]),
            expires=int(item["expires"]["N"]),
            nonce=item["nonce"]["S"],
            sealed=item["sealed"]["S"],
        )
    except (KeyError, TypeError, ValueError):
        raise Misconfigured(reason="table:NotOurItem") from None  # the cause could quote the item
