"""The dispatcher finds the handler of a request, asks its questions, and accepts a state only where it belongs.

`Client(tool, …)` has a Lambda function with these handlers. `call` calls a tool, or continues its conversation with a
state and answers; `send` sends any other request. Both return the reply, which the official types have checked.
"""

from __future__ import annotations

import gc
import json
import logging
from contextlib import nullcontext
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
from tests.support import wire
from tests.support.dispatching import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

INVALID_STATE_ERROR = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}
INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601


class Name(BaseModel):
    name: str


class Age(BaseModel):
    age: int


@tool
def greet(greeting: str, weight: float = 1, *, elicit: Elicit) -> str:  # noqa: ARG001 - a state is bound to it
    """Greet a person after two questions."""
    name = elicit("name", "Who are you?", Name).name
    age = elicit("age", f"How old are you, {name}?", Age).age
    return f"{greeting}, {name} ({age})"


@tool
def wave(greeting: str, *, elicit: Elicit) -> str:
    return f"{greeting}, {elicit('name', 'Who are you?', Name).name}"


@tool
def add(a: int, b: int) -> int:
    return a + b


@prompt
def brief(topic: str, *, elicit: Elicit) -> str:
    return f"{topic} for {elicit('name', 'For whom?', Name).name}"


@resource("notes://{owner}", ttl_ms=60_000, cache_scope="public")
def note(owner: str, *, elicit: Elicit) -> str:
    return f"{owner}: {elicit('name', 'Who asks?', Name).name}"


@resource("notes://", ttl_ms=60_000, cache_scope="public")
def notes() -> str:
    return "none"


GREETING = {"greeting": "Hi"}  # arguments of `greet`
ANN = {"name": {"action": "accept", "content": {"name": "Ann"}}}  # an answer to its first question
AGE = {"age": {"action": "accept", "content": {"age": 33}}}  # and to its second


@pytest.fixture
def client() -> Client:
    return Client(greet, wave, add, brief, note, notes)


@pytest.fixture
def state(client: Client) -> str:
    """Call `greet`, and return the state that came with its first question."""
    return client.call("greet", GREETING).state


def test_a_conversation_of_three_rounds_runs_end_to_end(client: Client) -> None:
    first = client.call("greet", GREETING)
    assert first.questions == ["name"]
    second = client.call("greet", GREETING, state=first.state, answers=ANN)
    assert second.result["inputRequests"]["age"]["params"]["message"] == "How old are you, Ann?"
    assert second.state != first.state
    third = client.call("greet", GREETING, state=second.state, answers=AGE)
    assert third.text == "Hi, Ann (33)"
    assert third.result["resultType"] == "complete"
    assert third.result["_meta"][wire.PREFIX + "serverInfo"] == {"name": "test", "version": "1"}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("prompts/get", {"name": "brief", "arguments": {"topic": "x"}}),
        ("resources/read", {"uri": "notes://ann"}),
    ],
)
def test_a_prompt_and_a_resource_hold_a_conversation_too(client: Client, method: str, params: dict[str, Any]) -> None:
    first = client.send(method, params)
    second = client.send(method, {**params, "requestState": first.state, "inputResponses": ANN})
    assert "Ann" in json.dumps(second.result)


# Methods and parameters


@pytest.mark.parametrize(
    "method",
    ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"],
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
        pytest.param("prompts/get", {"name": "greet"}, id="the name of a tool"),
        ("resources/read", {"uri": "notes:///"}),
        ("tools/list", {"cursor": "x"}),
    ],
)
def test_an_unknown_name_is_a_200_with_an_error(client: Client, method: str, params: dict[str, Any]) -> None:
    reply = client.send(method, params)
    assert reply.status == 200
    assert reply.code == INVALID_PARAMS


def test_the_error_for_an_unknown_resource_has_its_uri(client: Client) -> None:
    reply = client.send("resources/read", {"uri": "notes:///"})
    assert reply.body["error"]["data"] == {"uri": "notes:///"}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {}),
        ("tools/call", {"name": 7}),
        ("tools/call", {"name": "add", "arguments": []}),
        ("tools/call", {"name": "add", "arguments": "x"}),
        ("prompts/get", {"name": "brief", "arguments": {"topic": 7}}),
        ("resources/read", {"uri": None}),
        ("tools/call", {"name": "add", "inputResponses": None}),
        ("tools/call", {"name": "add", "inputResponses": []}),
        ("tools/call", {"name": "add", "inputResponses": {"x": 7}}),
        ("tools/call", {"name": "add", "inputResponses": {"x": None}}),
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


