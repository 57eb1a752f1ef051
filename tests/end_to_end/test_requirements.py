"""Requirements of the specification that no module's own test proves: over HTTP, from a Lambda and from the front door.

test_matrix.py says which row of the requirements each belongs to. No `from __future__ import annotations` here: the
functions below are read as an author writes them.
"""

import base64
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from mcp_functions import (
    Audio,
    CallToolResult,
    CreateMessageRequest,
    Elicit,
    EmbeddedResource,
    Image,
    Log,
    Progress,
    PromptMessage,
    ResourceContents,
    ResourceLink,
    Sample,
    Text,
    ToolError,
    prompt,
    resource,
    tool,
)
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol import errors
from mcp_functions.protocol.errors import DeveloperError, McpError
from mcp_functions.rounds.elicitation import ElicitRequest
from tests.support import gateways, wire
from tests.support.placements import PLACEMENTS, place

EVERYTHING: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
PACKAGE = Path(__file__).parents[2] / "layers" / "shared" / "mcp_functions"
HALF = "\udcff"  # what os.fsdecode makes of a file name that is not UTF-8


class City(BaseModel):
    city: str


@tool(title="Echo", annotations={"readOnlyHint": True}, icons=[{"src": "https://example.com/echo.png"}])
def echo(text: str = "echo", *, progress: Progress, log: Log) -> str:
    """Return the text."""
    progress(1, total=2)
    log.info({"said": text})
    return text


@tool
def ask(*, elicit: Elicit) -> str:
    """Ask where."""
    return elicit("where", "Where?", City).city


@tool
def everything() -> CallToolResult:
    """Return content of every type."""
    contents = ResourceContents("config://app", b"\x00\xff", "application/octet-stream")
    sound = Audio(b"\x00", "audio/wav", {"audience": ["user"], "priority": 0.5})
    link = ResourceLink("config://app", "app", mime_type="text/plain", size=3)
    return CallToolResult([Text("a"), Image(b"\xff", "image/png"), sound, link, EmbeddedResource(contents)])


@prompt(title="Brief")
def brief(topic: str) -> list[PromptMessage]:
    """Return a briefing."""
    picture = Image(b"\xff", "image/png")
    return [PromptMessage("assistant", topic), PromptMessage("user", picture), PromptMessage("user", f"About {topic}")]


@brief.complete("topic")
def topics(value: str, _arguments: Mapping[str, str]) -> list[str]:
    return [topic for topic in ("tea", "time") if topic.startswith(value)]


@resource("config://app", mime_type="application/json", ttl_ms=5, cache_scope="public")
def config() -> dict[str, int]:
    """Read the configuration."""
    return {"a": 1}


@resource("pictures://{name}", mime_type="image/png")
def picture(name: str) -> bytes:
    """Read a picture."""
    return name.encode()


HANDLERS = (echo, ask, everything, brief, config, picture)
TEA = {"type": "ref/prompt", "name": "brief"}
METHODS: dict[str, dict[str, Any]] = {
    "server/discover": {},
    "tools/list": {},
    "prompts/list": {},
    "resources/list": {},
    "resources/templates/list": {},
    "tools/call": {"name": "echo"},
    "prompts/get": {"name": "brief", "arguments": {"topic": "tea"}},
    "resources/read": {"uri": "config://app"},
    "completion/complete": {"ref": TEA, "argument": {"name": "topic", "value": "t"}},
}
CACHEABLE = {name for name in METHODS if "/list" in name} | {"server/discover", "resources/read"}
every_method = pytest.mark.parametrize("method", METHODS)


@pytest.fixture(scope="module", params=PLACEMENTS)
def function(request: pytest.FixtureRequest) -> LambdaFunction:
    return place(request.param, *HANDLERS)


