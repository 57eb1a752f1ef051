"""The dispatcher finds the handler of a request, asks its questions, and accepts a state only where it belongs.

`Client(add, …)` has a Lambda function with the handler `add`. `call` calls a tool, or continues its conversation with a
state and answers; `send` sends any other request. Both return the reply, which the official types have checked.
"""

from __future__ import annotations

import gc
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from mcp_functions import (
    Elicit,
    InputRequiredResult,
    InputResponses,
    ListRootsRequest,
    Log,
    Progress,
    RequestState,
    Sample,
    prompt,
    resource,
    serve,
    serving,
    tool,
)
from mcp_functions.rounds.round import Round
from mcp_functions.seal import request_state
from tests.support import wire
from tests.support.dispatching import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601


# Methods and parameters


@tool
def add(a: int, b: int) -> int:
    return a + b


@prompt
def explain(topic: str) -> str:
    return f"Explain {topic}."


@resource("docs://{page}")
def read_page(page: str) -> str:
    return f"The page {page}"


@pytest.fixture
def client() -> Client:
    """Return the client of a function whose handlers ask nothing."""
    return Client(add, explain, read_page)


def test_tools_call_returns_the_result_of_the_tool(client: Client) -> None:
    assert client.call("add", {"a": 1, "b": 2}).text == "3"


def test_prompts_get_returns_the_messages_of_the_prompt(client: Client) -> None:
    result = client.send("prompts/get", {"name": "explain", "arguments": {"topic": "tides"}}).result
    assert result["messages"][0]["content"]["text"] == "Explain tides."


def test_resources_read_returns_the_contents_of_the_resource(client: Client) -> None:
    result = client.send("resources/read", {"uri": "docs://start"}).result
    assert result["contents"][0]["text"] == "The page start"


@pytest.mark.parametrize(
    "method", ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"]
)
def test_the_dispatcher_answers_every_list(client: Client, method: str) -> None:
    reply = client.send(method)
    assert reply.status == 200
    assert reply.result["resultType"] == "complete"


@pytest.mark.parametrize(
    "method",
    [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/list",
        "tasks/result",
        "roots/list",
        "sampling/createMessage",
        "elicitation/create",
        "completion/complete",
        "subscriptions/listen",
        "",
        "TOOLS/LIST",
    ],
)
def test_any_other_method_is_404_with_a_json_rpc_body(client: Client, method: str) -> None:
    reply = client.send(method)
    assert reply.status == 404
    assert reply.error == {"code": METHOD_NOT_FOUND, "message": "Method not found"}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("prompts/get", {"name": "x"}),
        ("prompts/list", {}),
        ("resources/read", {"uri": "x://"}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
    ],
)
def test_a_method_that_is_not_advertised_is_404_too(method: str, params: dict[str, Any]) -> None:
    reply = Client(add).send(method, params)
    assert reply.status == 404
    assert reply.code == METHOD_NOT_FOUND


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "nothing"}),
        pytest.param("prompts/get", {"name": "add"}, id="the name of a tool"),
        ("resources/read", {"uri": "docs:///"}),
        ("tools/list", {"cursor": "x"}),
    ],
)
def test_an_unknown_name_is_a_200_with_an_error(client: Client, method: str, params: dict[str, Any]) -> None:
    reply = client.send(method, params)
    assert reply.status == 200
    assert reply.code == INVALID_PARAMS


def test_the_error_for_an_unknown_resource_has_its_uri(client: Client) -> None:
    reply = client.send("resources/read", {"uri": "docs:///"})
    assert reply.body["error"]["data"] == {"uri": "docs:///"}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        pytest.param("tools/call", {}, id="no name"),
        pytest.param("tools/call", {"name": 7}, id="a name that is a number"),
        pytest.param("tools/call", {"name": "add", "arguments": []}, id="arguments that are an array"),
        pytest.param("tools/call", {"name": "add", "arguments": "x"}, id="arguments that are a string"),
        pytest.param("prompts/get", {"name": "explain", "arguments": {"topic": 7}}, id="a number for a prompt"),
        pytest.param("resources/read", {"uri": None}, id="no uri"),
        pytest.param("tools/call", {"name": "add", "inputResponses": None}, id="answers that are null"),
        pytest.param("tools/call", {"name": "add", "inputResponses": []}, id="answers that are an array"),
        pytest.param("tools/call", {"name": "add", "inputResponses": {"x": 7}}, id="an answer that is a number"),
        pytest.param("tools/call", {"name": "add", "inputResponses": {"x": None}}, id="an answer that is null"),
    ],
)
def test_params_of_another_shape_are_400(client: Client, method: str, params: dict[str, Any]) -> None:
    reply = client.send(method, params)
    assert reply.status == 400
    assert reply.code == INVALID_PARAMS


