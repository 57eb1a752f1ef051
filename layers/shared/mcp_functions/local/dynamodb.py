"""DynamoDB: moto's, with the project's one table, behind HTTP; asked directly, without moto's web server."""

from __future__ import annotations

import json
import uuid
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from mcp_functions.local.context import ACCOUNT, REGION
from mcp_functions.local.exchange import HttpResponse
from mcp_functions.local.problems import not_installed
from mcp_functions.store import DynamoDbError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.local.exchange import HttpRequest
    from mcp_functions.store.dynamodb import Call

MAX_REQUEST = 1024 * 1024  # bytes; an item may have 400 KB
TARGET = "DynamoDB_20120810."
OK = 200


class DynamoDbApi:
    """Answers DynamoDB requests."""

    def __init__(self, call: Callable[[], Call]) -> None:
        """Remember who answers; `call` makes it when the first request comes."""
        self._call, self._lock = cache(call), Lock()

    def warm(self) -> None:
        """Make what answers, and ask it something, before anybody waits for it."""
        with self._lock:
            self._call()("ListTables", {})

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer one signed request. The signature is not checked; but a page in a browser cannot write one."""
        if not request.header("authorization").startswith("AWS4-"):
            return _refused(DynamoDbError("MissingAuthenticationTokenException"))
        try:
            params = json.loads(request.body or b"")
            if not isinstance(params, dict):
                return _refused(DynamoDbError("SerializationException"))
            with self._lock:  # moto looks at a condition and then writes: nobody may come in between
                return _response(OK, self._call()(request.header("x-amz-target").removeprefix(TARGET), params))
        except (ValueError, AttributeError):
            return _refused(DynamoDbError("SerializationException"))
        except DynamoDbError as refused:
            return _refused(refused)


class Moto:
    """One table of moto's: it is called as DynamoDB is, an operation and a request in DynamoDB's own JSON."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        """Make the table; a backend of its own, so that two harnesses share nothing.

        Args:
            table: `CreateTable`'s request.

        Raises:
            Problem: moto is not installed.

        """
        try:
            from moto.dynamodb.models import DynamoDBBackend  # noqa: PLC0415 - a second, of projects with a table only
            from moto.dynamodb.responses import DynamoHandler  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise not_installed(error, "local") from error

        class Handler(DynamoHandler):
            dynamodb_backend = DynamoDBBackend(REGION, ACCOUNT)  # moto's own is a property that reads a global

        self._handler = Handler
        self("CreateTable", table)

    def __call__(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one request.

        Raises:
            DynamoDbError: with AWS's code.

        """
        from moto.core.request import Request  # noqa: PLC0415 - see __init__

        headers = {"X-Amz-Target": f"{TARGET}{operation}", "Content-Type": "application/x-amz-json-1.0"}
        url = f"https://dynamodb.{REGION}.amazonaws.com/"
        asked = Request.from_primitives("POST", url, headers, json.dumps(request))
        status, _headers, body = self._handler.dispatch(asked)
        answer: dict[str, Any] = json.loads(body)
        if int(status) != OK:
            code = str(answer.get("__type", "InternalServerError")).rpartition("#")[2]
            raise DynamoDbError(code, int(status), answer.get("Item"))
        return answer


def table(name: str) -> dict[str, Any]:
    """Write `CreateTable`'s request for the one table that the toolkit knows, as template.yaml has it."""
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "key", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "key", "KeyType": "HASH"}],
    }


def _refused(refused: DynamoDbError) -> HttpResponse:
    kept = {"Item": refused.item} if refused.item else {}
    return _response(refused.status or 500, {"__type": f"{TARGET}#{refused.code}", "message": refused.code, **kept})


def _response(status: int, body: Mapping[str, Any]) -> HttpResponse:
    headers = (("content-type", "application/x-amz-json-1.0"), ("x-amzn-requestid", str(uuid.uuid4())))
    return HttpResponse(status, headers, json.dumps(body).encode())