def send(function: LambdaFunction, method: str, params: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:  # noqa: ANN401
    sent = wire.message(method, params, **{"capabilities": EVERYTHING, **options})
    response = function(wire.event(sent, headers=options.get("headers", {})), wire.Context("local_all"))
    assert response["body"].encode().decode() == response["body"]
    return {**response, "message": wire.read(response, method)}


def result(function: LambdaFunction, method: str, params: dict[str, Any] | None = None, **options: Any) -> Any:  # noqa: ANN401
    return send(function, method, params, **options)["message"]["result"]


# --- A: messages --------------------------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("id_", [0, 7, -1, "", "1", "ключ"])
def test_every_result_names_its_type_its_request_and_its_server(
    method: str, id_: str | int, function: LambdaFunction
) -> None:
    message = send(function, method, METHODS[method], id=id_)["message"]
    assert (message["jsonrpc"], message["id"], type(message["id"])) == ("2.0", id_, type(id_))
    assert message["result"]["resultType"] == "complete"
    assert message["result"]["_meta"] == {wire.PREFIX + "serverInfo": {"name": "tested", "version": "local"}}


def test_no_text_of_an_author_changes_the_type_of_a_result() -> None:
    @tool
    def sly() -> dict[str, Any]:
        return {"resultType": "task", "isError": True, "content": [], "inputRequests": {}, "requestState": "x"}

    answer = result(place("direct", sly), "tools/call", {"name": "sly"})
    assert (answer["resultType"], answer["isError"], len(answer["content"])) == ("complete", False, 1)
    assert answer["structuredContent"]["resultType"] == "task"
    assert answer.keys() == {"resultType", "content", "structuredContent", "isError", "_meta"}


def test_every_error_has_a_code_of_the_specification_and_one_sentence() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, McpError)]
    assert len(kinds) > 10
    for kind in kinds:
        assert kind.code in wire.ERRORS
        assert kind.status in {200, 400, 401, 403, 404, 413, 415, 500, 503, 504}
        assert re.fullmatch(r"[A-Z][^.\n]{3,80}", kind.default_message)
    assert not set(wire.ERRORS) & {-32002, -32042, *range(-32019, -31999)}


def test_no_code_is_written_anywhere_but_beside_its_name() -> None:
    shipped = {file for file in PACKAGE.rglob("*.py") if not {PACKAGE / "local", PACKAGE / "attack"} & {*file.parents}}
    retired = PACKAGE / "legacy" / "errors.py"  # only clients of 2025 get these codes
    assert set(re.findall(r"-3[12]\d{3}\b", _code_of(retired.read_text(encoding="utf-8")))) == {"-32002", "-32042"}
    for file in shipped - {PACKAGE / "protocol" / "errors.py", retired}:
        assert re.findall(r"-3[12]\d{3}\b", _code_of(file.read_text(encoding="utf-8"))) == [], file.name


def _code_of(text: str) -> str:
    """Leave out comments and strings, which may explain codes."""
    return re.sub(r'#[^\n]*|"""(?:.|\n)*?"""|"[^"\n]*"', "", text)


def halves() -> list[tuple[str, dict[str, Any], Any]]:
    """Everything that an author can say with half a character in it."""

    @tool
    def text() -> str:
        return HALF

    @tool
    def structure() -> dict[str, str]:
        return {"name": HALF}

    @tool
    def names() -> dict[str, str]:
        return {HALF: "name"}

    @tool
    def failure() -> str:
        raise ToolError(HALF)

    @tool
    def question(*, elicit: Elicit) -> str:
        return elicit("where", HALF, City).city

    @tool
    def report(*, progress: Progress, log: Log) -> str:
        progress(1, message=HALF)
        log.info(HALF)
        return "done"

    @prompt
    def words() -> str:
        return HALF

    @resource("files://latest")
    def file() -> str:
        return HALF

    tools: list[Any] = [text, structure, names, failure, question, report]
    calls: list[tuple[str, dict[str, Any], Any]] = [("tools/call", {"name": one.name}, one) for one in tools]
    return [*calls, ("prompts/get", {"name": "words"}, words), ("resources/read", {"uri": "files://latest"}, file)]


@pytest.mark.parametrize(("method", "params", "handler"), halves(), ids=[one.name for *_, one in halves()])
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_every_response_is_utf_8(method: str, params: dict[str, Any], handler: Any, placement: str) -> None:  # noqa: ANN401
    meta = {"progressToken": 1, wire.PREFIX + "logLevel": "debug"}
    response = send(place(placement, handler), method, params, meta=meta)
    assert response["statusCode"] in (200, 500)


