"""DynamoDB on this machine: moto, a library that imitates AWS, with the toolkit's table and the author's own.

`DynamoDbApi` answers HTTP requests; `Moto` runs one operation with a request in DynamoDB's JSON.
"""

from __future__ import annotations

import json
from threading import Lock
from typing import TYPE_CHECKING, Any

from mcp_functions.local.doubles.moto_service import OK, Protocol
from mcp_functions.local.environment import ACCOUNT, REGION
from mcp_functions.local.problems import not_installed
from mcp_functions.store import DynamoDbError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.local.loopback import HttpRequest, HttpResponse
    from mcp_functions.store.dynamodb import Call

MAX_REQUEST = 1024 * 1024  # bytes; an item may have 400 KB
PROTOCOL = Protocol("dynamodb", "DynamoDB_20120810.", "1.0")


class DynamoDbApi:
    """Answers DynamoDB requests."""

    def __init__(self, tables: Call) -> None:
        """Answer for these tables."""
        self._tables = tables
        self._lock = Lock()

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer one signed request."""
        if not request.is_signed:
            return _error_response(DynamoDbError("MissingAuthenticationTokenException"))
        operation = request.header("x-amz-target").removeprefix(PROTOCOL.target)
        try:
            params = json.loads(request.body or b"")
            if not isinstance(params, dict):
                return _error_response(DynamoDbError("SerializationException"))
            with self._lock:  # moto checks a condition and then writes: no other request may run in between
                return PROTOCOL.response(OK, json.dumps(self._tables(operation, params)))
        except (ValueError, AttributeError):
            return _error_response(DynamoDbError("SerializationException"))
        except DynamoDbError as error:
            return _error_response(error)


class Moto:
    """Tables of moto. They are called like DynamoDB: with an operation, and a request in DynamoDB's JSON."""

    def __init__(self, *tables: Mapping[str, Any]) -> None:
        """Make the tables in a separate backend, so that two harnesses share nothing.

        Args:
            tables: requests of `CreateTable`.

        Raises:
            Problem: moto is not installed.
        """
        try:
            from moto.dynamodb.models import DynamoDBBackend  # noqa: PLC0415 - takes a second to import
            from moto.dynamodb.responses import DynamoHandler  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise not_installed(error, "local") from error

        class Handler(DynamoHandler):
            # moto's own is a property that returns one backend for the whole process, which harnesses would share
            dynamodb_backend = DynamoDBBackend(REGION, ACCOUNT)

        self._handler = Handler
        for table in tables:
            self("CreateTable", table)

    def __call__(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one request.

        Raises:
            DynamoDbError: an error, with AWS's code.
        """
        status, body = PROTOCOL.ask(self._handler, operation, request)
        answer: dict[str, Any] = json.loads(body)
        if status != OK:
            code = str(answer.get("__type", "InternalServerError")).rpartition("#")[2]
            raise DynamoDbError(code, status)
        return answer


def table(name: str) -> dict[str, Any]:
    """Return the request of `CreateTable` for the toolkit's table, as in template.yaml."""
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "key", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "key", "KeyType": "HASH"}],
    }


def _error_response(error: DynamoDbError) -> HttpResponse:
    body = {"__type": f"{PROTOCOL.target}#{error.code}", "message": error.code}
    return PROTOCOL.response(error.status or 500, json.dumps(body))
