"""DynamoDB on this machine, by moto, a library that imitates AWS.

    HTTP request -> DynamoDbApi: operation and parameters -> Moto: runs the operation on its tables

An operation is a name, e.g. "PutItem"; its parameters and its result are dicts in DynamoDB's JSON.
"""

import json
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, NotRequired, TypeAlias, TypedDict

from mcp_functions.aws.errors import ClientError
from mcp_functions.protocol.wire_types import JSONObject
from mcp_functions_harness.doubles.moto_service import OK, Protocol
from mcp_functions_harness.environment import ACCOUNT, REGION
from mcp_functions_harness.loopback import HttpRequest, HttpResponse, read_object
from mcp_functions_harness.problems import not_installed

MAX_REQUEST = 1024 * 1024  # bytes; an item may have 400 KB
PROTOCOL = Protocol("dynamodb", "DynamoDB_20120810.", "1.0")
Operate: TypeAlias = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]


class TableParameters(TypedDict):
    """The parameters of `CreateTable`."""

    TableName: str
    BillingMode: str
    AttributeDefinitions: list[dict[str, str]]
    KeySchema: list[dict[str, str]]
    GlobalSecondaryIndexes: NotRequired[list[JSONObject]]
    LocalSecondaryIndexes: NotRequired[list[JSONObject]]


class DynamoDbApi:
    """Answers DynamoDB requests."""

    def __init__(self, tables: Operate) -> None:
        """Run the operations with `tables`, e.g. `Moto`."""
        self._tables = tables
        self._lock = Lock()  # `StoredTable` takes several steps, with no other request in between

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer one signed request."""
        if not request.is_signed:
            return _error_response(ClientError("MissingAuthenticationTokenException"))
        operation = request.header("x-amz-target").removeprefix(PROTOCOL.target)
        params = read_object(request.body or b"")
        if params is None:
            return _error_response(ClientError("SerializationException"))
        try:
            with self._lock:
                result = self._tables(operation, params)
            return PROTOCOL.response(OK, json.dumps(result))
        except (ValueError, AttributeError):  # moto expects another type in the parameters
            return _error_response(ClientError("SerializationException"))
        except ClientError as error:
            return _error_response(error)


class Moto:
    """DynamoDB with some tables, called with an operation and its parameters."""

    def __init__(self, *tables: TableParameters) -> None:
        """Create the tables.

        Raises:
            Problem: moto is not installed.
        """
        try:
            from moto.dynamodb.models import DynamoDBBackend
            from moto.dynamodb.responses import DynamoHandler
        except ModuleNotFoundError as error:
            raise not_installed(error, "local") from error

        class Handler(DynamoHandler):
            dynamodb_backend = DynamoDBBackend(REGION, ACCOUNT)  # moto's own is of the process

        self._handler = Handler
        self._lock = Lock()  # moto checks a condition, and then writes
        for table in tables:
            self("CreateTable", table)

    def __call__(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Run one operation.

        Raises:
            ClientError: the operation fails; the error has AWS's code.
        """
        with self._lock:
            status, body = PROTOCOL.ask(self._handler, operation, params)
        result: dict[str, Any] = json.loads(body)
        if status != OK:
            # "com.amazonaws…#Code"
            code = str(result.get("__type", "InternalServerError")).rpartition("#")[2]
            raise ClientError(code, status)
        return result


def table(name: str) -> TableParameters:
    """Return the parameters of `CreateTable` for the toolkit's table, as in template.yaml."""
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "key", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "key", "KeyType": "HASH"}],
    }


def _error_response(error: ClientError) -> HttpResponse:
    return PROTOCOL.error(error.status or 500, f"{PROTOCOL.target}#{error.code}", error.code)
