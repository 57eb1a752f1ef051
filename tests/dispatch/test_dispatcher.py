"""A method finds its handler, and the state of a conversation is believed only by the request it belongs to.

Requests go in as events and come out as responses; the seal is `wire.Boxes`: nothing here is about cryptography.
No `from __future__ import annotations` here: the functions below are read as an author writes them.
"""

import gc
import json
import logging
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, Literal

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
from mcp_functions.handlers.base import Handler
from mcp_functions.http.exchange import Endpoint
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.seal.codec_adapter import CodecAdapter
from mcp_functions.seal.request_state import RequestStates
from mcp_functions.settings import Settings
from tests.support import wire
from tests.support.dispatching import dispatcher

REFUSED = {"code": -32602, "message": "Invalid or expired requestState", "data": {"reason": "invalid_request_state"}}


class Clock:
    def __init__(self) -> None:
        self.now = 1_785_000_000.0

    def __call__(self) -> float:
        return self.now


class App:
    """A Lambda with some handlers; `send` returns the checked JSON-RPC response."""

    def __init__(
        self,
        *handlers: Handler[..., Any],
        keys: bool = True,
        auth_mode: Literal["none", "iam"] = "none",
        audience: str = "local/test/local",
        boxes: wire.Boxes | None = None,
        max_rounds: int = 16,
    ) -> None:
        self.clock = Clock()
        self.status = 0
        boxes = boxes or wire.Boxes()
        settings = Settings(stack="local", auth_mode=auth_mode, server_name="test", server_version="1")

        def states(*, lifetime: int, label: bytes = b"") -> RequestStates:  # noqa: ARG001 - one label
            anonymous = auth_mode == "none"
            return RequestStates(
                CodecAdapter(boxes, b""),
                now=self.clock,
                lifetime_seconds=lifetime,
                anonymous=anonymous,
                max_rounds=max_rounds,
            )

        server = dispatcher(handlers, settings, audience, states if keys else None, now=self.clock)

        self._function = LambdaFunction(lambda _name, _now: Endpoint(settings, server.answer), handlers, now=self.clock)

    def send(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:  # noqa: ANN401
        sent = wire.message(method, params, **options)
        event = wire.event(sent, headers=options.get("headers", {}), context=options.get("context", {}))
        response = self._function(event, wire.Context())
        self.status = response["statusCode"]
        received = wire.read(response, method)
        assert received["id"] == sent["id"]
        return received

    def call(self, name: str, **params: Any) -> dict[str, Any]:  # noqa: ANN401
        options = {key: params.pop(key) for key in ("id", "capabilities", "meta", "context") if key in params}
        return self.send("tools/call", {"name": name, **params}, **options)


def accept(**content: object) -> dict[str, Any]:
    return {"action": "accept", "content": content}


def text(received: dict[str, Any]) -> str:
    (block,) = received["result"]["content"]
    return str(block["text"])


class Name(BaseModel):
    name: str


class Age(BaseModel):
    age: int


@tool
def greet(greeting: str, weight: float = 1, *, elicit: Elicit) -> str:  # noqa: ARG001 - it is bound all the same
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


EVERY = (greet, wave, add, brief, note, notes)


@pytest.fixture
def app() -> App:
    return App(*EVERY)


def begun(app: App, **options: Any) -> str:  # noqa: ANN401
    """Ask the first question, and return the state that it left."""
    return str(app.call("greet", arguments={"greeting": "Hi"}, **options)["result"]["requestState"])


def test_a_conversation_of_three_rounds_runs_end_to_end(app: App) -> None:
    first = app.call("greet", arguments={"greeting": "Hi"}, id=1)["result"]
    assert list(first["inputRequests"]) == ["name"]
    second = app.call(
        "greet",
        arguments={"greeting": "Hi"},
        requestState=first["requestState"],
        inputResponses={"name": accept(name="Ann")},
        id="two",
    )["result"]
    assert second["inputRequests"]["age"]["params"]["message"] == "How old are you, Ann?"
    assert second["requestState"] != first["requestState"]
    third = app.call(
        "greet",
        arguments={"greeting": "Hi"},
        requestState=second["requestState"],
        inputResponses={"age": accept(age=33)},
        id=3,
    )
    assert text(third) == "Hi, Ann (33)"
    assert third["result"]["resultType"] == "complete"
    assert third["result"]["_meta"][wire.PREFIX + "serverInfo"] == {"name": "test", "version": "1"}


def test_a_prompt_and_a_resource_hold_a_conversation_too(app: App) -> None:
    for method, params in (
        ("prompts/get", {"name": "brief", "arguments": {"topic": "x"}}),
        ("resources/read", {"uri": "notes://ann"}),
    ):
        first = app.send(method, params)["result"]
        answered = {**params, "requestState": first["requestState"], "inputResponses": {"name": accept(name="Bo")}}
        assert "Bo" in json.dumps(app.send(method, answered)["result"])


@pytest.mark.parametrize(
    "method",
    ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"],
)
def test_the_dispatcher_answers_every_list(app: App, method: str) -> None:
    assert app.send(method)["result"]["resultType"] == "complete"
    assert app.status == 200


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
def test_any_other_method_is_404_with_a_json_rpc_body(app: App, method: str) -> None:
    assert app.send(method)["error"] == {"code": -32601, "message": "Method not found"}
    assert app.status == 404


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
    app = App(add)
    assert app.send(method, params)["error"]["code"] == -32601
    assert app.status == 404


@pytest.mark.parametrize(
    ("method", "params", "data"),
    [
        ("tools/call", {"name": "nothing"}, None),
        ("prompts/get", {"name": "greet"}, None),
        ("resources/read", {"uri": "notes:///"}, {"uri": "notes:///"}),
        ("tools/list", {"cursor": "x"}, None),
    ],
)
def test_an_unknown_name_is_a_200_with_an_error(
    app: App, method: str, params: dict[str, Any], data: dict[str, Any] | None
) -> None:
    error = app.send(method, params)["error"]
    assert (app.status, error["code"], error.get("data")) == (200, -32602, data)


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
def test_params_of_another_shape_are_400(app: App, method: str, params: dict[str, Any]) -> None:
    assert app.send(method, params)["error"]["code"] == -32602
    assert app.status == 400


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
def test_reserved_meta_of_another_shape_is_400(app: App, meta: dict[str, Any]) -> None:
    assert app.call("add", arguments={"a": 1, "b": 2}, meta=meta)["error"]["code"] == -32602
    assert app.status == 400


def test_arguments_that_do_not_fit_are_a_result(app: App) -> None:
    result = app.call("add", arguments={"a": 1})["result"]
    assert (app.status, result["isError"]) == (200, True)


@pytest.mark.parametrize("arguments", [{}, {"topic": "x", "more": "y"}])
def test_a_prompts_arguments_that_do_not_fit_are_an_error(app: App, arguments: dict[str, str]) -> None:
    assert app.send("prompts/get", {"name": "brief", "arguments": arguments})["error"]["code"] == -32602


# Questions


def test_answers_without_a_state_do_not_replace_questions(app: App) -> None:
    cold = {"name": accept(name="Eve"), "age": accept(age=1)}
    result = app.call("greet", arguments={"greeting": "Hi"}, inputResponses=cold)["result"]
    assert list(result["inputRequests"]) == ["name"]


def test_an_early_answer_to_a_later_question_does_not_count(app: App) -> None:
    early = {"name": accept(name="Ann"), "age": accept(age=1), "more": {"x": 1}}
    result = app.call("greet", arguments={"greeting": "Hi"}, requestState=begun(app), inputResponses=early)["result"]
    assert list(result["inputRequests"]) == ["age"]


def test_a_missing_answer_is_asked_again_with_a_new_state(app: App) -> None:
    state = begun(app)
    result = app.call("greet", arguments={"greeting": "Hi"}, requestState=state)["result"]
    assert list(result["inputRequests"]) == ["name"]
    assert result["requestState"] != state


def test_a_question_with_an_invalid_answer_is_asked_again_with_the_reason(app: App) -> None:
    answered = {"name": accept(name=7)}
    result = app.call("greet", arguments={"greeting": "Hi"}, requestState=begun(app), inputResponses=answered)["result"]
    message = result["inputRequests"]["name"]["params"]["message"]
    assert message == "Who are you? (Please answer again: name should be a valid string.)"
    done = app.call(
        "greet",
        arguments={"greeting": "Hi"},
        requestState=result["requestState"],
        inputResponses={"name": accept(name="Ann")},
    )
    assert list(done["result"]["inputRequests"]) == ["age"]


def test_a_question_that_the_client_cannot_show_is_never_asked(app: App) -> None:
    only_urls: dict[str, Any] = {"elicitation": {"url": {}}}
    for declared in ({}, only_urls):
        result = app.call("greet", arguments={"greeting": "Hi"}, capabilities=declared)["result"]
        assert (app.status, result["resultType"], result["isError"]) == (200, "complete", True)
        assert "It asks: Who are you? (name: string)." in result["content"][0]["text"]


def test_a_client_gets_error_32021_only_from_a_tool_that_requires_the_capability() -> None:
    @tool(requires=["elicitation"])
    def pays(*, elicit: Elicit, sample: Sample) -> str:
        if sample.possible:
            return str(sample("summary", "Summarise", max_tokens=5))
        elicit.url("bank", "Sign in to the bank", "https://bank.example/login")
        return ""

    says = "The client lacks a required capability: "
    app = App(pays)
    error = app.call("pays", capabilities={"elicitation": {}})["error"]
    assert (app.status, error["code"]) == (400, -32021)
    assert error["message"] == (
        f"{says}elicitation.url. The server would have asked: Sign in to the bank (https://bank.example/login)"
    )
    assert error["data"] == {"requiredCapabilities": {"elicitation": {"url": {}}}}


def test_capabilities_are_those_of_each_request(app: App) -> None:
    state, answered = begun(app), {"name": accept(name="Ann")}
    params = {"arguments": {"greeting": "Hi"}, "requestState": state, "inputResponses": answered}
    assert app.call("greet", **params, capabilities={})["result"]["isError"] is True
    assert "inputRequests" in app.call("greet", **params)["result"]


def test_a_client_without_capabilities_may_call_tools_without_questions(app: App) -> None:
    assert text(app.call("add", arguments={"a": 1, "b": 2}, capabilities={})) == "3"


def test_sampling_and_roots_are_asked_of_clients_that_have_them() -> None:
    @tool(requires=["sampling"])
    def summarise(*, sample: Sample) -> str:
        return str(sample("summary", "Summarise", max_tokens=5)["content"]["text"])

    app = App(summarise)
    assert app.call("summarise")["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}
    first = app.call("summarise", capabilities={"sampling": {}})["result"]
    said = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Short"}}
    done = app.call("summarise", requestState=first["requestState"], inputResponses={"summary": said})
    assert text(done) == "Short"


def test_the_low_level_keeps_its_state_between_rounds() -> None:
    class Draft(BaseModel):
        rounds: int = 0

    @tool
    def count(*, responses: InputResponses, state: RequestState[Draft]) -> str | InputRequiredResult:
        if state.value.rounds == 2:
            return f"{state.value.rounds} {sorted(responses)}"
        return InputRequiredResult({"roots": ListRootsRequest()}, Draft(rounds=state.value.rounds + 1))

    app, more = App(count), dict[str, Any]()
    for _round in range(2):
        result = app.call("count", capabilities={"roots": {}}, **more)["result"]
        more = {"requestState": result["requestState"], "inputResponses": {"roots": {"roots": []}}}
    assert text(app.call("count", capabilities={"roots": {}}, **more)) == "2 ['roots']"


def test_a_state_without_a_question_comes_with_empty_input_requests() -> None:
    class Draft(BaseModel):
        done: bool = False

    @tool
    def twice(*, state: RequestState[Draft]) -> str | InputRequiredResult:
        return "done" if state.value.done else InputRequiredResult(request_state=Draft(done=True))

    app = App(twice)
    result = app.call("twice", capabilities={})["result"]
    assert result["inputRequests"] == {}
    assert text(app.call("twice", capabilities={}, requestState=result["requestState"])) == "done"


# The state and the request it belongs to


def test_a_retry_may_change_its_id_its_meta_and_the_spelling_of_its_numbers(app: App) -> None:
    first = app.call("greet", arguments={"greeting": "Hi", "weight": 2})["result"]
    result = app.call(
        "greet",
        arguments={"weight": 2.0, "greeting": "Hi"},
        requestState=first["requestState"],
        inputResponses={"name": accept(name="Ann")},
        id="another",
        meta={"traceparent": "00-1", wire.PREFIX + "clientInfo": {"name": "c", "version": "2"}},
    )["result"]
    assert list(result["inputRequests"]) == ["age"]


@pytest.mark.parametrize("state", ["", "box.99", "box.x", "ks1.AAAA", "x" * 10_000, None, 7, [], {}, True])
def test_a_state_that_never_was_is_refused(app: App, state: Any) -> None:  # noqa: ANN401
    assert app.call("greet", arguments={"greeting": "Hi"}, requestState=state)["error"] == REFUSED
    assert app.status == 400


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
def test_a_state_belongs_to_one_method_name_and_arguments(app: App, method: str, params: dict[str, Any]) -> None:
    state = begun(app)
    assert app.send(method, {**params, "requestState": state})["error"] == REFUSED
    assert app.status == 400


def test_a_state_belongs_to_one_uri(app: App) -> None:
    state = app.send("resources/read", {"uri": "notes://ann"})["result"]["requestState"]
    assert app.send("resources/read", {"uri": "notes://bob", "requestState": state})["error"] == REFUSED


def test_a_state_belongs_to_one_function() -> None:
    boxes = wire.Boxes()
    one, other = App(greet, boxes=boxes), App(greet, boxes=boxes, audience="local/other/local")
    state = begun(one)
    assert other.call("greet", arguments={"greeting": "Hi"}, requestState=state)["error"] == REFUSED


def test_a_state_belongs_to_one_principal() -> None:
    def signed_in(user: str) -> dict[str, Any]:
        return {"authorizer": {"iam": {"accountId": "1", "userId": user}}}

    app = App(greet, auth_mode="iam")
    state = begun(app, context=signed_in("ann"))
    params = {"arguments": {"greeting": "Hi"}, "requestState": state, "inputResponses": {"name": accept(name="Ann")}}
    assert app.call("greet", **params, context=signed_in("eve"))["error"] == REFUSED
    assert "result" in app.call("greet", **params, context=signed_in("ann"))


def test_a_state_expires_after_the_time_its_handler_gives(app: App) -> None:
    @tool(answer_within=60)
    def hurry(*, elicit: Elicit) -> str:
        return elicit("name", "Quick, who are you?", Name).name

    app = App(hurry)
    state = app.call("hurry")["result"]["requestState"]
    params = {"requestState": state, "inputResponses": {"name": accept(name="Ann")}}
    app.clock.now += 59
    assert text(app.call("hurry", **params)) == "Ann"
    app.clock.now += 1
    assert app.call("hurry", **params)["error"] == REFUSED


def test_a_state_is_verified_even_if_the_handler_never_reads_it(app: App) -> None:
    assert app.call("add", arguments={"a": 1, "b": 2}, requestState="x")["error"] == REFUSED
    assert app.call("add", arguments={"a": "no number"}, requestState="x")["error"] == REFUSED


def test_a_function_without_keys_refuses_every_state() -> None:
    app = App(add, keys=False)
    assert app.call("add", arguments={"a": 1, "b": 2}, requestState=begun(App(greet)))["error"] == REFUSED
    assert app.status == 400
    assert text(app.call("add", arguments={"a": 1, "b": 2})) == "3"


def test_only_the_log_shows_why_a_state_was_refused(app: App, caplog: pytest.LogCaptureFixture) -> None:
    state = begun(app)
    with caplog.at_level(logging.INFO, "mcp_functions"):
        app.call("greet", arguments={"greeting": "Bye"}, requestState=state)
    assert caplog.messages == ["refused: -32602 arguments"]


def test_an_asking_function_without_keys_tells_its_operator(caplog: pytest.LogCaptureFixture) -> None:
    app = App(greet, keys=False)
    error = app.call("greet", arguments={"greeting": "Hi"})["error"]
    assert (app.status, error) == (500, {"code": -32603, "message": "Internal error"})
    assert caplog.messages == [
        "refused: -32603 greet asks, but MCP_KMS_KEYS is not set: its function needs the key and its policy"
    ]


def test_an_endless_conversation_ends_with_a_message_for_the_model() -> None:
    app, more = App(greet, brief, max_rounds=2), dict[str, Any]()
    for _round in range(2):
        more = {"requestState": app.call("greet", arguments={"greeting": "Hi"}, **more)["result"]["requestState"]}
    result = app.call("greet", arguments={"greeting": "Hi"}, **more)["result"]
    assert result["isError"] is True
    assert "rounds" in result["content"][0]["text"]
    params: dict[str, Any] = {"name": "brief", "arguments": {"topic": "x"}}
    for _round in range(2):
        params = {**params, "requestState": app.send("prompts/get", params)["result"]["requestState"]}
    error = app.send("prompts/get", params)["error"]
    assert (app.status, error["code"]) == (200, -32602)
    assert "rounds" in error["message"]


# Caching


def test_a_resource_that_asked_must_not_be_kept(app: App) -> None:
    first = app.send("resources/read", {"uri": "notes://ann"})["result"]
    assert "ttlMs" not in first
    answered = {"requestState": first["requestState"], "inputResponses": {"name": accept(name="Bo")}}
    done = app.send("resources/read", {"uri": "notes://ann", **answered})["result"]
    assert (done["ttlMs"], done["cacheScope"]) == (0, "private")


def test_a_resource_without_questions_has_its_authors_cache_lifetime(app: App) -> None:
    result = app.send("resources/read", {"uri": "notes://"})["result"]
    assert (result["ttlMs"], result["cacheScope"]) == (60_000, "public")
    cold = app.send("resources/read", {"uri": "notes://", "inputResponses": {}})["result"]
    assert (cold["ttlMs"], cold["cacheScope"]) == (0, "private")


def test_an_exact_resource_is_read_before_a_template_that_fits_it_too() -> None:
    @resource("a://{x}")
    def some(x: str) -> str:
        return x

    @resource("a://b")
    def exact() -> str:
        return "exact"

    app = App(some, exact)
    assert app.send("resources/read", {"uri": "a://b"})["result"]["contents"][0]["text"] == "exact"
    assert app.send("resources/read", {"uri": "a://c"})["result"]["contents"][0]["text"] == "c"


# The author's mistakes


def test_only_the_log_names_a_rule_that_an_author_breaks(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    def muddled(*, elicit: Elicit) -> str:
        elicit("name", "Who are you?", Name)
        return elicit("name", "And you?", Name).name

    app = App(muddled)
    state = app.call("muddled")["result"]["requestState"]
    result = app.call("muddled", requestState=state, inputResponses={"name": accept(name="hunter2")})["result"]
    assert (app.status, result["isError"]) == (200, True)
    (said,) = caplog.messages
    assert said.startswith("failed: two different questions under the key …: give each question a key of its own at ")
    assert f"{__file__}:" in said
    assert "hunter2" not in caplog.text


def test_not_even_a_bare_except_keeps_a_question_from_being_asked() -> None:
    @tool
    def greedy(*, elicit: Elicit) -> str:
        try:
            return elicit("name", "Who are you?", Name).name
        except:  # noqa: E722 - as a careless author writes
            return "swallowed"

    assert list(App(greedy).call("greedy")["result"]["inputRequests"]) == ["name"]


def test_a_state_that_cannot_be_kept_is_the_authors_mistake(caplog: pytest.LogCaptureFixture) -> None:
    class Loose(BaseModel):
        value: Any = None

    @tool
    def keeper(*, state: RequestState[Loose]) -> str | InputRequiredResult:  # noqa: ARG001
        return InputRequiredResult(request_state=Loose(value={"hunter2": object()}))

    app = App(keeper)
    assert app.call("keeper")["result"]["isError"] is True
    assert app.status == 200
    assert caplog.messages
    assert "hunter2" not in caplog.text


# Notifications and completions


@tool
def work(*, progress: Progress, log: Log) -> str:
    progress(1, total=2)
    progress(1)
    progress(2, total=2, message="done")
    log.debug("noise")
    log.warning({"disk": "full"}, logger="work")
    return "done"


def notifications(meta: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    sent = wire.message("tools/call", {"name": "work"}, meta=meta)
    settings = Settings(stack="local", auth_mode="none")
    server = dispatcher((work,), settings, "a", None)
    response = LambdaFunction(lambda _name, _now: Endpoint(settings, server.answer))(wire.event(sent), wire.Context())
    *before, last = wire.messages(response)
    assert last["result"]["content"][0]["text"] == "done"
    return [(message["method"], message["params"]) for message in before]


def test_a_client_that_requested_no_progress_gets_none() -> None:
    assert notifications({}) == []


@pytest.mark.parametrize("token", ["p1", 0, 7])
def test_progress_goes_to_the_token_of_the_request_and_only_forward(token: str | int) -> None:
    assert notifications({"progressToken": token}) == [
        ("notifications/progress", {"progressToken": token, "progress": 1, "total": 2}),
        ("notifications/progress", {"progressToken": token, "progress": 2, "total": 2, "message": "done"}),
    ]


@pytest.mark.parametrize(
    ("level", "count"), [("debug", 2), ("info", 1), ("warning", 1), ("error", 0), ("emergency", 0)]
)
def test_log_messages_have_the_level_that_the_request_asks_for(level: str, count: int) -> None:
    sent = notifications({wire.PREFIX + "logLevel": level})
    assert [method for method, _params in sent] == ["notifications/message"] * count
    if count:
        assert sent[-1][1] == {"level": "warning", "data": {"disk": "full"}, "logger": "work"}


@pytest.mark.parametrize("wrong", ["message", "logger", "data"])
def test_a_report_that_json_cannot_hold_is_a_failure_of_the_tool(wrong: str, caplog: pytest.LogCaptureFixture) -> None:
    thing: Any = object()

    @tool
    def reporting(*, progress: Progress, log: Log) -> str:
        if wrong == "message":
            progress(1, message=thing)
        elif wrong == "logger":
            log.error("full", logger=thing)
        else:
            log.error(thing)
        return "done"

    sent = wire.message(
        "tools/call", {"name": "reporting"}, meta={"progressToken": 1, wire.PREFIX + "logLevel": "info"}
    )
    (message,) = wire.messages(serve(reporting)(wire.event(sent), wire.Context()))
    assert message["result"]["isError"] is True
    assert "is text, and not of type …" in caplog.text or "JSON cannot carry what log.… was given" in caplog.text


def test_a_total_that_json_cannot_hold_is_left_out() -> None:
    @tool
    def endless(*, progress: Progress) -> str:
        progress(1, total=float("inf"))
        return "done"

    sent = wire.message("tools/call", {"name": "endless"}, meta={"progressToken": 1})
    told, last = wire.messages(serve(endless)(wire.event(sent), wire.Context()))
    assert told["params"] == {"progressToken": 1, "progress": 1}
    assert last["result"]["isError"] is False


@prompt
def hello(language: str) -> str:
    return language


@hello.complete("language")
def _languages(value: str, arguments: Mapping[str, str]) -> list[str]:
    return [word for word in ("polish", "portuguese", *arguments.values()) if word.startswith(value)]


def completing(**params: Any) -> dict[str, Any]:  # noqa: ANN401
    asked = {"ref": {"type": "ref/prompt", "name": "hello"}, "argument": {"name": "language", "value": "po"}}
    return App(hello, note).send("completion/complete", {**asked, **params})


def test_an_argument_is_completed() -> None:
    assert completing()["result"]["completion"]["values"] == ["polish", "portuguese"]
    known = completing(context={"arguments": {"other": "pod"}})
    assert known["result"]["completion"]["values"] == ["polish", "portuguese", "pod"]


@pytest.mark.parametrize(
    "params",
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
def test_a_completion_of_nothing_is_invalid_params(params: dict[str, Any]) -> None:
    assert completing(**params)["error"]["code"] == -32602


def test_a_resource_template_is_referred_to_by_its_template() -> None:
    asked = {"ref": {"type": "ref/resource", "uri": "notes://{owner}"}, "argument": {"name": "owner", "value": ""}}
    assert App(hello, note).send("completion/complete", asked)["result"]["completion"]["values"] == []


def test_every_question_is_written_exactly_as_the_result_holds_it() -> None:
    class Form(BaseModel):
        name: str = 'a "name" \\ ü'

    class Odd(wire.Boxes):
        """Makes tokens that JSON does not carry as they are."""

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

    app = App(ask, boxes=Odd())
    sent = {"arguments": {"a": 'ü"\\'}, "capabilities": {"elicitation": {"form": {}, "url": {}}, "sampling": {}}}
    first = app.call("ask", **sent)["result"]
    assert first["requestState"].startswith('"\\ü')
    assert first["inputRequests"]['k"ey']["params"]["message"] == 'Who is "ü"\\"?\n\\'
    answers = {'k"ey': accept(name='"'), "page": {"action": "accept"}}
    second = app.call("ask", **sent, inputResponses=answers, requestState=first["requestState"])["result"]
    third = app.call("ask", **sent, inputResponses=answers, requestState=second["requestState"])["result"]
    assert [*third["inputRequests"]] == ["s"]
    said = {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}
    done = app.call("ask", **sent, inputResponses={"s": said}, requestState=third["requestState"])
    assert text(done) == '" assistant'


@pytest.mark.parametrize("collects", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_no_collection_runs_while_serve_imports_and_afterwards_all_is_as_it_was(
    monkeypatch: pytest.MonkeyPatch, *, collects: bool, fails: bool
) -> None:
    seen: list[bool] = []

    def imported(_module: str) -> None:
        seen.append(gc.isenabled())
        if fails:
            raise ImportError

    @tool
    def asks(*, elicit: Elicit) -> str:
        return elicit("name", "Who?", Name).name

    monkeypatch.setattr(serving, "import_module", imported)
    before = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        with pytest.raises(ImportError) if fails else nullcontext():
            serving.serve(asks)
        assert gc.isenabled() is collects
    finally:
        (gc.enable if before else gc.disable)()
    assert seen
    assert not any(seen)
