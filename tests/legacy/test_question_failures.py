"""The table or KMS fails while a client of 2025 has a question, a function dies, or a value is too large.

`deployment.fail_table("throttled", None)` lets the next request to DynamoDB fail and the one after it succeed.
A "denied" request lacks a permission; a "lost" one happens, but its response is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import Elicit, tool
from mcp_functions.legacy.sealed_ids import SealedIds
from mcp_functions.protocol.errors import Misconfigured, TemporarilyUnavailable
from mcp_functions.testing import MemoryBucket
from tests.legacy import handlers
from tests.legacy.clients import Client, error_message, read_question, read_retry, result_text
from tests.legacy.deployment import CallOnce, Deployment
from tests.legacy.handlers import ALL_HANDLERS, start_resolving

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.testing.dynamodb import Fault

TIMEOUT_MESSAGE = "The function did not answer in time"


# ---- The table


@pytest.mark.parametrize("fault", ["throttled", "denied"])
def test_without_its_table_a_tool_explains_its_question(client: Client, deployment: Deployment, fault: Fault) -> None:
    deployment.fail_every_table_request(fault)
    message = result_text(client.call("resolve", bug=7))
    assert "temporarily unavailable" in message
    assert "How was bug 7 resolved?" in message


@pytest.mark.parametrize(("fault", "status"), [("throttled", 503), ("denied", 500)])
def test_an_answer_that_could_not_be_stored_may_be_repeated(
    client: Client, deployment: Deployment, fault: Fault, status: int
) -> None:
    id_ = start_resolving(client)
    deployment.fail_every_table_request(fault)
    assert client.accept(id_, why="Fixed")["statusCode"] == status
    assert deployment.rounds_run == 1
    deployment.restore_table()
    client.accept(id_, why="Fixed")
    assert result_text(client.resume()) == "7 fixed"


@pytest.mark.parametrize("fault", ["throttled", "denied"])
def test_a_result_that_could_not_be_stored_becomes_an_error(
    client: Client, deployment: Deployment, fault: Fault
) -> None:
    id_ = start_resolving(client)
    deployment.on_round = CallOnce(lambda: deployment.fail_every_table_request(fault))
    assert client.accept(id_, why="Fixed")["statusCode"] == 202
    deployment.restore_table()
    deployment.clock.advance(60)
    assert error_message(client.resume()) == TIMEOUT_MESSAGE


def test_a_poll_while_the_table_throttles_gets_a_time_to_wait(client: Client, deployment: Deployment) -> None:
    start_resolving(client)
    deployment.fail_every_table_request("throttled")
    assert read_retry(client.resume()) == 5000


def test_a_poll_without_permission_for_the_table_gets_an_error(client: Client, deployment: Deployment) -> None:
    start_resolving(client)
    deployment.fail_every_table_request("denied")
    assert client.resume()[-1].data["error"]["code"] == -32603


def test_an_answer_whose_write_is_never_confirmed_runs_no_round(client: Client, deployment: Deployment) -> None:
    id_ = start_resolving(client)
    deployment.fail_table(None, "lost", "lost")  # the write happens, and the read that would confirm it fails
    assert client.accept(id_, why="Fixed")["statusCode"] == 503
    assert read_retry(client.resume()) == 500
    deployment.clock.advance(60)
    assert error_message(client.resume()) == TIMEOUT_MESSAGE
    assert deployment.rounds_run == 1


def test_an_unreadable_item_ends_its_call(client: Client, deployment: Deployment) -> None:
    id_ = start_resolving(client)
    damage_items(deployment)
    assert client.accept(id_, why="Fixed")["statusCode"] == 202
    assert "error" in client.resume()[-1].data


def test_a_call_that_finds_an_unreadable_item_of_its_request_id_explains_its_question(
    client: Client, deployment: Deployment
) -> None:
    start_resolving(client)
    damage_items(deployment)
    client.request_id -= 1
    assert "temporarily unavailable" in result_text(client.call("resolve", bug=7))


def damage_items(deployment: Deployment) -> None:
    for item in deployment.table.items.values():
        item["sealed"]["S"] = item["sealed"]["S"][:-8] + "AAAAAAAA"


# ---- KMS


def test_a_question_that_no_key_can_seal_is_explained(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    write = SealedIds.write

    def refuse_questions(self: SealedIds, data: Mapping[str, Any]) -> str:
        if "rest" in data:
            raise Misconfigured(reason="kms:denied")
        return write(self, data)

    monkeypatch.setattr(SealedIds, "write", refuse_questions)
    message = result_text(client.call("resolve", bug=7))
    assert "How was bug 7 resolved?" in message
    assert "temporarily unavailable" in message


def test_a_poll_during_an_outage_of_kms_leaves_the_client_at_its_event(client: Client, deployment: Deployment) -> None:
    start_resolving(client)
    deployment.replace_containers()
    deployment.kms.failure = TemporarilyUnavailable("kms:down")
    (event,) = client.resume()
    assert (event.id, event.retry, event.data) == (client.event_ids[-2], 5000, None)


# ---- The function


def die_after_the_answer(placement: str) -> tuple[Deployment, Client]:
    """Answer a question; the function's process dies before its response."""
    deployment = Deployment(*ALL_HANDLERS, placement=placement)
    client = deployment.initialized_client()
    id_ = start_resolving(client)
    deployment.on_round = CallOnce(lambda: True)
    client.accept(id_, why="Fixed")
    return deployment, client