# --- B: _meta -----------------------------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize(
    "info",
    [
        None,
        7,
        "x",
        [],
        {},
        {"name": "c", "version": "1"},
        {"name": "ChatGPT", "version": "0", "admin": True, "title": 1},
    ],
)
def test_who_the_client_says_it_is_decides_nothing(method: str, info: object, function: LambdaFunction) -> None:
    known = {wire.PREFIX + "clientInfo": info}
    assert result(function, method, METHODS[method], meta=known) == result(function, method, METHODS[method])


@every_method
@pytest.mark.parametrize(
    "trace",
    [
        {
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "tracestate": "a=b",
            "baggage": "c=d",
        },
        {"traceparent": "00-00000000000000000000000000000000-0000000000000000-00"},
        {"traceparent": "garbage", "tracestate": "=", "baggage": ";"},
        {"traceparent": 7, "tracestate": None, "baggage": ["x"]},
    ],
)
def test_an_invalid_trace_never_fails_a_request(method: str, trace: dict[str, Any], function: LambdaFunction) -> None:
    assert result(function, method, METHODS[method], meta=trace) == result(function, method, METHODS[method])


@every_method
def test_unknown_keys_of_meta_are_ignored(method: str, function: LambdaFunction) -> None:
    strange = {"com.example/flag": True, wire.PREFIX + "futureThing": {"a": 1}, "x": None, "": 1, "related-task": {}}
    assert result(function, method, METHODS[method], meta=strange) == result(function, method, METHODS[method])


@pytest.mark.parametrize(
    "key",
    ["bad key", "", "/x", "-a", "a-", "1a.b/x", "a..b/x", "dev.mcp/x", "com.mcp.tools/x", "io.modelcontextprotocol/x"],
)
def test_an_authors_meta_has_keys_of_the_grammar_and_no_reserved_prefix(key: str) -> None:
    with pytest.raises(TypeError, match=r"_meta"):
        tool(meta={key: 1})(ask.function)


@pytest.mark.parametrize("key", ["a", "a-b.c_1", "com.example/", "com.example/flag", "com.example.mcp/x", "example/x"])
def test_an_authors_meta_is_passed_on(key: str) -> None:
    assert tool(meta={key: 1})(ask.function).describe()["_meta"] == {key: 1}


# --- C, E: HTTP ---------------------------------------------------------------------------------------------------


@every_method
def test_a_request_is_answered_as_json_or_as_a_stream(method: str, function: LambdaFunction) -> None:
    plain = send(function, method, METHODS[method])
    assert (plain["statusCode"], plain["headers"]["content-type"]) == (200, "application/json")
    meta = {"progressToken": "p", wire.PREFIX + "logLevel": "info"}
    asked = send(function, method, METHODS[method], meta=meta)
    expected = "text/event-stream" if method == "tools/call" else "application/json"
    assert (asked["statusCode"], asked["headers"]["content-type"]) == (200, expected)


def test_a_stream_is_notifications_of_this_request_and_then_its_response_and_nothing_more(
    function: LambdaFunction,
) -> None:
    meta = {"progressToken": "p", wire.PREFIX + "logLevel": "info"}
    response = send(function, "tools/call", METHODS["tools/call"], meta=meta, id="last")
    told = wire.messages(response)
    assert [message.get("method") for message in told] == ["notifications/progress", "notifications/message", None]
    assert told[-1]["id"] == "last"
    assert response["headers"]["x-accel-buffering"] == "no"
    assert re.fullmatch(r"(event: message\ndata: [^\n]+\n\n)+", response["body"])


def test_no_stream_has_ids_or_hints_to_come_back(function: LambdaFunction) -> None:
    """Resumption is gone: "Last-Event-ID", event ids and `retry` belong to earlier revisions."""
    response = send(function, "tools/call", METHODS["tools/call"], meta={"progressToken": 7})
    fields = {line.partition(":")[0] for line in response["body"].splitlines() if line}
    assert fields == {"event", "data"}


def test_a_cancellation_of_anything_is_accepted_and_forgotten(function: LambdaFunction) -> None:
    for params in ({"requestId": 1}, {"requestId": "never"}, {"requestId": None}, {}, {"requestId": 1, "reason": 7}):
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        response = function(gateways.http_api(gateways.sent(message)), wire.Context("local_all"))
        assert (response["statusCode"], response["body"]) == (202, "")


