"""The table or KMS fails while a client of 2025 has a question, a function dies, or a value is too large.

`deployment.fail_table("throttled", None)` lets the next request to DynamoDB fail and the one after it succeed.
A "denied" request lacks a permission; a "lost" one happens, but its response is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import Elicit, Step, tool
from mcp_functions.legacy.sealed_ids import SealedIds
from mcp_functions.protocol.errors import Misconfigured, TemporarilyUnavailable
from mcp_functions_harness.testing import MemoryBucket
from tests.legacy import handlers
from tests.legacy.clients import Client, error_message, read_question, read_retry, result_text
from tests.legacy.deployment import CallOnce, Deployment
from tests.legacy.handlers import ALL_HANDLERS, start_resolving

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.errors import McpError
    from mcp_functions_harness.testing.dynamodb import Fault

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


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(["throttled"], id="the record is read"),
        pytest.param([None, "throttled"], id="the round is claimed"),
        pytest.param([None, None, "throttled"], id="the result is stored"),
        pytest.param(["throttled", "throttled", None, "lost", None, "unanswered", "lost"], id="all of them"),
    ],
)
def test_failed_requests_to_the_table_are_repeated(
    client: Client, deployment: Deployment, faults: list[Fault], pauses: list[float]
) -> None:
    id_ = start_resolving(client)
    deployment.fail_table(*faults)
    assert client.accept(id_, why="Fixed")["statusCode"] == 202
    assert pauses
    assert result_text(client.resume()) == "7 fixed"
    assert deployment.rounds_run == 2


def test_a_failed_read_is_not_repeated_after_the_gateway_has_stopped_waiting(
    client: Client, deployment: Deployment, pauses: list[float]
) -> None:
    id_ = start_resolving(client)
    faults: list[Fault] = ["throttled"]

    def throttle_for_long(_operation: str) -> Fault:
        deployment.clock.advance(30)
        return faults.pop() if faults else None

    deployment.table.weather = throttle_for_long
    assert client.accept(id_, why="Fixed")["statusCode"] == 503
    assert pauses == []


def test_a_result_that_the_table_refuses_once_becomes_an_error_at_once(client: Client, deployment: Deployment) -> None:
    id_ = start_resolving(client)
    deployment.fail_table(None, None, "denied")  # the claim succeeds; the result cannot be stored
    assert client.accept(id_, why="Fixed")["statusCode"] == 202
    assert "could not be kept" in error_message(client.resume())
    assert deployment.rounds_run == 2


def test_an_answer_whose_write_is_never_confirmed_runs_no_round(client: Client, deployment: Deployment) -> None:
    id_ = start_resolving(client)
    deployment.fail_table(None, "lost", "lost")  # the write happens, and the read that would confirm it fails
    assert client.accept(id_, why="Fixed")["statusCode"] == 202  # the next attempt finds the call claimed
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


def fail_question_seals(monkeypatch: pytest.MonkeyPatch, error: McpError, *, times: int) -> None:
    """Let the seal of the next questions fail, as without KMS."""
    write = SealedIds.write
    failures = [error] * times

    def fail_first(self: SealedIds, data: Mapping[str, Any]) -> str:
        is_question = "rest" in data
        if is_question and failures:
            raise failures.pop()
        return write(self, data)

    monkeypatch.setattr(SealedIds, "write", fail_first)


KMS_DOWN = TemporarilyUnavailable("kms:down")
KMS_DENIED = Misconfigured("kms:denied")
NO_KEY = "the server's key for questions is not available"


def test_the_question_of_the_next_round_is_sealed_again_when_kms_fails(
    client: Client, deployment: Deployment, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    id_ = start_resolving(client)
    fail_question_seals(monkeypatch, KMS_DOWN, times=2)
    assert client.accept(id_, why="Duplicate")["statusCode"] == 202
    assert pauses == [0.2, 0.4]
    read_question(client.resume())
    assert deployment.rounds_run == 2


def test_the_next_question_of_the_round_is_sealed_again_when_kms_fails(
    client: Client, deployment: Deployment, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    id_ = read_question(client.call("ask_both"))["id"]
    fail_question_seals(monkeypatch, KMS_DOWN, times=2)
    assert client.accept(id_, why="Fixed")["statusCode"] == 202
    assert pauses == [0.2, 0.4]
    read_question(client.resume())
    assert deployment.rounds_run == 1


def test_a_round_whose_question_is_never_sealed_becomes_an_error_at_once(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = start_resolving(client)
    fail_question_seals(monkeypatch, KMS_DOWN, times=99)
    assert client.accept(id_, why="Duplicate")["statusCode"] == 202
    assert "could not be kept" in error_message(client.resume())


def test_a_question_that_no_key_can_seal_is_explained(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_question_seals(monkeypatch, KMS_DENIED, times=1)
    message = result_text(client.call("resolve", bug=7))
    assert "How was bug 7 resolved?" in message
    assert NO_KEY in message


def test_the_log_names_a_denied_key_of_a_question_as_a_problem_of_the_operator(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    id_ = start_resolving(client)
    fail_question_seals(monkeypatch, KMS_DENIED, times=1)
    caplog.clear()
    with caplog.at_level("INFO", "mcp_functions"):
        client.accept(id_, why="Duplicate")
    logged = [vars(record) for record in caplog.records]
    assert [line["misconfigured"] for line in logged if line.get("reason") == "kms:denied"] == [True]


def test_a_question_of_the_next_round_that_no_key_can_seal_is_explained(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = start_resolving(client)
    fail_question_seals(monkeypatch, KMS_DENIED, times=1)
    assert client.accept(id_, why="Duplicate")["statusCode"] == 202
    message = result_text(client.resume())
    assert "Which is the original?" in message
    assert NO_KEY in message


def test_a_next_question_of_the_round_that_no_key_can_seal_is_explained(
    client: Client, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = read_question(client.call("ask_both"))["id"]
    fail_question_seals(monkeypatch, KMS_DENIED, times=1)
    assert client.accept(id_, why="Fixed")["statusCode"] == 202
    message = result_text(client.resume())
    assert "Which?" in message
    assert NO_KEY in message
    assert deployment.rounds_run == 1


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

STEPS: list[Callable[[], None]] = []


@tool
def work_on(text: str, *, step: Step) -> str:
    """Work for longer than a request has time."""
    step("work", STEPS[-1])
    step("more", len, text)
    return "done"


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
    deployment.fail_table(None, None, "denied", "denied")  # the claim succeeds; neither error can be stored
    assert client.accept(id_, why="Fixed")["statusCode"] == 202
    deployment.clock.advance(60)
    assert error_message(client.resume()) == TIMEOUT_MESSAGE


def test_a_request_id_too_long_for_an_event_id_gets_no_question(client: Client) -> None:
    params = {"name": "resolve", "arguments": {"bug": 7}}
    message = {"jsonrpc": "2.0", "id": "x" * 5000, "method": "tools/call", "params": params}
    assert "too large" in result_text(client.read(client.http("POST", message)))


def test_answers_too_large_to_be_kept_end_the_call(client: Client) -> None:
    question = read_question(client.call("ask_both"))
    client.answer(question["id"], {"action": "accept", "content": {"why": "x" * 40_000}})
    message = result_text(client.resume())
    assert "too large to be kept" in message
    assert "Which?" in message


def test_work_that_cannot_be_kept_for_another_request_is_explained(placement: str) -> None:
    deployment = Deployment(work_on, placement=placement)
    client = deployment.initialized_client()
    STEPS[:] = [lambda: deployment.clock.advance(20)]
    assert "takes longer than one request" in result_text(client.call("work_on", text="x" * 40_000))


def test_a_question_is_asked_only_if_the_server_could_read_its_answer(placement: str) -> None:
    @tool
    def ask_about(text: str, *, elicit: Elicit) -> str:
        return text[:1] + elicit("why", "Why?", handlers.Why).why

    client = Deployment(ask_about, placement=placement, max_body_bytes=65_536).initialized_client()
    question = read_question(client.call("ask_about", text="y" * 20_000))
    assert client.accept(question["id"], why="Fixed")["statusCode"] == 202
    assert result_text(client.resume()) == "yFixed"
    assert "too large" in result_text(client.call("ask_about", text="y" * 50_000))
