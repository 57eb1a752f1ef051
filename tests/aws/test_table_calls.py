"""Calls of DynamoDB: our client and boto3's send the same requests, retry and fail alike."""

from __future__ import annotations

import json
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import aws
from mcp_functions.aws import clients, errors
from mcp_functions.aws.errors import ConnectionClosedError
from mcp_functions.store import make_call
from tests.aws.calls import endpoint_at, error
from tests.support.http_servers import ScriptedResponse, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.store.dynamodb import Call


ROW = {"key": {"S": "shop/add/task/-/żółw"}, "version": {"N": "1"}}


WRONG_CHECKSUM = ScriptedResponse(headers={"x-amz-crc32": "1"})


ITEM = ScriptedResponse(body=json.dumps({"Item": ROW}).encode())


PUT: dict[str, Any] = {
    "TableName": "t",
    "Item": ROW,
    "ConditionExpression": "#version = :version",
    "ExpressionAttributeNames": {"#version": "version"},
    "ExpressionAttributeValues": {":version": {"N": "1"}},
}


GET: dict[str, Any] = {"TableName": "t", "Key": {"key": ROW["key"]}, "ConsistentRead": True}


@contextmanager
def call_table() -> Iterator[Call]:
    """Make a call, and close its client in the end: a container never does."""
    call = make_call()
    try:
        yield call
    finally:
        for cell in getattr(call, "__closure__", ()):
            if hasattr(cell.cell_contents, "close"):
                cell.cell_contents.close()


def test_both_clients_send_the_table_the_same_requests(client_kind: str, service: ScriptedServer) -> None:
    service.script += [ITEM, ScriptedResponse(), ScriptedResponse()]
    with call_table() as call:
        assert call("GetItem", GET)["Item"] == ROW
        call("PutItem", PUT)
        call("DeleteItem", {"TableName": "t", "Key": {"key": ROW["key"]}})
    assert [json.loads(body) for _path, _headers, body in service.asked] == [
        GET, PUT, {"TableName": "t", "Key": {"key": ROW["key"]}},
    ]  # fmt: skip
    assert [headers["x-amz-target"] for _path, headers, _body in service.asked] == [
        "DynamoDB_20120810.GetItem", "DynamoDB_20120810.PutItem", "DynamoDB_20120810.DeleteItem",
    ]  # fmt: skip
    for path, headers, _body in service.asked:
        assert (path, headers["content-type"]) == ("/", "application/x-amz-json-1.0")
        assert "/eu-west-1/dynamodb/aws4_request" in headers["authorization"]
        assert (headers["user-agent"] == clients.USER_AGENT) == (client_kind == "lean")


def error_of_table(operation: str, request: dict[str, Any]) -> errors.Failure | None:
    try:
        with call_table() as call:
            call(operation, request)
    except Exception as error:  # noqa: BLE001 - of both clients
        return errors.read_failure(error)
    return None


CONFLICT = error(400, "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException")


@pytest.mark.usefixtures("client_kind")
@pytest.mark.parametrize(
    ("script", "failure", "asked"),
    [
        ([CONFLICT], ("ConditionalCheckFailedException", 400), 1),
        ([error(400, "com.amazon.coral.validate#ValidationException")], ("ValidationException", 400), 1),
        ([error(400, "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException")],
         ("ResourceNotFoundException", 400), 1),
        ([error(400, "ProvisionedThroughputExceededException"), ScriptedResponse()], None, 2),
        ([error(400, "ThrottlingException")] * 3, ("ThrottlingException", 400), 3),
        ([error(500, "InternalServerError"), CONFLICT], ("ConditionalCheckFailedException", 400), 2),
        ([ScriptedResponse(503, b"<html>")] * 3, ("503", 503), 3),
        ([None, ScriptedResponse()], None, 2),
        ([None] * 3, ("ConnectionClosedError", 0), 3),
        ([WRONG_CHECKSUM, ScriptedResponse(headers={"x-amz-crc32": "2745614147"})], None, 2),
    ],
    ids=str,
)  # fmt: skip
def test_both_clients_read_responses_of_the_table_alike_after_the_same_retries(
    service: ScriptedServer,
    script: list[ScriptedResponse | None],
    failure: tuple[str, int] | None,
    asked: int,
) -> None:
    service.script += script
    assert error_of_table("PutItem", PUT) == failure
    assert len(service.asked) == asked


@pytest.mark.usefixtures("client_kind")
def test_a_table_that_does_not_respond_is_a_read_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_functions.store.dynamodb.LIMITS", aws.CallLimits(0.5, 0.05, 3))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert error_of_table("GetItem", GET) == ("ReadTimeoutError", 0)


@pytest.mark.usefixtures("half_of_the_longest_wait")
def test_a_response_of_the_table_with_a_wrong_checksum_is_an_error(
    service: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = endpoint_at("dynamodb", f"http://{service.host}")
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    client = clients.DynamoDbClient(endpoint, aws.CallLimits(5, 5, 3))
    service.script += [WRONG_CHECKSUM] * 3
    with pytest.raises(ConnectionClosedError):
        client.get_item(**GET)
    client.close()
    assert waits == [0.025, 0.05]