def test_a_notification_needs_no_headers_of_the_protocol(function: LambdaFunction) -> None:
    message = json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    response = function(wire.event(message, headers={"content-type": "application/json"}), wire.Context("local_all"))
    assert response["statusCode"] == 202


# --- F: discovery -------------------------------------------------------------------------------------------------

LISTED = {"tools": "tools/list", "prompts": "prompts/list", "resources": "resources/list"}


def test_discovery_lists_capabilities_in_the_body_and_the_server_in_meta(function: LambdaFunction) -> None:
    found = result(function, "server/discover")
    assert found.keys() == {"resultType", "supportedVersions", "capabilities", "ttlMs", "cacheScope", "_meta"}
    assert found["supportedVersions"] == [wire.VERSION]
    assert found["capabilities"] == {"tools": {}, "prompts": {}, "resources": {}, "completions": {}, "logging": {}}


def test_the_versions_of_an_error_are_those_of_discovery(function: LambdaFunction) -> None:
    refused = send(function, "tools/list", version="2099-01-01")
    told = refused["message"]["error"]
    assert (refused["statusCode"], told["code"]) == (400, -32022)
    assert told["data"] == {
        "supported": result(function, "server/discover")["supportedVersions"],
        "requested": "2099-01-01",
    }


@pytest.mark.parametrize(
    "version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "draft", "", "2026-07-28 "]
)
def test_no_other_version_is_supported(version: str, function: LambdaFunction) -> None:
    refused = send(function, "tools/list", version=version)
    expected = -32020 if version.endswith(" ") else -32022  # blanks around a header's value do not count
    assert (refused["statusCode"], refused["message"]["error"]["code"]) == (400, expected)


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("handler", [echo, ask, brief, config, picture], ids=lambda handler: handler.name)
def test_advertised_methods_are_served_and_others_are_unknown(handler: Any, placement: str) -> None:  # noqa: ANN401
    function = place(placement, handler)
    capabilities = result(function, "server/discover")["capabilities"]
    for capability, method in LISTED.items():
        status = send(function, method)["statusCode"]
        assert status == (200 if capability in capabilities else 404), method
    for method, params in METHODS.items():
        family = method.partition("/")[0].replace("completion", "completions")
        if family not in capabilities and family != "server":
            assert send(function, method, params)["message"]["error"]["code"] == -32601, method


@pytest.mark.parametrize(
    "method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "roots/list", "elicitation/create"]
)
def test_methods_that_the_revision_removed_are_404_even_with_a_valid_envelope(
    method: str, function: LambdaFunction
) -> None:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    refused = send(function, method, params)
    assert (refused["statusCode"], refused["message"]["error"]["code"]) == (404, -32601)


@pytest.mark.parametrize("params", [{}, {"notifications": {}}, {"notifications": {"toolsListChanged": True}}])
def test_subscriptions_are_neither_advertised_nor_accepted(params: dict[str, Any], function: LambdaFunction) -> None:
    refused = send(function, "subscriptions/listen", params)
    assert (refused["statusCode"], refused["message"]["error"]["code"]) == (404, -32601)
    assert "listChanged" not in json.dumps(result(function, "server/discover"))
    assert "subscribe" not in json.dumps(result(function, "server/discover"))


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel", "tasks/list", "tasks/result"])
def test_extensions_are_off_by_default(method: str, function: LambdaFunction) -> None:
    assert "extensions" not in result(function, "server/discover")["capabilities"]
    offers = {**EVERYTHING, "extensions": {"io.modelcontextprotocol/tasks": {}, "com.example/x": {"a": 1}}}
    refused = send(function, method, {"taskId": "t"}, capabilities=offers, headers={"mcp-name": "t"})
    assert (refused["statusCode"], refused["message"]["error"]["code"]) == (404, -32601)
    for known, params in METHODS.items():
        assert result(function, known, params, capabilities=offers) == result(function, known, params)


# --- G: rounds ----------------------------------------------------------------------------------------------------


def test_every_round_has_a_new_state_and_forbids_caching(function: LambdaFunction) -> None:
    seen: set[str] = set()
    params: dict[str, Any] = {"name": "ask"}
    for number in range(4):
        asked = result(function, "tools/call", params, id=number)
        assert asked.keys() == {"resultType", "inputRequests", "requestState", "_meta"}
        assert asked["requestState"] not in seen
        seen.add(asked["requestState"])
        params = {"name": "ask", "inputResponses": {}, "requestState": asked["requestState"]}