def test_arguments_that_do_not_fit_are_a_result(client: Client) -> None:
    reply = client.call("add", {"a": 1})
    assert reply.status == 200
    assert reply.result["isError"] is True


@pytest.mark.parametrize("arguments", [{}, {"topic": "x", "more": "y"}])
def test_a_prompts_arguments_that_do_not_fit_are_an_error(client: Client, arguments: dict[str, str]) -> None:
    assert client.send("prompts/get", {"name": "brief", "arguments": arguments}).code == INVALID_PARAMS


# Questions


def test_answers_without_a_state_do_not_replace_questions(client: Client) -> None:
    assert client.call("greet", GREETING, answers={**ANN, **AGE}).questions == ["name"]


def test_an_early_answer_to_a_later_question_does_not_count(client: Client, state: str) -> None:
    assert client.call("greet", GREETING, state=state, answers={**ANN, **AGE, "more": {"x": 1}}).questions == ["age"]


def test_a_missing_answer_is_asked_again_with_a_new_state(client: Client, state: str) -> None:
    reply = client.call("greet", GREETING, state=state)
    assert reply.questions == ["name"]
    assert reply.state != state


def test_a_question_with_an_invalid_answer_is_asked_again_with_the_reason(client: Client, state: str) -> None:
    invalid = {"name": {"action": "accept", "content": {"name": 7}}}
    reply = client.call("greet", GREETING, state=state, answers=invalid)
    message = reply.result["inputRequests"]["name"]["params"]["message"]
    assert message == "Who are you? (Please answer again: name should be a valid string.)"
    assert client.call("greet", GREETING, state=reply.state, answers=ANN).questions == ["age"]


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}], ids=["no capability", "only URLs"])
def test_a_question_that_the_client_cannot_show_is_never_asked(client: Client, capabilities: dict[str, Any]) -> None:
    reply = client.call("greet", GREETING, capabilities=capabilities)
    assert reply.status == 200
    assert reply.result["resultType"] == "complete"
    assert reply.result["isError"] is True
    assert "It asks: Who are you? (name: string)." in reply.text


def test_a_client_gets_error_32021_only_from_a_tool_that_requires_the_capability() -> None:
    @tool(requires=["elicitation"])
    def pay(*, elicit: Elicit) -> str:
        elicit.url("bank", "Sign in to the bank", "https://bank.example/login")
        return ""

    reply = Client(pay).call("pay", capabilities={"elicitation": {}})
    assert reply.status == 400
    assert reply.error == {
        "code": -32021,
        "message": "The client lacks a required capability: elicitation.url. "
        "The server would have asked: Sign in to the bank (https://bank.example/login)",
        "data": {"requiredCapabilities": {"elicitation": {"url": {}}}},
    }


def test_capabilities_are_those_of_each_request(client: Client, state: str) -> None:
    assert client.call("greet", GREETING, state=state, answers=ANN, capabilities={}).result["isError"] is True
    assert client.call("greet", GREETING, state=state, answers=ANN).questions == ["age"]


def test_a_client_without_capabilities_may_call_tools_without_questions(client: Client) -> None:
    assert client.call("add", {"a": 1, "b": 2}, capabilities={}).text == "3"