@pytest.mark.parametrize(
    "meta",
    [
        {wire.PREFIX + "logLevel": "loud"},
        {wire.PREFIX + "logLevel": []},
        {"progressToken": 1.5},
        {"progressToken": True},
        {"progressToken": None},
    ],
)
def test_reserved_meta_of_another_shape_is_400(client: Client, meta: dict[str, Any]) -> None:
    reply = client.call("add", {"a": 1, "b": 2}, meta=meta)
    assert reply.status == 400
    assert reply.code == INVALID_PARAMS


def test_invalid_arguments_of_a_tool_are_an_error_result(client: Client) -> None:
    reply = client.call("add", {"a": 1})  # `b` is missing
    assert reply.status == 200
    assert reply.result["isError"] is True


@pytest.mark.parametrize("arguments", [{}, {"topic": "x", "more": "y"}])
def test_invalid_arguments_of_a_prompt_are_a_json_rpc_error(client: Client, arguments: dict[str, str]) -> None:
    assert client.send("prompts/get", {"name": "explain", "arguments": arguments}).code == INVALID_PARAMS


# Conversations


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
        return InputRequiredResult({"roots": ListRootsRequest()}, Draft(rounds=state.value.rounds + 1))

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


# Caching


def test_a_resource_that_asks_must_not_be_cached() -> None:
    client = Client(read_note)  # its author allows a minute
    first = client.send("resources/read", {"uri": "notes://bob"})
    assert "ttlMs" not in first.result
    params = {"uri": "notes://bob", "requestState": first.state, "inputResponses": NAME_ANSWER}
    result = client.send("resources/read", params).result
    assert result["ttlMs"] == 0
    assert result["cacheScope"] == "private"


@resource("notes://", ttl_ms=60_000, cache_scope="public")
def list_notes() -> str:
    return "none"


def test_a_resource_without_questions_has_its_authors_cache_lifetime() -> None:
    result = Client(list_notes).send("resources/read", {"uri": "notes://"}).result
    assert result["ttlMs"] == 60_000
    assert result["cacheScope"] == "public"


def test_a_resource_that_was_read_with_answers_must_not_be_cached() -> None:
    result = Client(list_notes).send("resources/read", {"uri": "notes://", "inputResponses": {}}).result
    assert result["ttlMs"] == 0
    assert result["cacheScope"] == "private"


def test_a_resource_takes_precedence_over_a_template_that_matches_its_uri() -> None:
    @resource("a://{x}")
    def template(x: str) -> str:
        return x

    @resource("a://b")
    def exact() -> str:
        return "exact"

    client = Client(template, exact)
    assert client.send("resources/read", {"uri": "a://b"}).result["contents"][0]["text"] == "exact"
    assert client.send("resources/read", {"uri": "a://c"}).result["contents"][0]["text"] == "c"


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


# Notifications


LOG_LEVEL = wire.PREFIX + "logLevel"


@tool
def work(*, progress: Progress, log: Log) -> str:
    progress(1, total=2)
    progress(1)  # not sent, because it is no progress
    progress(2, total=2, message="done")
    log.debug("noise")
    log.warning({"disk": "full"}, logger="work")
    return "done"


def call_work(meta: dict[str, Any]) -> list[dict[str, Any]]:
    """Call `work`, and return the notifications that came before its result."""
    client = Client(work)
    assert client.call("work", meta=meta).text == "done"
    return client.messages[:-1]


def test_a_client_that_requested_no_progress_gets_none() -> None:
    assert call_work({}) == []


@pytest.mark.parametrize("token", ["p1", 0, 7])
def test_progress_has_the_token_of_the_request_and_increases(token: str | int) -> None:
    first, second = call_work({"progressToken": token})
    assert first["method"] == second["method"] == "notifications/progress"
    assert first["params"] == {"progressToken": token, "progress": 1, "total": 2}
    assert second["params"] == {"progressToken": token, "progress": 2, "total": 2, "message": "done"}


@pytest.mark.parametrize(
    ("level", "count"), [("debug", 2), ("info", 1), ("warning", 1), ("error", 0), ("emergency", 0)]
)
def test_log_messages_have_the_level_that_the_request_asks_for(level: str, count: int) -> None:
    messages = call_work({LOG_LEVEL: level})
    assert [message["method"] for message in messages] == ["notifications/message"] * count


def test_a_log_message_has_its_level_its_data_and_its_logger() -> None:
    (message,) = call_work({LOG_LEVEL: "warning"})
    assert message["params"] == {"level": "warning", "data": {"disk": "full"}, "logger": "work"}


@pytest.mark.parametrize(
    ("report", "rule"),
    [
        pytest.param(
            lambda progress, _log: progress(1, message=object()),
            "is text, and not of type …",
            id="the message of progress",
        ),
        pytest.param(
            lambda _progress, log: log.error("full", logger=object()),
            "JSON cannot carry what log.… was given",
            id="the logger of a log message",
        ),
        pytest.param(
            lambda _progress, log: log.error(object()),
            "JSON cannot carry what log.… was given",
            id="the data of a log message",
        ),
    ],
)
def test_progress_or_a_log_message_outside_json_fails_the_tool(
    report: Callable[[Progress, Log], None], rule: str, caplog: pytest.LogCaptureFixture
) -> None:
    @tool(name="work")
    def report_and_work(*, progress: Progress, log: Log) -> str:
        report(progress, log)
        return "done"

    reply = Client(report_and_work).call("work", meta={"progressToken": 1, LOG_LEVEL: "info"})
    assert reply.result["isError"] is True
    assert rule in caplog.text


