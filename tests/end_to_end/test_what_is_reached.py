"""Every function has the key and the table in its environment; what its handlers are decides which of them it calls.

KMS and DynamoDB are doubles that record every call. No `from __future__ import annotations` here: the functions below
are read as an author writes them.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from mcp_functions import Elicit, serve, tool
from mcp_functions.local.loopback import HttpRequest, HttpResponse, Loopback
from mcp_functions.testing import Conversation, MemoryTable, deployed
from tests.legacy.clients import Client
from tests.support import wire

FROZEN = {"code": -32602, "message": "Invalid or expired requestState", "data": {"reason": "invalid_request_state"}}


@tool
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return f"{a + b}"


@tool(name="add")
def add_what(a: int, b: int, *, elicit: Elicit) -> str:
    """Add two numbers, and the user's."""
    return f"{a + b + elicit('third', 'And?', int)}"


@pytest.fixture
def calls() -> Iterator[list[str]]:
    """Refuse every call of KMS and DynamoDB as AWS does without a permission, and list what was called."""
    called: list[str] = []

    def refuse(request: HttpRequest) -> HttpResponse:
        called.append(request.header("x-amz-target").partition(".")[2])
        return HttpResponse(400, (("content-type", "application/json"),), b'{"__type": "AccessDeniedException"}')

    with Loopback(max_body=10**6) as aws:
        aws.start(refuse)
        with deployed(AWS_ENDPOINT_URL_KMS=aws.url, AWS_ENDPOINT_URL_DYNAMODB=aws.url):
            yield called


def test_a_forged_state_sent_to_a_function_that_never_asks_reaches_no_kms(
    calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with deployed():
        state = Conversation(serve(add_what)).call(a=1, b=2).state
        key = os.environ["MCP_KMS_KEYS"]
    monkeypatch.setenv("MCP_KMS_KEYS", key)
    forged = wire.message("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}, "requestState": state})
    response = serve(add)(wire.event(forged), wire.Context("local_add"))
    assert (response["statusCode"], wire.read(response, "tools/call")["error"], calls) == (400, FROZEN, [])
    serve(add_what)(wire.event(forged), wire.Context("local_add"))
    assert calls == ["Decrypt"], "as a function that asks does"


def test_a_client_of_2025_makes_a_function_that_never_asks_reach_nothing(calls: list[str]) -> None:
    client = Client(serve(add), context=wire.Context("local_add"))
    client.initialize()
    assert client.call("add", a=1, b=2)[-1].data["result"]["content"][0]["text"] == "3"
    assert calls == []


def test_a_function_that_asks_reaches_kms_and_no_table(calls: list[str]) -> None:
    called = wire.message("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
    assert serve(add_what)(wire.event(called), wire.Context("local_add"))["statusCode"] == 500  # no permission
    assert set(calls) == {"GenerateDataKey"}


@pytest.mark.parametrize(("folder", "kept"), [("add", []), ("mcp", ["PutItem"])])
def test_only_the_endpoint_keeps_a_question_to_a_client_of_2025(folder: str, kept: list[str]) -> None:
    touched: list[str] = []

    def table(operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        touched.append(operation)
        return memory(operation, request)

    memory = MemoryTable("local-table")
    with deployed(table):
        client = Client(serve(add_what), context=wire.Context(f"local_{folder}"))
        client.initialize()
        client.send("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
    assert touched[:1] == kept
