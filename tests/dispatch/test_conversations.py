"""A call that asks its user takes several requests, and its state is accepted only where it belongs.

`Client(greet)` has a Lambda function with the tool `greet`. `call` calls a tool, or continues its conversation with a
state and answers; `send` sends any other request. Both return the reply, which the official types have checked.
"""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_functions import Elicit, RootsQuestion, Sample, prompt, resource, tool
from mcp_functions.low_level import InputRequiredResult, InputResponses, RequestState
from mcp_functions.seal import request_state
from tests.support import wire
from tests.support.dispatching import Client

INVALID_PARAMS = -32602


@tool
def add(a: int, b: int) -> int:
    return a + b


@pytest.fixture
def client() -> Client:
    """Return the client of a function whose handler asks nothing."""
    return Client(add)


class Name(BaseModel):
    name: str


class Age(BaseModel):
    age: int


@tool
def greet(greeting: str, *, elicit: Elicit) -> str:
    name = elicit("name", "Who are you?", Name).name
    age = elicit("age", f"How old are you, {name}?", Age).age
    return f"{greeting}, {name} ({age})"


GREETING = {"greeting": "Hi"}
NAME_ANSWER = {"name": {"action": "accept", "content": {"name": "Ann"}}}
AGE_ANSWER = {"age": {"action": "accept", "content": {"age": 33}}}


@pytest.fixture
def greeter() -> Client:
    return Client(greet)


@pytest.fixture
def state(greeter: Client) -> str:
    """Call `greet`, and return the state that came with its first question."""
    return greeter.call("greet", GREETING).state


def test_a_conversation_of_three_rounds_runs_end_to_end(greeter: Client) -> None:
    first = greeter.call("greet", GREETING)
    assert first.questions == ["name"]
    second = greeter.call("greet", GREETING, state=first.state, answers=NAME_ANSWER)
    assert second.result["inputRequests"]["age"]["params"]["message"] == "How old are you, Ann?"
    third = greeter.call("greet", GREETING, state=second.state, answers=AGE_ANSWER)
    assert third.text == "Hi, Ann (33)"


def test_a_result_has_the_type_complete_and_the_server_info(client: Client) -> None:
    result = client.call("add", {"a": 1, "b": 2}).result
    assert result["resultType"] == "complete"
    assert result["_meta"][wire.PREFIX + "serverInfo"] == {"name": "test", "version": "1"}


@prompt
def brief(topic: str, *, elicit: Elicit) -> str:
    reader = elicit("name", "For whom?", Name).name
    return f"{topic} for {reader}"


@resource("notes://{owner}", ttl_ms=60_000, cache_scope="public")
def read_note(owner: str, *, elicit: Elicit) -> str:
    reader = elicit("name", "Who asks?", Name).name
    return f"{owner}'s note for {reader}"


@pytest.mark.parametrize(
    ("method", "params"),
    [("prompts/get", {"name": "brief", "arguments": {"topic": "x"}}), ("resources/read", {"uri": "notes://bob"})],
)
def test_a_prompt_and_a_resource_can_ask_questions(method: str, params: dict[str, Any]) -> None:
    client = Client(brief, read_note)
    first = client.send(method, params)
    second = client.send(method, {**params, "requestState": first.state, "inputResponses": NAME_ANSWER})
    assert "for Ann" in json.dumps(second.result)


def test_answers_without_a_state_do_not_replace_questions(greeter: Client) -> None:
    assert greeter.call("greet", GREETING, answers={**NAME_ANSWER, **AGE_ANSWER}).questions == ["name"]


def test_an_early_answer_to_a_later_question_does_not_count(greeter: Client, state: str) -> None:
    answers = {**NAME_ANSWER, **AGE_ANSWER, "unknown": {"x": 1}}
    assert greeter.call("greet", GREETING, state=state, answers=answers).questions == ["age"]