def test_sampling_and_roots_are_asked_of_clients_that_have_them() -> None:
    @tool(requires=["sampling"])
    def summarise(*, sample: Sample) -> str:
        return str(sample("summary", "Summarise", max_tokens=5)["content"]["text"])

    client = Client(summarise)
    refusal = client.call("summarise")
    assert refusal.body["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}
    first = client.call("summarise", capabilities={"sampling": {}})
    sampled = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Short"}}
    assert client.call("summarise", state=first.state, answers={"summary": sampled}).text == "Short"


# The low level: a function reads the state and the answers itself.


class Draft(BaseModel):
    rounds: int = 0


class Anything(BaseModel):
    value: Any = None


def test_the_low_level_keeps_its_state_between_rounds() -> None:
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


def test_a_state_that_json_cannot_hold_is_the_authors_mistake(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    def keep(*, state: RequestState[Anything]) -> str | InputRequiredResult:  # noqa: ARG001
        return InputRequiredResult(request_state=Anything(value={"hunter2": object()}))

    reply = Client(keep).call("keep")
    assert reply.status == 200
    assert reply.result["isError"] is True
    assert caplog.messages
    assert "hunter2" not in caplog.text


# A state belongs to one conversation


def test_a_retry_may_change_its_id_its_meta_and_the_spelling_of_its_numbers(client: Client) -> None:
    first = client.call("greet", {"greeting": "Hi", "weight": 2})
    meta = {"traceparent": "00-1", wire.PREFIX + "clientInfo": {"name": "c", "version": "2"}}
    arguments = {"weight": 2.0, "greeting": "Hi"}
    assert client.call("greet", arguments, state=first.state, answers=ANN, id="another", meta=meta).questions == ["age"]


@pytest.mark.parametrize("state", ["", "box.99", "box.x", "ks1.AAAA", "x" * 10_000, None, 7, [], {}, True])
def test_a_state_that_the_server_did_not_write_is_refused(client: Client, state: Any) -> None:  # noqa: ANN401
    reply = client.send("tools/call", {"name": "greet", "arguments": GREETING, "requestState": state})
    assert reply.status == 400
    assert reply.error == INVALID_STATE_ERROR


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "greet", "arguments": {"greeting": "Bye"}}),
        ("tools/call", {"name": "greet", "arguments": {"greeting": "Hi", "weight": 3}}),
        ("tools/call", {"name": "greet", "arguments": {"greeting": "Hi", "more": None}}),
        ("tools/call", {"name": "greet"}),
        ("tools/call", {"name": "wave", "arguments": {"greeting": "Hi"}}),
        ("prompts/get", {"name": "brief", "arguments": {"greeting": "Hi"}}),
        ("resources/read", {"uri": "notes://greet"}),
    ],
)
def test_a_state_belongs_to_one_method_name_and_arguments(
    client: Client, state: str, method: str, params: dict[str, Any]
) -> None:
    reply = client.send(method, {**params, "requestState": state})
    assert reply.status == 400
    assert reply.error == INVALID_STATE_ERROR


def test_a_state_belongs_to_one_uri(client: Client) -> None:
    state = client.send("resources/read", {"uri": "notes://ann"}).state
    assert client.send("resources/read", {"uri": "notes://bob", "requestState": state}).error == INVALID_STATE_ERROR


def test_a_state_belongs_to_one_function() -> None:
    codec = wire.Boxes()
    state = Client(greet, codec=codec).call("greet", GREETING).state
    other = Client(greet, codec=codec, audience="local/other/local")
    assert other.call("greet", GREETING, state=state).error == INVALID_STATE_ERROR


def test_a_state_belongs_to_one_principal() -> None:
    def signed_by(user: str) -> dict[str, Any]:
        return {"authorizer": {"iam": {"accountId": "1", "userId": user}}}

    client = Client(greet, auth_mode="iam")
    state = client.call("greet", GREETING, context=signed_by("ann")).state
    refusal = client.call("greet", GREETING, state=state, answers=ANN, context=signed_by("eve"))
    assert refusal.error == INVALID_STATE_ERROR
    assert client.call("greet", GREETING, state=state, answers=ANN, context=signed_by("ann")).questions == ["age"]


def test_a_state_expires_after_the_time_its_handler_gives() -> None:
    @tool(answer_within=60)
    def hurry(*, elicit: Elicit) -> str:
        return elicit("name", "Quick, who are you?", Name).name

    client = Client(hurry)
    state = client.call("hurry").state
    client.now += 59
    assert client.call("hurry", state=state, answers=ANN).text == "Ann"
    client.now += 1
    assert client.call("hurry", state=state, answers=ANN).error == INVALID_STATE_ERROR


@pytest.mark.parametrize("arguments", [{"a": 1, "b": 2}, {"a": "no number"}])
def test_a_state_is_verified_even_if_the_handler_never_reads_it(client: Client, arguments: dict[str, Any]) -> None:
    assert client.call("add", arguments, state="x").error == INVALID_STATE_ERROR


def test_a_function_without_keys_refuses_every_state(state: str) -> None:
    client = Client(add, has_keys=False)
    reply = client.call("add", {"a": 1, "b": 2}, state=state)
    assert reply.status == 400
    assert reply.error == INVALID_STATE_ERROR
    assert client.call("add", {"a": 1, "b": 2}).text == "3"


