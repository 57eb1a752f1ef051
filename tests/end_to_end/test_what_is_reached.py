"""Every function has a KMS key and a table in its environment, but calls only the service that its handlers need.

`calls` has the name of each call of KMS and DynamoDB; both refuse it, as AWS does without a permission. The decorators
read real annotations at run time, so this module does not import `annotations` from `__future__`.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from mcp_functions import Elicit, serve, tool
from mcp_functions_harness.loopback import HttpRequest, HttpResponse, Loopback
from mcp_functions_harness.testing import Conversation, MemoryTable, deployed
from tests.legacy.clients import Client
from tests.support import wire

INVALID_REQUEST_STATE_ERROR = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}


@tool
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return f"{a + b}"


@tool(name="add")
def add_and_ask(a: int, b: int, *, elicit: Elicit) -> str:
    """Add two numbers, and the user's."""
    return f"{a + b + elicit('third', 'And?', int)}"


@pytest.fixture
def calls() -> Iterator[list[str]]:
    called: list[str] = []

    def refuse(request: HttpRequest) -> HttpResponse:
        called.append(request.header("x-amz-target").partition(".")[2])
        return HttpResponse(400, (("content-type", "application/json"),), b'{"__type": "AccessDeniedException"}')

    with Loopback(max_body=10**6) as aws:
        aws.start(refuse)
        with deployed(AWS_ENDPOINT_URL_KMS=aws.url, AWS_ENDPOINT_URL_DYNAMODB=aws.url):
            yield called


@pytest.fixture
def call_with_state(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return a call of `add` with a valid request state of another tool with that name."""
    assert calls == []
    with deployed():
        state = Conversation(serve(add_and_ask)).call(a=1, b=2).state
        key = os.environ["MCP_KMS_KEYS"]
    monkeypatch.setenv("MCP_KMS_KEYS", key)
    params = {"name": "add", "arguments": {"a": 1, "b": 2}, "requestState": state}
    return wire.event(wire.message("tools/call", params))


def test_a_function_that_never_asks_refuses_a_request_state_without_a_call_of_kms(
    call_with_state: dict[str, Any], calls: list[str]
) -> None:
    response = serve(add)(call_with_state, wire.Context("local_add"))
    assert response["statusCode"] == 400
    assert wire.read(response, "tools/call")["error"] == INVALID_REQUEST_STATE_ERROR
    assert calls == []


def test_a_function_that_asks_opens_a_request_state_with_kms(call_with_state: dict[str, Any], calls: list[str]) -> None:
    serve(add_and_ask)(call_with_state, wire.Context("local_add"))
    assert calls == ["Decrypt"]


def test_a_function_that_never_asks_calls_no_service_for_a_client_of_2025(calls: list[str]) -> None:
    client = Client(serve(add), context=wire.Context("local_add"))
    client.initialize()
    assert client.call("add", a=1, b=2)[-1].data["result"]["content"][0]["text"] == "3"
    assert calls == []


def test_a_function_that_asks_calls_kms_but_not_the_table(calls: list[str]) -> None:
    message = wire.message("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
    assert serve(add_and_ask)(wire.event(message), wire.Context("local_add"))["statusCode"] == 500  # no permission
    assert set(calls) == {"GenerateDataKey"}


@pytest.mark.parametrize(("folder", "operations"), [("add", []), ("mcp", ["PutItem"])])
def test_only_the_endpoint_stores_a_question_to_a_client_of_2025(folder: str, operations: list[str]) -> None:
    recorded: list[str] = []
    memory = MemoryTable("local-table")

    def table(operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        recorded.append(operation)
        return memory(operation, request)

    with deployed(table):
        client = Client(serve(add_and_ask), context=wire.Context(f"local_{folder}"))
        client.initialize()
        client.send("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
    assert recorded[:1] == operations