def test_a_missing_answer_is_asked_again_with_a_new_state(greeter: Client, state: str) -> None:
    reply = greeter.call("greet", GREETING, state=state)
    assert reply.questions == ["name"]
    assert reply.state != state


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}], ids=["no capability", "only URLs"])
def test_a_question_that_the_client_cannot_show_is_never_asked(greeter: Client, capabilities: dict[str, Any]) -> None:
    reply = greeter.call("greet", GREETING, capabilities=capabilities)
    assert reply.status == 200
    assert reply.result["resultType"] == "complete"
    assert reply.result["isError"] is True
    assert "It asks: Who are you? (name: string)." in reply.text


def test_a_client_gets_error_32021_only_from_a_tool_that_requires_the_capability() -> None:
    @tool(requires=["elicitation"])
    def pay(*, elicit: Elicit) -> str:
        elicit.url("bank", "Sign in to the bank", "https://bank.example/login")
        return "paid"

    reply = Client(pay).call("pay", capabilities={"elicitation": {}})
    assert reply.status == 400
    assert reply.error == {
        "code": -32021,
        "message": "The client lacks a required capability: elicitation.url. "
        "The server would have asked: Sign in to the bank (https://bank.example/login)",
        "data": {"requiredCapabilities": {"elicitation": {"url": {}}}},
    }


def test_the_capabilities_of_each_request_count(greeter: Client, state: str) -> None:
    assert greeter.call("greet", GREETING, state=state, answers=NAME_ANSWER, capabilities={}).result["isError"] is True
    assert greeter.call("greet", GREETING, state=state, answers=NAME_ANSWER).questions == ["age"]


def test_a_client_without_capabilities_may_call_tools_without_questions(client: Client) -> None:
    assert client.call("add", {"a": 1, "b": 2}, capabilities={}).text == "3"


def test_clients_that_declare_sampling_and_roots_get_these_requests() -> None:
    @tool(requires=["sampling"])
    def summarise(*, sample: Sample) -> str:
        return str(sample("summary", "Summarise", max_tokens=5)["content"]["text"])

    client = Client(summarise)
    refusal = client.call("summarise")
    assert refusal.body["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}
    first = client.call("summarise", capabilities={"sampling": {}})
    sampled = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Short"}}
    assert client.call("summarise", state=first.state, answers={"summary": sampled}).text == "Short"


# The low level: a tool reads the state and the answers itself.


class Draft(BaseModel):
    rounds: int = 0


class Anything(BaseModel):
    value: Any = None


def test_a_low_level_function_keeps_its_state_between_rounds() -> None:
    @tool
    def count(*, responses: InputResponses, state: RequestState[Draft]) -> str | InputRequiredResult:
        if state.value.rounds == 2:
            return f"{state.value.rounds} {sorted(responses)}"
        return InputRequiredResult({"roots": RootsQuestion()}, Draft(rounds=state.value.rounds + 1))

    client = Client(count)
    roots: dict[str, Any] = {"roots": {"roots": []}}
    first = client.call("count", capabilities={"roots": {}})
    second = client.call("count", state=first.state, answers=roots, capabilities={"roots": {}})
    assert client.call("count", state=second.state, answers=roots, capabilities={"roots": {}}).text == "2 ['roots']"


def test_a_state_without_a_question_comes_with_empty_input_requests() -> None:
    @tool
    def run_twice(*, state: RequestState[Draft]) -> str | InputRequiredResult:
        return "done" if state.value.rounds else InputRequiredResult(request_state=Draft(rounds=1))

    client = Client(run_twice)
    first = client.call("run_twice", capabilities={})
    assert first.result["inputRequests"] == {}
    assert client.call("run_twice", capabilities={}, state=first.state).text == "done"


def test_a_state_outside_json_is_an_error_of_the_author(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    def keep(*, state: RequestState[Anything]) -> str | InputRequiredResult:  # noqa: ARG001
        return InputRequiredResult(request_state=Anything(value={"hunter2": object()}))

    reply = Client(keep).call("keep")
    assert reply.status == 200
    assert reply.result["isError"] is True
    assert caplog.messages
    assert "hunter2" not in caplog.text


# A state belongs to one conversation

INVALID_STATE_ERROR = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}


def test_a_retry_may_change_its_id_and_its_meta(greeter: Client, state: str) -> None:
    meta = {"traceparent": "00-1", wire.PREFIX + "clientInfo": {"name": "c", "version": "2"}}
    reply = greeter.call("greet", GREETING, state=state, answers=NAME_ANSWER, id="another", meta=meta)
    assert reply.questions == ["age"]


def test_a_retry_may_write_a_number_differently() -> None:
    @tool
    def pour(litres: float, *, elicit: Elicit) -> str:
        name = elicit("name", "For whom?", Name).name
        return f"{litres} litres for {name}"

    client = Client(pour)
    state = client.call("pour", {"litres": 2}).state
    assert client.call("pour", {"litres": 2.0}, state=state, answers=NAME_ANSWER).text == "2.0 litres for Ann"


@pytest.mark.parametrize("state", ["", "box.99", "box.x", "ks1.AAAA", "x" * 10_000, None, 7, [], {}, True])
def test_a_state_that_the_server_did_not_write_is_refused(greeter: Client, state: object) -> None:
    reply = greeter.send("tools/call", {"name": "greet", "arguments": GREETING, "requestState": state})
    assert reply.status == 400
    assert reply.error == INVALID_STATE_ERROR


@tool
def wave(greeting: str, *, elicit: Elicit) -> str:
    name = elicit("name", "Who are you?", Name).name
    return f"{greeting}, {name}"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        pytest.param("tools/call", {"name": "greet", "arguments": {"greeting": "Bye"}}, id="another value"),
        pytest.param("tools/call", {"name": "greet", "arguments": {**GREETING, "more": None}}, id="one argument more"),
        pytest.param("tools/call", {"name": "greet"}, id="no arguments"),
        pytest.param("tools/call", {"name": "wave", "arguments": GREETING}, id="another tool"),
        pytest.param("prompts/get", {"name": "brief", "arguments": GREETING}, id="a prompt"),
        pytest.param("resources/read", {"uri": "notes://greet"}, id="a resource"),
    ],
)
def test_a_state_is_refused_for_another_method_name_or_arguments(method: str, params: dict[str, Any]) -> None:
    client = Client(greet, wave, brief, read_note)
    state = client.call("greet", GREETING).state
    reply = client.send(method, {**params, "requestState": state})
    assert reply.status == 400
    assert reply.error == INVALID_STATE_ERROR