def test_only_the_log_shows_why_a_state_was_refused(
    client: Client, state: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mcp_functions")
    client.call("greet", {"greeting": "Bye"}, state=state)
    assert caplog.messages[-1] == "refused: -32602 arguments"


def test_an_asking_function_without_keys_tells_its_operator(caplog: pytest.LogCaptureFixture) -> None:
    reply = Client(greet, has_keys=False).call("greet", GREETING)
    assert reply.status == 500
    assert reply.error == {"code": -32603, "message": "Internal error"}
    assert caplog.messages == [
        "refused: -32603 greet asks, but MCP_KMS_KEYS is not set: its function needs the key and its policy"
    ]


def test_a_tool_with_too_many_rounds_ends_with_a_message_for_the_model() -> None:
    client = Client(greet, max_rounds=2)
    first = client.call("greet", GREETING)
    second = client.call("greet", GREETING, state=first.state)
    third = client.call("greet", GREETING, state=second.state)
    assert third.result["isError"] is True
    assert "rounds" in third.text


def test_a_prompt_with_too_many_rounds_ends_with_an_error() -> None:
    client = Client(brief, max_rounds=1)
    params = {"name": "brief", "arguments": {"topic": "x"}}
    first = client.send("prompts/get", params)
    second = client.send("prompts/get", {**params, "requestState": first.state})
    assert second.status == 200
    assert second.code == INVALID_PARAMS
    assert "rounds" in second.body["error"]["message"]


# Caching


def test_a_resource_that_asked_must_not_be_kept(client: Client) -> None:
    first = client.send("resources/read", {"uri": "notes://ann"})
    assert "ttlMs" not in first.result
    params = {"uri": "notes://ann", "requestState": first.state, "inputResponses": ANN}
    result = client.send("resources/read", params).result
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


def test_a_resource_without_questions_has_its_authors_cache_lifetime(client: Client) -> None:
    result = client.send("resources/read", {"uri": "notes://"}).result
    assert (result["ttlMs"], result["cacheScope"]) == (60_000, "public")


def test_a_resource_that_was_read_with_answers_must_not_be_kept(client: Client) -> None:
    result = client.send("resources/read", {"uri": "notes://", "inputResponses": {}}).result
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


def test_an_exact_resource_is_read_before_a_template_that_fits_it_too() -> None:
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


def test_not_even_a_bare_except_keeps_a_question_from_being_asked() -> None:
    @tool
    def catch_all(*, elicit: Elicit) -> str:
        try:
            return elicit("name", "Who are you?", Name).name
        except:  # noqa: E722 - as a careless author writes
            return "caught"

    assert Client(catch_all).call("catch_all").questions == ["name"]


# Notifications


@tool
def work(*, progress: Progress, log: Log) -> str:
    progress(1, total=2)
    progress(1)
    progress(2, total=2, message="done")
    log.debug("noise")
    log.warning({"disk": "full"}, logger="work")
    return "done"


def notifications(meta: dict[str, Any]) -> list[dict[str, Any]]:
    client = Client(work)
    assert client.call("work", meta=meta).text == "done"
    return client.messages[:-1]


def test_a_client_that_requested_no_progress_gets_none() -> None:
    assert notifications({}) == []


@pytest.mark.parametrize("token", ["p1", 0, 7])
def test_progress_goes_to_the_token_of_the_request_and_only_forward(token: str | int) -> None:
    first, second = notifications({"progressToken": token})
    assert first["method"] == second["method"] == "notifications/progress"
    assert first["params"] == {"progressToken": token, "progress": 1, "total": 2}
    assert second["params"] == {"progressToken": token, "progress": 2, "total": 2, "message": "done"}


@pytest.mark.parametrize(
    ("level", "count"), [("debug", 2), ("info", 1), ("warning", 1), ("error", 0), ("emergency", 0)]
)
def test_log_messages_have_the_level_that_the_request_asks_for(level: str, count: int) -> None:
    messages = notifications({wire.PREFIX + "logLevel": level})
    assert [message["method"] for message in messages] == ["notifications/message"] * count


def test_a_log_message_has_its_level_its_data_and_its_logger() -> None:
    (message,) = notifications({wire.PREFIX + "logLevel": "warning"})
    assert message["params"] == {"level": "warning", "data": {"disk": "full"}, "logger": "work"}


@pytest.mark.parametrize(
    ("report", "rule"),
    [
        (lambda progress, _log: progress(1, message=object()), "is text, and not of type …"),
        (lambda _progress, log: log.error("full", logger=object()), "JSON cannot carry what log.… was given"),
        (lambda _progress, log: log.error(object()), "JSON cannot carry what log.… was given"),
    ],
    ids=["the message of progress", "the logger of a log message", "the data of a log message"],
)
def test_a_report_that_json_cannot_hold_is_a_failure_of_the_tool(
    report: Callable[[Progress, Log], None], rule: str, caplog: pytest.LogCaptureFixture
) -> None:
    @tool(name="work")
    def report_and_work(*, progress: Progress, log: Log) -> str:
        report(progress, log)
        return "done"

    reply = Client(report_and_work).call("work", meta={"progressToken": 1, wire.PREFIX + "logLevel": "info"})
    assert reply.result["isError"] is True
    assert rule in caplog.text


def test_a_total_that_json_cannot_hold_is_left_out() -> None:
    @tool
    def endless(*, progress: Progress) -> str:
        progress(1, total=float("inf"))
        return "done"

    client = Client(endless)
    assert client.call("endless", meta={"progressToken": 1}).result["isError"] is False
    assert client.messages[0]["params"] == {"progressToken": 1, "progress": 1}


# Completions


@prompt
def hello(language: str) -> str:
    return language


@hello.complete("language")
def _languages(value: str, arguments: Mapping[str, str]) -> list[str]:
    return [word for word in ("polish", "portuguese", *arguments.values()) if word.startswith(value)]


def complete(**changes: Any) -> wire.Reply:  # noqa: ANN401 - JSON
    """Complete "po", the beginning of a language. A keyword replaces a parameter of the request."""
    params = {"ref": {"type": "ref/prompt", "name": "hello"}, "argument": {"name": "language", "value": "po"}}
    return Client(hello, note).send("completion/complete", {**params, **changes})


def test_an_argument_is_completed() -> None:
    assert complete().result["completion"]["values"] == ["polish", "portuguese"]


def test_a_completion_may_depend_on_the_other_arguments() -> None:
    reply = complete(context={"arguments": {"other": "pod"}})
    assert reply.result["completion"]["values"] == ["polish", "portuguese", "pod"]


@pytest.mark.parametrize(
    "changes",
    [
        {"ref": {"type": "ref/prompt", "name": "nobody"}},
        {"ref": {"type": "ref/tool", "name": "hello"}},
        {"ref": None},
        {"argument": {"name": "nothing", "value": ""}},
        {"argument": {"name": "language"}},
        {"argument": None},
        {"context": []},
        {"context": {"arguments": {"x": 1}}},
    ],
)
def test_a_completion_of_nothing_is_invalid_params(changes: dict[str, Any]) -> None:
    assert complete(**changes).code == INVALID_PARAMS


def test_a_completion_names_a_resource_by_its_template() -> None:
    reply = complete(ref={"type": "ref/resource", "uri": "notes://{owner}"}, argument={"name": "owner", "value": ""})
    assert reply.result["completion"]["values"] == []


# Texts that JSON escapes


def test_every_kind_of_question_is_escaped_in_json() -> None:
    class Form(BaseModel):
        name: str = 'a "name" \\ ü'

    class EscapedCodec(wire.Boxes):
        """Writes states that JSON must escape."""

        def seal(self, payload: bytes) -> str:
            return f'"\\ü{super().seal(payload)}'

        def unseal(self, token: str) -> bytes:
            return super().unseal(token[3:])

    @tool
    def ask(a: str, *, elicit: Elicit, sample: Sample, log: Log) -> str:
        log.warning("asking")
        name = elicit('k"ey', f'Who is "{a}"?\n\\', Form).name
        elicit.url("page", f"Look at ü{a}", "https://example.com/ü")
        return f"{name} {sample('s', a, max_tokens=1)['role']}"

    client = Client(ask, codec=EscapedCodec())
    arguments = {"a": 'ü"\\'}
    capabilities: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}}
    answers = {'k"ey': {"action": "accept", "content": {"name": '"'}}, "page": {"action": "accept"}}
    sampled = {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}

    first = client.call("ask", arguments, capabilities=capabilities)
    assert first.state.startswith('"\\ü')
    assert first.result["inputRequests"]['k"ey']["params"]["message"] == 'Who is "ü"\\"?\n\\'
    second = client.call("ask", arguments, state=first.state, answers=answers, capabilities=capabilities)
    third = client.call("ask", arguments, state=second.state, answers=answers, capabilities=capabilities)
    assert third.questions == ["s"]
    last = client.call("ask", arguments, state=third.state, answers={"s": sampled}, capabilities=capabilities)
    assert last.text == '" assistant'


# A garbage collection would slow the imports of a cold start.


@pytest.mark.parametrize("enabled", [True, False], ids=["collector on", "collector off"])
@pytest.mark.parametrize("error", [None, ImportError], ids=["import works", "import fails"])
def test_no_collection_runs_while_serve_imports_and_the_collector_is_restored(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception] | None, *, enabled: bool
) -> None:
    enabled_at_import: list[bool] = []

    def import_module(_module: str) -> None:
        enabled_at_import.append(gc.isenabled())
        if error:
            raise error

    monkeypatch.setattr(serving, "import_module", import_module)
    set_collector(enabled=enabled)
    try:
        with pytest.raises(error) if error else nullcontext():
            serve(wave)
        assert gc.isenabled() is enabled
    finally:
        set_collector(enabled=True)
    assert set(enabled_at_import) == {False}


def set_collector(*, enabled: bool) -> None:
    if enabled:
        gc.enable()
    else:
        gc.disable()
