"""The table of tests refuses what DynamoDB refuses, and a function reaches the table of its deployment over HTTP."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from mcp_functions import settings
from mcp_functions import store as tables
from mcp_functions.aws.errors import ClientError
from mcp_functions.dispatch.seal_factory import SealFactory
from mcp_functions.protocol.errors import TemporarilyUnavailable
from mcp_functions.store import Conflict
from mcp_functions_harness.doubles import dynamodb as local
from mcp_functions_harness.doubles.dynamodb import Moto
from mcp_functions_harness.environment import TABLE
from mcp_functions_harness.loopback import HttpRequest
from mcp_functions_harness.testing import deployed
from mcp_functions_harness.testing.dynamodb import MemoryTable
from tests.store.backend import DAY, KEY, Backend, first


@pytest.mark.parametrize(
    ("operation", "change", "code"),
    [
        ("PutItem", {"TableName": "another"}, "ResourceNotFoundException"),
        ("PutItem", {"Item": {"sealed": {"S": "no key"}}}, "ValidationException"),
        ("PutItem", {"Item": {"key": {"S": ""}}}, "ValidationException"),
        ("PutItem", {"Item": {"key": {"S": "x" * 2049}}}, "ValidationException"),
        ("PutItem", {"Item": {"key": {"S": "k"}, "sealed": {"S": "x" * 400 * 1024}}}, "ValidationException"),
        ("PutItem", {"ConditionExpression": "#n = :v", "ExpressionAttributeNames": {"#n": "n", "#o": "o"}}, "V"),
        ("GetItem", {"Key": {"key": {"S": "k"}, "more": {"S": "k"}}}, "ValidationException"),
        ("Scan", {}, "ValidationException"),
    ],
)
def test_the_test_table_refuses_what_dynamodb_refuses(operation: str, change: dict[str, Any], code: str) -> None:
    asked = {"TableName": TABLE, "Item": {"key": {"S": "k"}}, "Key": {"key": {"S": "k"}}}
    of = {"PutItem": {"TableName", "Item"}, "GetItem": {"TableName", "Key"}, "Scan": {"TableName"}}[operation]
    values = {"ExpressionAttributeValues": {":v": {"N": "1"}}} if "ConditionExpression" in change else {}
    request = {name: value for name, value in asked.items() if name in of} | change | values
    with pytest.raises(ClientError) as error:
        MemoryTable()(operation, request)
    assert error.value.code.startswith(code)


def test_the_test_table_deletes_expired_items_only_on_request(
    memory_backend: Backend, memory_table: MemoryTable
) -> None:
    memory_backend.open().create(KEY, {}, expires=memory_backend.soon(60))
    memory_table.expire(memory_backend.clock() + 60)
    assert memory_table.items
    memory_table.expire(memory_backend.clock() + 61)
    assert memory_table.items == {}


def test_a_function_reaches_the_table_of_its_deployment_and_of_no_other() -> None:
    memory = MemoryTable()
    with deployed(memory):
        item = _table_of_deployment().create(KEY, {"n": 1}, expires=int(time.time()) + 60)
        assert _table_of_deployment().get(KEY) == item
        with pytest.raises(Conflict):
            _table_of_deployment().create(KEY, {"n": 2}, expires=int(time.time()) + 60)
        memory.weather = first("lost", of="PutItem")
        item = _table_of_deployment().replace(item, {"n": 3})
        assert _table_of_deployment().get(KEY) == item
        assert memory.calls.count("PutItem") == 4  # botocore repeated the request and met its own write
        _table_of_deployment().delete(item)
    with deployed():
        assert _table_of_deployment().get(KEY) is None


def test_a_table_that_does_not_answer_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:9")
    with pytest.raises(TemporarilyUnavailable) as error:
        _table_of_deployment().get(KEY)
    assert error.value.reason == "table:EndpointConnectionError"


def test_the_store_works_with_the_table_of_moto() -> None:
    with deployed(Moto(local.table(TABLE))):
        item = _table_of_deployment().create(KEY, {"n": 1}, expires=int(time.time()) + 60)
        assert _table_of_deployment().get(KEY) == item
        with pytest.raises(Conflict):
            _table_of_deployment().create(KEY, {"n": 2}, expires=int(time.time()) + 60)
        _table_of_deployment().delete(_table_of_deployment().replace(item, {}))
        assert _table_of_deployment().get(KEY) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"authorization": ""}, "MissingAuthenticationTokenException"),
        ({"body": b"{"}, "SerializationException"),
        ({"body": b"[]"}, "SerializationException"),
        ({"x-amz-target": "DynamoDB_20120810.Scan"}, "ValidationException"),
    ],
)
def test_a_malformed_request_is_refused(change: dict[str, Any], message: str) -> None:
    headers = {"authorization": "AWS4-HMAC-SHA256", "x-amz-target": "DynamoDB_20120810.GetItem"} | change
    body = headers.pop("body", b"{}")
    request = HttpRequest("POST", "/", tuple(headers.items()), body, "HTTP/1.1", "127.0.0.1", 1)
    answer = local.DynamoDbApi(MemoryTable()).answer(request)
    assert (answer.status, message in answer.body.decode()) == (400, True)


def _table_of_deployment() -> tables.SealedTable:
    """Connect to a table as a new container does at its first event."""
    return SealFactory(settings.Settings(os.environ), "local/asking", now=time.time).table(DAY)