def test_a_state_is_refused_for_another_uri() -> None:
    client = Client(read_note)
    state = client.send("resources/read", {"uri": "notes://ann"}).state
    assert client.send("resources/read", {"uri": "notes://bob", "requestState": state}).error == INVALID_STATE_ERROR


def test_a_state_is_refused_by_another_function() -> None:
    codec = wire.PlainCodec()
    state = Client(greet, codec=codec).call("greet", GREETING).state
    other = Client(greet, codec=codec, audience="local/other/local")
    assert other.call("greet", GREETING, state=state).error == INVALID_STATE_ERROR


def test_a_state_is_refused_for_another_principal() -> None:
    ann = {"authorizer": {"iam": {"accountId": "1", "userId": "ann"}}}  # as API Gateway names a signer
    eve = {"authorizer": {"iam": {"accountId": "1", "userId": "eve"}}}
    client = Client(greet, auth_mode="iam")
    state = client.call("greet", GREETING, context=ann).state
    refusal = client.call("greet", GREETING, state=state, answers=NAME_ANSWER, context=eve)
    assert refusal.error == INVALID_STATE_ERROR
    assert client.call("greet", GREETING, state=state, answers=NAME_ANSWER, context=ann).questions == ["age"]


def test_a_state_expires_after_the_answer_within_of_its_handler() -> None:
    @tool(answer_within=60)
    def hurry(*, elicit: Elicit) -> str:
        return elicit("name", "Quick, who are you?", Name).name

    client = Client(hurry)
    state = client.call("hurry").state
    client.now += 59
    assert client.call("hurry", state=state, answers=NAME_ANSWER).text == "Ann"
    client.now += 1
    assert client.call("hurry", state=state, answers=NAME_ANSWER).error == INVALID_STATE_ERROR


