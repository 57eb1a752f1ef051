"""Clients of 2025 that cannot be asked get a result or an error that contains the question and the reason.

Such a client declared no capability, cannot resume a stream, or talks to a deployment without a table.
"""

from __future__ import annotations

from typing import Any

import pytest

from mcp_functions import serve, tool
from mcp_functions_harness.testing import deployed
from tests.legacy.clients import Client, read_question, result_text
from tests.legacy.deployment import Deployment
from tests.legacy.handlers import ALL_HANDLERS

RESOLVE = {"name": "resolve", "arguments": {"bug": 7}}
SIGN_IN = {"name": "sign_in"}
QUESTION = "How was bug 7 resolved?"  # that `resolve` asks


@pytest.fixture
def client(deployment: Deployment) -> Client:
    return deployment.client()


@pytest.fixture
def client_without_table(placement: str) -> Client:
    return Deployment(*ALL_HANDLERS, placement=placement, table="").initialized_client()


# ---- Deployments without a table


def test_a_tool_without_a_table_explains_its_question(client_without_table: Client) -> None:
    message = result_text(client_without_table.call("resolve", bug=7))
    assert f"{QUESTION} (why: Fixed | Duplicate)" in message
    assert "no table for questions" in message


def test_a_prompt_without_a_table_explains_its_question_in_an_error(client_without_table: Client) -> None:
    params = {"name": "brief", "arguments": {"topic": "x"}}
    error = client_without_table.message("prompts/get", params)["error"]
    assert error["code"] == -32602
    assert "Why?" in error["message"]
    assert "argument" not in error["message"]


def test_a_resource_without_a_table_explains_its_question_in_an_error(client_without_table: Client) -> None:
    error = client_without_table.message("resources/read", {"uri": "secrets://ann"})["error"]
    assert error["code"] == -32602
    assert "Why?" in error["message"]
    assert "argument" not in error["message"]


def test_a_page_needs_no_table_because_its_error_holds_the_address(client_without_table: Client) -> None:
    error = client_without_table.message("tools/call", SIGN_IN)["error"]
    assert error["code"] == -32042  # URL elicitation required
    (page,) = error["data"]["elicitations"]
    assert page["mode"] == "url"
    assert page["url"] == "https://id.example/sign-in"
    assert page["elicitationId"]


# ---- Clients that cannot answer


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18"])
def test_clients_of_revisions_without_resumption_get_no_question(client: Client, version: str) -> None:
    client.initialize(version)
    assert QUESTION in result_text(client.call("resolve", bug=7))


@pytest.mark.parametrize("name", ["ai-sdk-mcp-client", "Visual Studio Code", "Visual Studio Code - Insiders"])
def test_clients_known_not_to_resume_get_no_question(client: Client, name: str) -> None:
    client.initialize(name=name)
    message = result_text(client.call("resolve", bug=7))
    assert QUESTION in message
    assert "this client does not resume a stream after the user's answer" in message


def test_a_client_without_capabilities_gets_no_question(client: Client) -> None:
    client.initialize(capabilities={})
    message = result_text(client.call("resolve", bug=7))
    assert QUESTION in message
    assert "this client did not declare support for it" in message
    assert "a client of MCP revision 2026-07-28 that can be asked can finish this call" in message


def test_a_client_without_a_session_gets_no_question(client: Client) -> None:
    assert QUESTION in result_text(client.call("resolve", bug=7))


def test_a_client_that_accepts_no_event_stream_gets_no_question(client: Client) -> None:
    client.initialize()
    message = result_text(client.send("tools/call", RESOLVE, accept="application/json"))
    assert QUESTION in message
    assert "needs an event stream" in message


@pytest.mark.parametrize(
    ("version", "call", "reason"),
    [
        pytest.param("2025-03-26", RESOLVE, "this client's revision has no request for it", id="no forms in March"),
        pytest.param("2025-06-18", SIGN_IN, "this client's revision has no request for it", id="no pages in June"),
        pytest.param("2025-06-18", RESOLVE, "they do not resume streams", id="no resumption in June"),
    ],
)
def test_a_capability_of_a_later_revision_is_not_called_undeclared(
    client: Client, version: str, call: dict[str, Any], reason: str
) -> None:
    client.initialize(version)
    message = result_text(client.send("tools/call", call))
    assert reason in message
    assert "did not declare" not in message


# ---- Settings and tools


def test_a_deployment_may_ask_clients_of_june(placement: str) -> None:
    client = Deployment(*ALL_HANDLERS, placement=placement, questions_since="2025-06-18").client()
    client.initialize("2025-06-18")
    assert read_question(client.call("resolve", bug=7))["params"]["message"] == QUESTION


def test_a_deployment_may_ask_no_client_of_2025(placement: str) -> None:
    client = Deployment(*ALL_HANDLERS, placement=placement, questions_since="2026-07-28").initialized_client()
    assert QUESTION in result_text(client.call("resolve", bug=7))


def test_a_tool_that_requires_a_task_explains_that_it_needs_one() -> None:
    @tool(task="required")
    def audit() -> str:
        return "done"

    with deployed():
        client = Client(serve(audit))
        client.initialize()
        assert "runs as a task" in result_text(client.call("audit"))
