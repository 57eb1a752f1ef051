"""Clients of 2025 that send malformed requests, and functions that return text which JSON cannot hold."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from mcp_functions import Elicit, Step, serve, tool
from mcp_functions_harness.testing import deployed
from tests.legacy import handlers
from tests.legacy.clients import Client, read_question, result_text
from tests.legacy.deployment import Deployment
from tests.legacy.handlers import ALL_HANDLERS, start_resolving
from tests.support import wire

INTERNAL_ERROR = {"code": -32603, "message": "Internal error"}
SURROGATE = "half of a pair: \ud800"


def take_over_session(deployment: Deployment, client: Client) -> Client:
    """Return another process of the same user, with the session of the first."""
    other = deployment.client()
    other.session, other.version = client.session, client.version
    return other


def test_long_work_continues_whichever_event_the_client_resumes_from(deployment: Deployment) -> None:
    @tool(max_sheds=3)
    def work_for_a_minute(*, elicit: Elicit, step: Step) -> str:
        elicit("why", "Go on?", handlers.Why)
        for part in "abc":
            step(part, deployment.clock.advance, 20)
        return "done"

    deployment.handlers = (work_for_a_minute,)
    deployment.replace_containers()
    client = deployment.initialized_client()
    client.accept(read_question(client.call("work_for_a_minute"))["id"], why="Fixed")
    oldest = client.event_ids[0]
    events = client.resume(oldest)
    while events[-1].data is None:
        events = client.resume(oldest)
    assert result_text(events) == "done"


def test_a_function_whose_stream_ends_without_a_response_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = Deployment(*ALL_HANDLERS, placement="behind the front door")
    client = deployment.initialized_client()
    body = 'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n'
    response = {"statusCode": 200, "headers": {"content-type": "text/event-stream"}, "body": body}
    monkeypatch.setattr(deployment, "invoke_function", lambda _event: response)
    assert client.call("add", a=1, b=2)[-1].data["error"] == INTERNAL_ERROR


def test_a_question_with_half_a_character_is_an_internal_error(placement: str) -> None:
    @tool
    def ask_surrogate(*, elicit: Elicit) -> str:
        return elicit("why", SURROGATE, handlers.Why).why

    client = Deployment(ask_surrogate, placement=placement).initialized_client()
    assert client.call("ask_surrogate")[-1].data["error"] == INTERNAL_ERROR
    assert client.response["body"].encode()


def test_a_missing_scope_has_its_http_status(placement: str) -> None:
    """2025-11-25, basic/authorization: the client reads the scope that it lacks from a response with status 403."""

    @tool(scopes=["admin"])
    def administer() -> str:
        return "done"

    client = Deployment(administer, placement=placement).initialized_client()
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "administer", "arguments": {}}}
    response = client.http("POST", call)
    assert response["statusCode"] == 403
    assert 'scope="admin"' in response["headers"]["www-authenticate"]


def test_a_result_that_no_response_can_hold_is_an_error_of_its_request(placement: str) -> None:
    @tool
    def say() -> str:
        return "x" * 2**23

    client = Deployment(say, placement=placement).initialized_client()
    assert client.message("tools/call", {"name": "say", "arguments": {}})["error"]["code"] == -32603


def test_a_result_with_half_a_character_is_an_error_of_the_tool(placement: str) -> None:
    @tool
    def ask_and_return_surrogate(*, elicit: Elicit) -> str:
        elicit("why", "Go on?", handlers.Why)
        return SURROGATE

    client = Deployment(ask_and_return_surrogate, placement=placement).initialized_client()
    client.accept(read_question(client.call("ask_and_return_surrogate"))["id"], why="Fixed")
    assert client.resume()[-1].data["result"]["isError"]
    assert client.response["body"].encode()


def test_a_response_with_result_and_error_is_refused(client: Client, deployment: Deployment) -> None:
    id_ = start_resolving(client)
    result = {"action": "accept", "content": {"why": "Fixed"}}
    assert client.answer(id_, result, error={"code": -1, "message": "no"})["statusCode"] == 400
    assert deployment.rounds_run == 1


def test_a_response_whose_error_is_null_is_accepted(client: Client) -> None:
    """Some libraries write every member of a response."""
    id_ = start_resolving(client)
    result = {"action": "accept", "content": {"why": "Fixed"}}
    assert client.answer(id_, result, error=None)["statusCode"] == 202
    assert result_text(client.resume()) == "7 fixed"


@pytest.mark.parametrize("params", [["add"], "add", 0])
def test_a_message_with_a_result_and_malformed_params_is_a_response(client: Client, params: object) -> None:
    response_to_nothing = {"jsonrpc": "2.0", "id": "none", "result": {}}
    expected = client.http("POST", response_to_nothing)
    assert client.http("POST", {**response_to_nothing, "method": "tools/call", "params": params}) == expected


def test_only_one_of_two_concurrent_calls_with_one_id_asks_its_question(client: Client, deployment: Deployment) -> None:
    start_resolving(client, bug=7)
    other = take_over_session(deployment, client)
    client.request_id -= 1
    other.request_id = client.request_id
    # Before its second write, the client's call has read the first call's item and is about to replace it.
    deployment.before_write(lambda: other.call("resolve", bug=9), number=2)
    assert "temporarily unavailable" in result_text(client.call("resolve", bug=8))
    other.accept(read_question(other.resume(other.event_ids[0]))["id"], why="Fixed")
    assert result_text(other.resume()) == "9 fixed"


def test_six_concurrent_answers_run_one_round(client: Client, deployment: Deployment) -> None:
    id_ = start_resolving(client)
    barrier = Barrier(6)

    def answer() -> int:
        other = take_over_session(deployment, client)
        barrier.wait()
        return int(other.accept(id_, why="Fixed")["statusCode"])

    with ThreadPoolExecutor(6) as pool:
        futures = [pool.submit(answer) for _ in range(6)]
    assert [future.result() for future in futures] == [202] * 6
    assert deployment.rounds_run == 2
    assert result_text(client.resume()) == "7 fixed"


class UnlabelledSeal:
    """A custom seal that stores the plaintexts and ignores labels: any sealed value opens as any kind of value."""

    def __init__(self) -> None:
        self.plaintexts: dict[str, bytes] = {}

    def seal(self, payload: bytes) -> str:
        token = f"token-{len(self.plaintexts)}"
        self.plaintexts[token] = payload
        return token

    def unseal(self, token: str) -> bytes:
        return self.plaintexts[token]


class TestTokensOfOneKindAsAnotherKind:
    """A session, event ids, a question id and a table item under a seal that cannot tell them apart."""

    @pytest.fixture
    def seal(self) -> UnlabelledSeal:
        return UnlabelledSeal()

    @pytest.fixture
    def client(self, seal: UnlabelledSeal) -> Any:  # noqa: ANN401 - yields a Client
        with deployed():
            client = Client(serve(handlers.resolve, codec=seal))
            client.initialize()
            yield client

    def test_other_sealed_values_are_refused_as_a_session_id(self, client: Client, seal: UnlabelledSeal) -> None:
        start_resolving(client)
        session = client.session
        for token in list(seal.plaintexts):
            client.session = token
            response = client.http("POST", {"jsonrpc": "2.0", "id": 2, "method": "ping"})
            assert (response["statusCode"] == 200) == (token == session)

    def test_other_sealed_values_are_refused_as_an_event_id(self, client: Client, seal: UnlabelledSeal) -> None:
        start_resolving(client)
        event_ids = set(client.event_ids)
        statuses = {token: client.http("GET", last_event_id=token)["statusCode"] for token in list(seal.plaintexts)}
        assert {token for token, status in statuses.items() if status == 200} == event_ids

    def test_other_sealed_values_are_refused_as_a_question_id(self, client: Client, seal: UnlabelledSeal) -> None:
        id_ = start_resolving(client)
        statuses = {token: client.accept(token, why="Fixed")["statusCode"] for token in list(seal.plaintexts)}
        assert [token for token, status in statuses.items() if status == 202] == [id_]

    def test_other_sealed_values_are_refused_as_a_request_state(self, client: Client, seal: UnlabelledSeal) -> None:
        start_resolving(client)
        states = {token for token, payload in seal.plaintexts.items() if payload.startswith(b'{"v":1,"aud"')}
        assert states
        for token in list(seal.plaintexts):
            params = {"name": "resolve", "arguments": {"bug": 7}, "requestState": token}
            response = client.function(wire.event(wire.message("tools/call", params)), client.context)
            assert (response["statusCode"] == 200) == (token in states)