@pytest.mark.parametrize("arguments", [{"a": 1, "b": 2}, {"a": "no number"}], ids=["valid", "invalid"])
def test_a_state_is_verified_even_if_the_handler_never_reads_it(client: Client, arguments: dict[str, Any]) -> None:
    assert client.call("add", arguments, state="x").error == INVALID_STATE_ERROR


def test_a_function_without_keys_refuses_every_state(state: str) -> None:
    client = Client(add, has_keys=False)
    reply = client.call("add", {"a": 1, "b": 2}, state=state)
    assert reply.status == 400
    assert reply.error == INVALID_STATE_ERROR
    assert client.call("add", {"a": 1, "b": 2}).text == "3"


def test_only_the_log_shows_why_a_state_was_refused(
    greeter: Client, state: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mcp_functions")
    greeter.call("greet", {"greeting": "Bye"}, state=state)
    assert caplog.messages[-1] == "refused: -32602 arguments"


def test_the_log_names_the_missing_keys_of_a_function_that_asks(caplog: pytest.LogCaptureFixture) -> None:
    reply = Client(greet, has_keys=False).call("greet", GREETING)
    assert reply.status == 500
    assert reply.error == {"code": -32603, "message": "Internal error"}
    assert caplog.messages == [
        "refused: -32603 greet asks, but MCP_KMS_KEYS is not set: its function needs the key and its policy"
    ]


def test_a_tool_with_too_many_rounds_ends_with_a_message_for_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_state, "MAX_ROUNDS", 2)
    client = Client(greet)
    first = client.call("greet", GREETING)
    second = client.call("greet", GREETING, state=first.state)
    third = client.call("greet", GREETING, state=second.state)
    assert third.result["isError"] is True
    assert "rounds" in third.text


def test_a_prompt_with_too_many_rounds_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_state, "MAX_ROUNDS", 1)
    client = Client(brief)
    params = {"name": "brief", "arguments": {"topic": "x"}}
    first = client.send("prompts/get", params)
    second = client.send("prompts/get", {**params, "requestState": first.state})
    assert second.status == 200
    assert second.code == INVALID_PARAMS
    assert "rounds" in second.body["error"]["message"]


def test_a_resource_that_asks_must_not_be_cached() -> None:
    client = Client(read_note)  # its author allows a minute
    first = client.send("resources/read", {"uri": "notes://bob"})
    assert "ttlMs" not in first.result
    params = {"uri": "notes://bob", "requestState": first.state, "inputResponses": NAME_ANSWER}
    result = client.send("resources/read", params).result
    assert result["ttlMs"] == 0
    assert result["cacheScope"] == "private"


# The author's mistakes


def test_only_the_log_names_a_rule_that_an_author_breaks(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    def ask_twice(*, elicit: Elicit) -> str:
        elicit("name", "Who are you?", Name)
        return elicit("name", "And you?", Name).name

    client = Client(ask_twice)
    secret = {"name": {"action": "accept", "content": {"name": "hunter2"}}}
    reply = client.call("ask_twice", state=client.call("ask_twice").state, answers=secret)
    assert reply.status == 200
    assert reply.result["isError"] is True
    (line,) = caplog.messages
    assert line.startswith("failed: two different questions under the key …: give each question a key of its own at ")
    assert f"{__file__}:" in line
    assert "hunter2" not in caplog.text


QUOTED = 'the "ü" \\\n'


def test_a_form_is_escaped_in_json() -> None:
    class QuotedName(BaseModel):
        name: str = QUOTED

    @tool
    def ask(topic: str, *, elicit: Elicit) -> str:
        return elicit('k"ey', f"Who is {topic}?", QuotedName).name

    client = Client(ask)
    first = client.call("ask", {"topic": QUOTED})
    form = first.result["inputRequests"]['k"ey']["params"]
    assert form["message"] == f"Who is {QUOTED}?"
    assert form["requestedSchema"]["properties"]["name"]["default"] == QUOTED
    answers = {'k"ey': {"action": "accept", "content": {"name": QUOTED}}}
    assert client.call("ask", {"topic": QUOTED}, state=first.state, answers=answers).text == QUOTED