# --- J, K, L: what is offered -------------------------------------------------------------------------------------


def test_a_list_is_the_same_for_every_caller_and_at_any_time(function: LambdaFunction) -> None:
    before = result(function, "tools/list")
    for method, params in METHODS.items():
        send(function, method, params, capabilities={})
    send(function, "tools/call", {"name": "ask"})
    assert result(function, "tools/list", capabilities={}, meta={wire.PREFIX + "logLevel": "debug"}) == before


def test_every_result_of_a_call_has_content_and_an_error_flag(function: LambdaFunction) -> None:
    for params in ({"name": "echo"}, {"name": "echo", "arguments": {"text": 7}}, {"name": "everything"}):
        answer = result(function, "tools/call", params)
        assert isinstance(answer["content"], list)
        assert isinstance(answer["isError"], bool)


def test_bytes_are_base64_and_have_their_type(function: LambdaFunction) -> None:
    _text, image, audio, _link, embedded = result(function, "tools/call", {"name": "everything"})["content"]
    assert (image["mimeType"], base64.b64decode(image["data"], validate=True)) == ("image/png", b"\xff")
    assert (audio["mimeType"], base64.b64decode(audio["data"], validate=True)) == ("audio/wav", b"\x00")
    contents = embedded["resource"]
    assert contents["mimeType"] == "application/octet-stream"
    assert base64.b64decode(contents["blob"], validate=True) == b"\x00\xff"
    (read,) = result(function, "resources/read", {"uri": "pictures://tea%2Fcup"})["contents"]
    assert read == {"uri": "pictures://tea%2Fcup", "mimeType": "image/png", "blob": "dGVhL2N1cA=="}


@pytest.mark.parametrize("uri", ["config://nothing", "pictures://", "file:///etc/passwd", "config://app/../x", "", "x"])
def test_a_resource_that_is_not_there_is_an_error_that_names_it_and_never_empty(
    uri: str, function: LambdaFunction
) -> None:
    message = send(function, "resources/read", {"uri": uri})["message"]
    assert message["error"] == {"code": -32602, "message": "Resource not found", "data": {"uri": uri}}


@pytest.mark.parametrize("value", [None, [], {}, "", b""])
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_resource_that_is_there_has_contents_even_if_they_are_empty(value: Any, placement: str) -> None:  # noqa: ANN401
    def empty():  # type: ignore[no-untyped-def]  # noqa: ANN202
        return value

    function = place(placement, resource("a://b")(empty))
    (contents,) = result(function, "resources/read", {"uri": "a://b"})["contents"]
    assert contents["uri"] == "a://b"


@pytest.mark.parametrize(
    "uri", ["", "no-scheme", "a b://c", "1a://b", "://x", "/path", "a://b c", "a://b\n", "config", "{x}", "{x}://a"]
)
def test_a_resource_has_a_uri(uri: str) -> None:
    """RFC 3986: a scheme, a colon, and no blanks."""

    def whole() -> str:
        return ""

    def one(x: str) -> str:
        return x

    with pytest.raises(TypeError, match="URI"):
        resource(uri)(one if "{x}" in uri else whole)


@pytest.mark.parametrize(
    "options", [{"ttl_ms": -1}, {"ttl_ms": 1.5}, {"ttl_ms": True}, {"cache_scope": "shared"}, {"cache_scope": ""}]
)
def test_the_cache_lifetime_and_scope_of_a_resource_follow_the_specification(
    options: dict[str, Any],
) -> None:
    with pytest.raises(TypeError, match=r"ttl_ms|cache_scope"):
        resource("a://b", **options)(config.function)


@every_method
def test_only_cacheable_results_have_cache_hints(method: str, function: LambdaFunction) -> None:
    answer = result(function, method, METHODS[method])
    assert ({"ttlMs", "cacheScope"} <= answer.keys()) == (method in CACHEABLE)
    if method in CACHEABLE:
        assert type(answer["ttlMs"]) is int
        assert answer["cacheScope"] in ("public", "private")


# --- N: what is asked of the client -------------------------------------------------------------------------------

