"""Rows of one DynamoDB table: read, written and removed by their key, each write on a condition.

The only code that knows DynamoDB's words. A write that nobody answered may have happened: it carries a nonce, so that
whoever asks again, the client or this module, knows its own write from somebody else's.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions import aws
from mcp_functions.protocol.errors import McpError, Misconfigured, TemporarilyUnavailable
from mcp_functions.seal.data_keys import register_reset
from mcp_functions.store.items import Conflict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Call = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]  # operation, request in DynamoDB's JSON -> response

MAX_BYTES = 400_000  # "The maximum item size in DynamoDB is 400 KB", names of attributes included; moto's are shorter

# What each attribute is called in the table, and in expressions (where some names are DynamoDB's own words).
NAMES = {"#key": "key", "#version": "version", "#expires": "expires"}
OUTAGE = {
    "ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException", "Throttling",
    "LimitExceededException", "InternalServerError", "InternalFailure", "ServiceUnavailable", "RequestTimeout",
    "ReplicatedWriteConflictException", "TransactionConflictException", "ExpiredTokenException", "RequestExpired",
    "RequestTimeoutException", "ServiceUnavailableException",
}  # fmt: skip
UNSENT = {"NoCredentialsError", "PartialCredentialsError", "NoRegionError", "ParamValidationError"}
UNANSWERED, BAD_REQUEST, SERVER_FAULT = 0, 400, 500
CONNECT_SECONDS, READ_SECONDS, ATTEMPTS = 0.5, 1.0, 3


class Row(NamedTuple):
    """An item as the table holds it: its `expires` is in unix seconds, its `sealed` says the rest."""

    key: str
    version: int
    expires: int
    nonce: str
    sealed: str

    @property
    def size(self) -> int:
        """Bytes that DynamoDB counts, or one or two more: names and values as UTF-8, numbers by their digits."""
        numbers = 2 * sum(isinstance(part, int) for part in self)
        return numbers + sum(len(part.encode()) for part in [*self._fields, *map(str, self)])


class Refused(Exception):
    """DynamoDB's answer if it is no yes: its `code`, HTTP's `status` (0: no answer at all), and the item in the way."""

    def __init__(self, code: str, status: int = BAD_REQUEST, item: Mapping[str, Any] | None = None) -> None:
        """Remember what it said."""
        super().__init__(code)
        self.code, self.status, self.item = code, status, item


class DynamoDb:
    """The rows of one table."""

    def __init__(self, name: str, make_call: Callable[[], Call]) -> None:
        """Remember the table; no call is made, no client is built.

        Args:
            name: of the table.
            make_call: builds what asks DynamoDB, and raises `Refused` if that says no.

        """
        self._name, self._make_call = name, make_call
        self._call: Call | None = None
        register_reset(self)

    def reset(self) -> None:
        """Forget the client: its sockets and credentials belong to the process that made them."""
        self._call = None

    def read(self, key: str) -> Row | None:
        """Read a row as the last write left it.

        Raises:
            TemporarilyUnavailable, Misconfigured: as `Table` says.

        """
        try:
            answer = self._ask("GetItem", Key={"key": {"S": key}}, ConsistentRead=True)
        except Refused as refused:
            raise _verdict(refused) from None
        return row_of(answer["Item"]) if answer.get("Item") else None

    def write(self, row: Row, *, over: int | None, now: int) -> None:
        """Write a row.

        Args:
            row: with a nonce that no other write has.
            over: the version that it replaces; None: there must be none, or one that has ended.
            now: unix seconds.

        Raises:
            Conflict: the table holds another version.
            TemporarilyUnavailable, Misconfigured: as `Table` says.

        """
        condition = _absent(now) if over is None else _version(over)
        try:
            self._ask("PutItem", Item=_item(row), ReturnValuesOnConditionCheckFailure="ALL_OLD", **condition)
        except Refused as refused:
            self._explain(row, refused)

    def remove(self, key: str, version: int) -> None:
        """Remove a row of this version; one that is gone already is fine.

        Raises:
            Conflict: the table holds another version.
            TemporarilyUnavailable, Misconfigured: as `Table` says.

        """
        condition = _version(version)
        condition["ConditionExpression"] = f"attribute_not_exists(#key) OR {condition['ConditionExpression']}"
        condition["ExpressionAttributeNames"] |= {"#key": "key"}
        try:
            self._ask("DeleteItem", Key={"key": {"S": key}}, **condition)
        except Refused as refused:
            raise _verdict(refused) from None

    def _explain(self, row: Row, refused: Refused) -> None:
        """Find out whether a refused write has happened all the same; return if it has.

        A client repeats a request that nobody answered. If the first one came through, its repetition fails on the
        condition; and if none was answered, nobody knows. In both cases the table does.
        """
        verdict = _verdict(refused)
        if isinstance(verdict, Misconfigured):
            raise verdict
        try:
            found = row_of(refused.item) if refused.item else self.read(row.key)
        except McpError:
            raise verdict from None
        if not found or found.nonce != row.nonce:
            raise verdict

    def _ask(self, operation: str, **request: object) -> Mapping[str, Any]:
        call = self._call = self._call or self._make_call()
        return call(operation, {"TableName": self._name, **request})


def make_call() -> Call:
    """Build what asks DynamoDB, within API Gateway's time: our own where the environment says all it needs."""
    target = aws.find(os.environ, "dynamodb")
    if target is None:
        return boto3_call()
    from mcp_functions.aws.clients import DynamoDb as Client  # noqa: PLC0415 - imported at init, where it is needed
    from mcp_functions.aws.errors import ClientError, Unanswered  # noqa: PLC0415

    client = Client(target, connect_seconds=CONNECT_SECONDS, read_seconds=READ_SECONDS, attempts=ATTEMPTS)

    def call(operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return client.ask(operation, request)
        except ClientError as error:
            raise _refused(error.response) from None
        except Unanswered as error:
            raise Refused(type(error).__name__, UNANSWERED) from None

    return call


def boto3_call() -> Call:
    """Build boto3's, where the environment does not say all that our own needs."""
    from botocore import xform_name  # noqa: PLC0415 - only where our own calls will not do
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    from mcp_functions.aws import by_boto3  # noqa: PLC0415

    client = by_boto3.client("dynamodb", connect_seconds=CONNECT_SECONDS, read_seconds=READ_SECONDS, attempts=ATTEMPTS)

    def call(operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            answer: Mapping[str, Any] = getattr(client, xform_name(operation))(**request)
        except ClientError as error:
            raise _refused(dict(error.response)) from None
        except (BotoCoreError, OSError) as error:
            name = type(error).__name__
            raise Refused(name, BAD_REQUEST if name in UNSENT else UNANSWERED) from None
        return answer

    return call


def _refused(said: Mapping[str, Any]) -> Refused:
    status = said.get("ResponseMetadata", {}).get("HTTPStatusCode", UNANSWERED)
    return Refused(str(said.get("Error", {}).get("Code", "Unknown")), status, said.get("Item"))


def _verdict(refused: Refused) -> Exception:
    """Sort what DynamoDB says: another's write, its own day, or the operator's work."""
    if refused.code == "ConditionalCheckFailedException":
        return Conflict()
    reason = f"table:{refused.code}"
    if refused.code in OUTAGE or refused.status >= SERVER_FAULT or refused.status == UNANSWERED:
        return TemporarilyUnavailable(reason)
    return Misconfigured(reason)


def _absent(now: int) -> dict[str, Any]:
    # "DynamoDB automatically deletes expired items within a few days of their expiration time": until then, not here
    return {
        "ConditionExpression": "attribute_not_exists(#key) OR #expires <= :now",
        "ExpressionAttributeNames": {"#key": "key", "#expires": "expires"},
        "ExpressionAttributeValues": {":now": {"N": str(now)}},
    }


def _version(version: int) -> dict[str, Any]:
    return {
        "ConditionExpression": "#version = :version",
        "ExpressionAttributeNames": {"#version": "version"},
        "ExpressionAttributeValues": {":version": {"N": str(version)}},
    }


def _item(row: Row) -> dict[str, Any]:
    return {
        "key": {"S": row.key},
        "version": {"N": str(row.version)},
        "expires": {"N": str(row.expires)},
        "nonce": {"S": row.nonce},
        "sealed": {"S": row.sealed},
    }


def row_of(item: Mapping[str, Any]) -> Row:
    """Read a row from DynamoDB JSON."""
    try:
        return Row(
            key=item["key"]["S"],
            version=int(item["version"]["N"]),
            expires=int(item["expires"]["N"]),
            nonce=item["nonce"]["S"],
            sealed=item["sealed"]["S"],
        )
    except (KeyError, TypeError, ValueError):
        reason = "table:NotOurItem"
        raise Misconfigured(reason) from None
