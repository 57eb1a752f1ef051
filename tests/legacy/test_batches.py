"""JSON-RPC batches, which only revision 2025-03-26 has: an array of messages in one HTTP request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_functions import Log, tool
from mcp_functions.http.responses import MAX_ESCAPED_CHARS
from tests.legacy.clients import Client, read_question
from tests.legacy.deployment import CallOnce, Deployment
from tests.legacy.handlers import ALL_HANDLERS

PING: dict[str, Any] = {"jsonrpc": "2.0", "id": "ping", "method": "ping"}
UNKNOWN_RESPONSE: dict[str, Any] = {"jsonrpc": "2.0", "id": "none", "result": {}}


def tool_call(id_: int, name: str, **arguments: object) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}


def send_batch(client: Client, *messages: dict[str, Any]) -> dict[Any, dict[str, Any]]:
    """Send a batch, and return the responses by their ids."""
    responses = json.loads(client.http("POST", messages)["body"])
    return {response["id"]: response for response in responses}


def error_ids(responses: dict[Any, dict[str, Any]]) -> list[Any]:
    return [id_ for id_, response in responses.items() if "error" in response]


@pytest.fixture
def client(deployment: Deployment) -> Client:
    return client_of_march(deployment)


def client_of_march(deployment: Deployment) -> Client:
    client = deployment.client()
    client.initialize("2025-03-26")
    return client


def test_a_missing_scope_is_an_error_of_its_request_in_a_batch(placement: str) -> None:
    @tool(scopes=["admin"])
    def administer() -> str:
        return "done"

    client = client_of_march(Deployment(administer, placement=placement))
    assert error_ids(send_batch(client, tool_call(1, "administer"), PING)) == [1]
    assert client.http("POST", tool_call(1, "administer"))["statusCode"] == 403  # outside of a batch


def test_a_result_that_is_no_unicode_is_an_error_of_its_request_only(placement: str) -> None:
    @tool
    def return_surrogate() -> str:
        return "half of a pair: \ud800"

    client = client_of_march(Deployment(return_surrogate, placement=placement))
    responses = send_batch(client, PING, tool_call(1, "return_surrogate"))
    assert responses["ping"]["result"] == {}
    assert responses[1]["error"]["code"] == -32603


class TestResultsTooLargeForOneResponse:
    """Two results of 4 MiB do not fit into the 6 MB of a Lambda response."""

    @pytest.fixture
    def client(self, placement: str) -> Client:
        @tool
        def return_much(*, log: Log) -> str:
            log.info("soon")
            return "x" * (4 * 1024 * 1024)

        return client_of_march(Deployment(return_much, placement=placement))

    CALLS = [tool_call(1, "return_much"), tool_call(2, "return_much")]  # noqa: RUF012 - a constant

    def test_a_json_batch_replaces_results_by_errors_until_it_fits(self, client: Client) -> None:
        (event,) = client.read(client.http("POST", self.CALLS, accept="application/json"))
        assert ["error" in response for response in event.data] == [True, False]

    def test_a_streamed_batch_replaces_results_by_errors_until_it_fits(self, client: Client) -> None:
        messages = [event.data for event in client.read(client.http("POST", self.CALLS))]
        assert ["error" in message for message in messages if "id" in message] == [True, False]


@pytest.mark.parametrize("room", [50, 400, 10_000])
def test_the_largest_result_alone_is_an_error_if_a_batch_is_a_little_too_large(placement: str, room: int) -> None:
    """The first result would fit into the response alone; the errors of later ones would not fit beside it."""

    @tool
    def return_text(size: int) -> str:
        return "x" * size

    client = client_of_march(Deployment(return_text, placement=placement))
    empty_batch = client.http("POST", [tool_call(0, "return_text", size=0)])["body"]
    largest = tool_call(0, "return_text", size=MAX_ESCAPED_CHARS - len(json.dumps(empty_batch)) - room)
    responses = send_batch(client, largest, *[tool_call(id_, "return_text", size=200) for id_ in range(1, 50)])
    assert len(responses) == 50
    assert error_ids(responses) == [0]


def test_a_log_message_that_does_not_fit_is_left_out_and_its_result_stays(placement: str) -> None:
    @tool
    def log_much(*, log: Log) -> str:
        log.info("x" * (4 * 1024 * 1024))
        return "done"

    client = client_of_march(Deployment(log_much, placement=placement))
    calls = [tool_call(1, "log_much"), tool_call(2, "log_much")]
    messages = [event.data for event in client.read(client.http("POST", calls))]
    assert [message.get("id") for message in messages] == [1, None, 2]
    assert all("result" in message for message in messages if "id" in message)


def test_a_response_to_no_question_leaves_the_other_messages_of_a_batch(client: Client) -> None:
    assert send_batch(client, PING, UNKNOWN_RESPONSE)["ping"]["result"] == {}


def test_a_batch_of_only_unknown_responses_is_refused(client: Client) -> None:
    assert client.http("POST", [UNKNOWN_RESPONSE])["statusCode"] == 400


def test_a_batch_has_the_time_of_one_request(placement: str) -> None:
    started: list[int] = []

    @tool
    def work(number: int) -> str:
        started.append(number)
        server.clock.advance(8)
        return "done"

    server = Deployment(work, placement=placement)
    calls = [tool_call(number, "work", number=number) for number in range(20)]
    responses = send_batch(client_of_march(server), *calls)
    assert len(started) == 4  # 4 * 8 seconds are more than Lambda's 28
    late = error_ids(responses)
    assert late == list(range(4, 20))
    assert [responses[id_]["error"]["data"] for id_ in late] == [{"retryable": True}] * 16


def test_an_answer_for_which_a_batch_has_no_time_may_be_repeated(placement: str) -> None:
    deployment = Deployment(*ALL_HANDLERS, placement=placement, questions_since="2025-03-26")
    client = client_of_march(deployment)
    ids = [read_question(client.call("ask_model"))["id"] for _ in range(2)]
    sample = {"role": "assistant", "content": {"type": "text", "text": "hm"}, "model": "m"}
    answers = [{"jsonrpc": "2.0", "id": id_, "result": sample} for id_ in ids]
    deployment.on_round = CallOnce(lambda: deployment.clock.advance(27.5))
    assert client.http("POST", answers)["statusCode"] == 503
    assert deployment.rounds_run == 3  # two calls and one answer
    assert client.http("POST", answers)["statusCode"] == 202
    assert deployment.rounds_run == 4


def test_a_batch_that_sets_the_log_level_changes_the_session(client: Client) -> None:
    session = client.session
    assert len(client.call("report")) == 2  # a log message and the result
    set_level = {"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "error"}}
    send_batch(client, set_level, PING)
    assert client.session != session
    assert len(client.call("report")) == 1