USE = {"type": "tool_use", "id": "u1", "name": "weather", "input": {}}
USED = {"type": "tool_result", "toolUseId": "u1", "content": [{"type": "text", "text": "sunny"}]}
WORDS = {"type": "text", "text": "Well?"}


@pytest.mark.parametrize("name", ["password", "api_key", "apiKey", "client_secret", "access_token", "private_key"])
def test_a_form_does_not_ask_for_secrets(name: str) -> None:
    """Values of a form pass the client and may reach its model, so a secret needs a page."""
    form = type("Login", (BaseModel,), {"__annotations__": {name: str}})
    with pytest.raises(DeveloperError, match=f"{name}.*url"):
        ElicitRequest("Who are you?", form).wire()


def test_a_secret_by_type_is_refused_too() -> None:
    class Login(BaseModel):
        word: SecretStr

    with pytest.raises(DeveloperError, match="word"):
        ElicitRequest("Who are you?", Login).wire()


@pytest.mark.parametrize(
    "url", ["https://", "https:///path", "https://exa mple.com", "https://example.com/\n", "https:x"]
)
def test_a_page_has_a_url_that_a_browser_can_open(url: str) -> None:
    with pytest.raises(DeveloperError, match="URL"):
        ElicitRequest.url("Please sign in", url).wire()


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "assistant", "content": USE}, {"role": "user", "content": [USED, WORDS]}],
        [{"role": "assistant", "content": USE}, {"role": "user", "content": WORDS}],
        [{"role": "assistant", "content": [USE, {**USE, "id": "u2"}]}, {"role": "user", "content": [USED]}],
        [{"role": "assistant", "content": USE}, {"role": "user", "content": {**USED, "toolUseId": "u2"}}],
    ],
    ids=["a result with words", "words first", "one result of two", "a result of another use"],
)
def test_a_conversation_with_tools_answers_every_use_before_anything_else(messages: list[dict[str, Any]]) -> None:
    with pytest.raises(DeveloperError, match="tool_"):
        CreateMessageRequest(messages, 10, {"tools": []}).wire()


def test_a_conversation_with_tools_that_answers_every_use_is_asked() -> None:
    said: list[dict[str, Any]] = [
        {"role": "user", "content": WORDS},
        {"role": "assistant", "content": [WORDS, USE, {**USE, "id": "u2"}]},
        {"role": "user", "content": [{**USED, "toolUseId": "u2"}, USED]},
        {"role": "assistant", "content": WORDS},
    ]
    params: Any = CreateMessageRequest(said, 10, {"tools": []}).wire()["params"]
    assert params["messages"] == said


@pytest.mark.parametrize(
    ("context", "declared", "asked"),
    [
        ("none", {}, True),
        ("thisServer", {}, False),
        ("allServers", {"tools": {}}, False),
        ("allServers", {"context": {}}, True),
    ],
)
def test_the_context_of_other_servers_is_asked_of_clients_that_share_it(
    context: str, declared: dict[str, Any], *, asked: bool
) -> None:
    @tool(requires=["sampling.context"])
    def curious(*, sample: Sample) -> str:
        return str(sample("said", "Hi", max_tokens=5, includeContext=context))

    message = send(place("direct", curious), "tools/call", {"name": "curious"}, capabilities={"sampling": declared})[
        "message"
    ]
    if asked:
        assert message["result"]["resultType"] == "input_required"
    else:
        assert message["error"]["data"] == {"requiredCapabilities": {"sampling": {"context": {}}}}


# --- I, O ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wild", [float("nan"), float("inf"), float("-inf")])
def test_progress_that_is_not_a_number_is_not_sent(wild: float) -> None:
    @tool
    def work(*, progress: Progress) -> str:
        for done in (1, wild, 1, 2):
            progress(done)
        return "done"

    response = send(place("direct", work), "tools/call", {"name": "work"}, meta={"progressToken": 1})
    *told, last = wire.messages(response)
    assert [message["params"]["progress"] for message in told] == [1, 2]
    assert last["result"]["isError"] is False


def test_the_dialect_of_schemas_is_documented() -> None:
    pages = [PACKAGE.parent.parent.parent / "README.md", *(PACKAGE.parent.parent.parent / "docs").glob("*.md")]
    assert any("JSON Schema 2020-12" in page.read_text(encoding="utf-8") for page in pages)