def test_a_killed_function_behind_the_front_door_is_an_immediate_error() -> None:
    _, client = die_after_the_answer("behind the front door")
    assert error_message(client.resume()) == TIMEOUT_MESSAGE


def test_a_killed_function_without_a_front_door_is_an_error_after_its_timeout() -> None:
    deployment, client = die_after_the_answer("direct")
    assert read_retry(client.resume()) == 500
    deployment.clock.advance(60)
    assert error_message(client.resume()) == TIMEOUT_MESSAGE


# ---- Sizes


@tool
def ask_and_return_much(*, elicit: Elicit) -> str:
    elicit("why", "Go on?", handlers.Why)
    return "x" * 500_000


def test_a_result_too_large_for_the_table_becomes_an_error(placement: str) -> None:
    client = Deployment(ask_and_return_much, placement=placement).initialized_client()
    client.accept(read_question(client.call("ask_and_return_much"))["id"], why="Fixed")
    assert "too large" in error_message(client.resume())


def test_a_result_too_large_for_lambda_becomes_an_error_even_if_a_bucket_holds_it() -> None:
    @tool
    def ask_and_return_escapes(*, elicit: Elicit) -> str:
        elicit("why", "Go on?", handlers.Why)
        return "é" * 1_500_000  # six characters each in a response of Lambda

    deployment = Deployment(ask_and_return_escapes, bucket=MemoryBucket())
    client = deployment.initialized_client()
    client.accept(read_question(client.call("ask_and_return_escapes"))["id"], why="Fixed")
    assert "6 MB" in error_message(client.resume())


def test_a_large_result_during_an_outage_becomes_an_error(placement: str) -> None:
    deployment = Deployment(ask_and_return_much, placement=placement)
    client = deployment.initialized_client()
    id_ = read_question(client.call("ask_and_return_much"))["id"]
    deployment.fail_table(None, None, "denied")  # the claim succeeds; the result cannot be stored
    assert client.accept(id_, why="Fixed")["statusCode"] == 202
    deployment.clock.advance(60)
    assert error_message(client.resume()) == TIMEOUT_MESSAGE


def test_a_request_id_too_long_for_an_event_id_gets_no_question(client: Client) -> None:
    params = {"name": "resolve", "arguments": {"bug": 7}}
    message = {"jsonrpc": "2.0", "id": "x" * 5000, "method": "tools/call", "params": params}
    assert "too large" in result_text(client.read(client.http("POST", message)))


def test_a_question_is_asked_only_if_the_server_could_read_its_answer(placement: str) -> None:
    @tool
    def ask_about(text: str, *, elicit: Elicit) -> str:
        return text[:1] + elicit("why", "Why?", handlers.Why).why

    client = Deployment(ask_about, placement=placement, max_body_bytes=65_536).initialized_client()
    question = read_question(client.call("ask_about", text="y" * 20_000))
    assert client.accept(question["id"], why="Fixed")["statusCode"] == 202
    assert result_text(client.resume()) == "yFixed"
    assert "too large" in result_text(client.call("ask_about", text="y" * 50_000))