def test_a_total_of_progress_outside_json_is_omitted() -> None:
    @tool
    def endless(*, progress: Progress) -> str:
        progress(1, total=float("inf"))
        return "done"

    client = Client(endless)
    assert client.call("endless", meta={"progressToken": 1}).result["isError"] is False
    assert client.messages[0]["params"] == {"progressToken": 1, "progress": 1}


@pytest.mark.parametrize(("total", "message"), [(None, "3"), (0, "3"), (8, "3 of 8")])
def test_a_progress_message_includes_the_total_if_there_is_one(total: float | None, message: str) -> None:
    round_ = Round()
    Progress(round_)(3, total=total)
    assert round_.progress_message == message


# Completions


@prompt
def translate(language: str) -> str:
    return f"Translate into {language}."


@translate.complete("language")
def _complete_language(value: str, arguments: Mapping[str, str]) -> list[str]:
    languages = ["german", "polish", "portuguese", *arguments.values()]
    return [language for language in languages if language.startswith(value)]


def complete(**changes: Any) -> wire.Reply:  # noqa: ANN401 - JSON
    """Complete "po", the beginning of a language. A keyword replaces a parameter of the request."""
    params = {"ref": {"type": "ref/prompt", "name": "translate"}, "argument": {"name": "language", "value": "po"}}
    return Client(translate, read_page).send("completion/complete", {**params, **changes})


def test_completion_complete_returns_the_values_of_an_argument() -> None:
    assert complete().result["completion"]["values"] == ["polish", "portuguese"]


def test_a_completion_may_depend_on_the_other_arguments() -> None:
    reply = complete(context={"arguments": {"other": "pomeranian"}})
    assert reply.result["completion"]["values"] == ["polish", "portuguese", "pomeranian"]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"ref": {"type": "ref/prompt", "name": "nobody"}}, id="an unknown prompt"),
        pytest.param({"ref": {"type": "ref/tool", "name": "translate"}}, id="an unknown type of reference"),
        pytest.param({"ref": None}, id="no reference"),
        pytest.param({"argument": {"name": "nothing", "value": ""}}, id="an unknown argument"),
        pytest.param({"argument": {"name": "language"}}, id="no value"),
        pytest.param({"argument": None}, id="no argument"),
        pytest.param({"context": []}, id="a context that is an array"),
        pytest.param({"context": {"arguments": {"x": 1}}}, id="an argument in the context that is a number"),
    ],
)
def test_an_invalid_completion_request_is_invalid_params(changes: dict[str, Any]) -> None:
    assert complete(**changes).code == INVALID_PARAMS


def test_a_completion_names_a_resource_by_its_template() -> None:
    reply = complete(ref={"type": "ref/resource", "uri": "docs://{page}"}, argument={"name": "page", "value": ""})
    assert reply.result["completion"]["values"] == []


# Texts that JSON escapes: the dispatcher copies parts of a response that were written before

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


def test_a_url_question_is_escaped_in_json() -> None:
    @tool
    def open_page(*, elicit: Elicit) -> str:
        elicit.url("page", QUOTED, "https://example.com/ü")
        return "opened"

    first = Client(open_page).call("open_page", capabilities={"elicitation": {"url": {}}})
    question = first.result["inputRequests"]["page"]["params"]
    assert question["message"] == QUOTED
    assert question["url"] == "https://example.com/ü"


def test_a_sampling_request_is_escaped_in_json() -> None:
    @tool
    def summarise(*, sample: Sample) -> str:
        return str(sample("summary", QUOTED, max_tokens=5)["content"])

    first = Client(summarise).call("summarise", capabilities={"sampling": {}})
    question = first.result["inputRequests"]["summary"]["params"]
    assert question["messages"][0]["content"] == {"type": "text", "text": QUOTED}


# A garbage collection would slow the imports of a cold start. `serve` imports more for a tool that asks.


def test_no_garbage_collection_runs_while_serve_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    enabled_at_import: list[bool] = []
    monkeypatch.setattr(serving, "import_module", lambda _module: enabled_at_import.append(gc.isenabled()))
    serve(greet)
    assert set(enabled_at_import) == {False}


def test_serve_enables_the_garbage_collector_again() -> None:
    serve(greet)
    assert gc.isenabled()


def test_serve_enables_the_garbage_collector_again_after_a_failed_import(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_module: str) -> None:
        raise ImportError

    monkeypatch.setattr(serving, "import_module", fail)
    with pytest.raises(ImportError):
        serve(greet)
    assert gc.isenabled()


def test_serve_leaves_a_disabled_garbage_collector_disabled() -> None:
    gc.disable()
    try:
        serve(greet)
        assert not gc.isenabled()
    finally:
        gc.enable()
