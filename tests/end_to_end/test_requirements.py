"""Requirements of the MCP specification that concern the whole server; matrix.toml names the requirement of each test.

`function` is a Lambda with the handlers below, called directly or through the front door. `send` sends it a request,
and `wire.read` checks each response with the official types. The decorators read real annotations at run time, so this
module does not import `annotations` from `__future__`.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_functions import Elicit, Log, Progress, Sample, ToolError, prompt, resource, tool
from mcp_functions.content import (
    Audio,
    CallToolResult,
    EmbeddedResource,
    Image,
    PromptMessage,
    ResourceContents,
    ResourceLink,
    Text,
)
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol import errors
from mcp_functions.protocol.errors import McpError
from tests.support import gateways, wire
from tests.support.placements import PLACEMENTS, place

EVERYTHING: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
PACKAGE = Path(__file__).parents[2] / "layers" / "shared" / "mcp_functions"
LONE_SURROGATE = "\udcff"  # os.fsdecode makes it of a file name that is not UTF-8


class City(BaseModel):
    city: str


@tool(title="Echo", annotations={"readOnlyHint": True}, icons=[{"src": "https://example.com/echo.png"}])
def echo(text: str = "echo", *, progress: Progress, log: Log) -> str:
    """Return the text."""
    progress(1, total=2)
    log.info({"text": text})
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
CACHEABLE = [
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
]
every_method = pytest.mark.parametrize("method", METHODS)


@pytest.fixture(scope="module", params=PLACEMENTS)
def function(request: pytest.FixtureRequest) -> LambdaFunction:
    return place(request.param, *HANDLERS)


def send(function: LambdaFunction, method: str, params: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the HTTP response, with its JSON-RPC message as `message`. The options are those of `wire.message`."""
    request = wire.message(method, params, **{"capabilities": EVERYTHING, **options})
    response = function(wire.event(request, headers=options.get("headers", {})), wire.Context("local_all"))
    assert response["body"].encode().decode() == response["body"]
    return {**response, "message": wire.read(response, method)}


def result(function: LambdaFunction, method: str, params: dict[str, Any] | None = None, **options: Any) -> Any:  # noqa: ANN401
    return send(function, method, params, **options)["message"]["result"]


def assert_error(response: dict[str, Any], *, status: int, code: int) -> None:
    assert response["statusCode"] == status
    assert response["message"]["error"]["code"] == code


# --- A: messages --------------------------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("id_", [0, 7, -1, "", "1", "ключ"])
def test_every_result_has_its_type_its_requests_id_and_the_server_info(
    method: str, id_: str | int, function: LambdaFunction
) -> None:
    message = send(function, method, METHODS[method], id=id_)["message"]
    assert message["jsonrpc"] == "2.0"
    assert message["id"] == id_
    assert message["result"]["resultType"] == "complete"
    assert message["result"]["_meta"] == {wire.PREFIX + "serverInfo": {"name": "tested", "version": "local"}}


def test_a_value_with_the_members_of_a_result_stays_structured_content() -> None:
    value = {"resultType": "task", "isError": True, "content": [], "inputRequests": {}, "requestState": "x"}

    @tool
    def misleading() -> dict[str, Any]:
        return value

    answer = result(place("direct", misleading), "tools/call", {"name": "misleading"})
    assert answer.keys() == {"resultType", "content", "structuredContent", "isError", "_meta"}
    assert answer["resultType"] == "complete"
    assert answer["isError"] is False
    assert answer["structuredContent"] == value


ERROR_CLASSES = [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, McpError)]


@pytest.mark.parametrize("error", ERROR_CLASSES)
def test_every_error_has_a_code_of_the_specification_and_one_sentence(error: type[McpError]) -> None:
    assert error.code in wire.ERRORS
    assert error.status in {200, 400, 401, 403, 404, 413, 415, 500, 503, 504}
    assert re.fullmatch(r"[A-Z][^.\n]{3,80}", error.default_message)


RETIRED_ERRORS = PACKAGE / "legacy" / "errors.py"  # for clients of 2025
ERRORS = PACKAGE / "protocol" / "errors.py"


def codes_in(file: Path) -> set[str]:
    """Find the JSON-RPC error codes in a module, without its comments and strings, which may explain codes."""
    code = re.sub(r'#[^\n]*|"""(?:.|\n)*?"""|"[^"\n]*"', "", file.read_text(encoding="utf-8"))
    return set(re.findall(r"-3[12]\d{3}\b", code))


def test_codes_that_the_specification_retired_are_only_for_clients_of_2025() -> None:
    assert codes_in(RETIRED_ERRORS) == {"-32002", "-32042"}


def test_no_other_module_has_a_code() -> None:
    local_tools = {*(PACKAGE / "local").rglob("*.py"), *(PACKAGE / "attack").rglob("*.py")}
    for file in {*PACKAGE.rglob("*.py")} - local_tools - {ERRORS, RETIRED_ERRORS}:
        assert codes_in(file) == set(), file.name


def requests_with_lone_surrogates() -> list[Any]:
    """Return method, params and handler: a text of an author that UTF-8 cannot encode, in each possible place."""

    @tool
    def text() -> str:
        return LONE_SURROGATE

    @tool
    def structure() -> dict[str, str]:
        return {"name": LONE_SURROGATE}

    @tool
    def names() -> dict[str, str]:
        return {LONE_SURROGATE: "name"}

    @tool
    def failure() -> str:
        raise ToolError(LONE_SURROGATE)

    @tool
    def question(*, elicit: Elicit) -> str:
        return elicit("where", LONE_SURROGATE, City).city

    @tool
    def report(*, progress: Progress, log: Log) -> str:
        progress(1, message=LONE_SURROGATE)
        log.info(LONE_SURROGATE)
        return "done"

    @prompt
    def words() -> str:
        return LONE_SURROGATE

    @resource("files://latest")
    def file() -> str:
        return LONE_SURROGATE

    tools: list[Any] = [text, structure, names, failure, question, report]
    return [
        *(pytest.param("tools/call", {"name": tool.name}, tool, id=tool.name) for tool in tools),
        pytest.param("prompts/get", {"name": "words"}, words, id="words"),
        pytest.param("resources/read", {"uri": "files://latest"}, file, id="file"),
    ]


@pytest.mark.parametrize(("method", "params", "handler"), requests_with_lone_surrogates())
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
def test_the_client_info_does_not_change_the_result(method: str, info: object, function: LambdaFunction) -> None:
    meta = {wire.PREFIX + "clientInfo": info}
    assert result(function, method, METHODS[method], meta=meta) == result(function, method, METHODS[method])


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
def test_a_trace_context_does_not_change_the_result(
    method: str, trace: dict[str, Any], function: LambdaFunction
) -> None:
    assert result(function, method, METHODS[method], meta=trace) == result(function, method, METHODS[method])


@every_method
def test_unknown_keys_of_meta_are_ignored(method: str, function: LambdaFunction) -> None:
    unknown = {"com.example/flag": True, wire.PREFIX + "futureThing": {"a": 1}, "x": None, "": 1, "related-task": {}}
    assert result(function, method, METHODS[method], meta=unknown) == result(function, method, METHODS[method])


@pytest.mark.parametrize(
    "key",
    ["bad key", "", "/x", "-a", "a-", "1a.b/x", "a..b/x", "dev.mcp/x", "com.mcp.tools/x", "io.modelcontextprotocol/x"],
)
def test_a_meta_key_outside_the_grammar_or_with_a_reserved_prefix_is_refused(key: str) -> None:
    with pytest.raises(TypeError, match=r"_meta"):
        tool(meta={key: 1})(ask.function)


@pytest.mark.parametrize("key", ["a", "a-b.c_1", "com.example/", "com.example/flag", "com.example.mcp/x", "example/x"])
def test_a_valid_meta_key_is_published(key: str) -> None:
    assert tool(meta={key: 1})(ask.function).describe()["_meta"] == {key: 1}


# --- C, E: HTTP ---------------------------------------------------------------------------------------------------


STREAM_META = {"progressToken": "p", wire.PREFIX + "logLevel": "info"}  # asks for notifications


@every_method
def test_a_response_without_notifications_is_json(method: str, function: LambdaFunction) -> None:
    response = send(function, method, METHODS[method])
    assert response["statusCode"] == 200
    assert response["headers"]["content-type"] == "application/json"


def test_a_response_with_notifications_is_an_event_stream(function: LambdaFunction) -> None:
    response = send(function, "tools/call", {"name": "echo"}, meta=STREAM_META)
    assert response["headers"]["content-type"] == "text/event-stream"
    assert response["headers"]["x-accel-buffering"] == "no"
    assert re.fullmatch(r"(event: message\ndata: [^\n]+\n\n)+", response["body"])


def test_an_event_stream_has_the_notifications_of_its_request_and_then_the_response(function: LambdaFunction) -> None:
    messages = wire.messages(send(function, "tools/call", {"name": "echo"}, meta=STREAM_META, id="last"))
    assert [message.get("method") for message in messages] == [
        "notifications/progress",
        "notifications/message",
        None,
    ]
    assert messages[-1]["id"] == "last"


def test_an_event_stream_has_no_event_ids_and_no_retry(function: LambdaFunction) -> None:
    """Only earlier versions of the protocol can resume a stream."""
    response = send(function, "tools/call", METHODS["tools/call"], meta={"progressToken": 7})
    fields = {line.partition(":")[0] for line in response["body"].splitlines() if line}
    assert fields == {"event", "data"}


@pytest.mark.parametrize(
    "params",
    [{"requestId": 1}, {"requestId": "never"}, {"requestId": None}, {}, {"requestId": 1, "reason": 7}],
)
def test_every_cancellation_is_accepted(params: dict[str, Any], function: LambdaFunction) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    response = function(gateways.http_api(gateways.http_request(message)), wire.Context("local_all"))
    assert response["statusCode"] == 202
    assert response["body"] == ""


def test_a_notification_needs_no_headers_of_the_protocol(function: LambdaFunction) -> None:
    message = json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    response = function(wire.event(message, headers={"content-type": "application/json"}), wire.Context("local_all"))
    assert response["statusCode"] == 202


# --- F: discovery -------------------------------------------------------------------------------------------------


def test_discovery_lists_versions_and_capabilities(function: LambdaFunction) -> None:
    discovery = result(function, "server/discover")
    assert discovery.keys() == {"resultType", "supportedVersions", "capabilities", "ttlMs", "cacheScope", "_meta"}
    assert discovery["supportedVersions"] == [wire.VERSION]
    assert discovery["capabilities"] == {"tools": {}, "prompts": {}, "resources": {}, "completions": {}, "logging": {}}


def test_the_error_for_another_version_lists_the_supported_ones(function: LambdaFunction) -> None:
    response = send(function, "tools/list", version="2099-01-01")
    assert_error(response, status=400, code=-32022)
    assert response["message"]["error"]["data"] == {"supported": [wire.VERSION], "requested": "2099-01-01"}


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "draft", ""])
def test_no_other_version_is_supported(version: str, function: LambdaFunction) -> None:
    assert_error(send(function, "tools/list", version=version), status=400, code=-32022)


def test_a_version_with_a_blank_differs_from_its_header_whose_blanks_are_ignored(function: LambdaFunction) -> None:
    assert_error(send(function, "tools/list", version="2026-07-28 "), status=400, code=-32020)


CAPABILITY_OF_METHOD = {
    "tools/list": "tools",
    "tools/call": "tools",
    "prompts/list": "prompts",
    "prompts/get": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "resources/read": "resources",
    "completion/complete": "completions",
}


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("handler", [echo, ask, brief, config, picture], ids=lambda handler: handler.name)
def test_the_methods_of_a_missing_capability_are_unknown(handler: Any, placement: str) -> None:  # noqa: ANN401
    function = place(placement, handler)
    capabilities = result(function, "server/discover")["capabilities"]
    for method, capability in CAPABILITY_OF_METHOD.items():
        if capability not in capabilities:
            assert_error(send(function, method, METHODS[method]), status=404, code=-32601)


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("handler", [echo, ask, brief, config, picture], ids=lambda handler: handler.name)
def test_the_list_of_an_advertised_capability_is_served(handler: Any, placement: str) -> None:  # noqa: ANN401
    function = place(placement, handler)
    capabilities = result(function, "server/discover")["capabilities"]
    for capability in capabilities.keys() & {"tools", "prompts", "resources"}:
        assert send(function, f"{capability}/list")["statusCode"] == 200


@pytest.mark.parametrize(
    "method",
    [
        *("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"),
        *("roots/list", "elicitation/create", "tasks/input_response"),
    ],
)
def test_a_method_that_the_current_version_removed_is_unknown(method: str, function: LambdaFunction) -> None:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    assert_error(send(function, method, params), status=404, code=-32601)


@pytest.mark.parametrize("params", [{}, {"notifications": {}}, {"notifications": {"toolsListChanged": True}}])
def test_subscriptions_are_neither_advertised_nor_accepted(params: dict[str, Any], function: LambdaFunction) -> None:
    assert_error(send(function, "subscriptions/listen", params), status=404, code=-32601)
    assert "listChanged" not in json.dumps(result(function, "server/discover"))
    assert "subscribe" not in json.dumps(result(function, "server/discover"))


WITH_EXTENSIONS = {**EVERYTHING, "extensions": {"io.modelcontextprotocol/tasks": {}, "com.example/x": {"a": 1}}}


def test_no_extension_is_advertised_by_default(function: LambdaFunction) -> None:
    assert "extensions" not in result(function, "server/discover")["capabilities"]


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel", "tasks/list", "tasks/result"])
def test_the_methods_of_an_extension_are_unknown_by_default(method: str, function: LambdaFunction) -> None:
    response = send(function, method, {"taskId": "t"}, capabilities=WITH_EXTENSIONS, headers={"mcp-name": "t"})
    assert_error(response, status=404, code=-32601)


@every_method
def test_the_extensions_of_a_client_do_not_change_the_result(method: str, function: LambdaFunction) -> None:
    params = METHODS[method]
    assert result(function, method, params, capabilities=WITH_EXTENSIONS) == result(function, method, params)


# --- G: rounds ----------------------------------------------------------------------------------------------------


def test_every_round_has_a_new_state_and_no_cache_hints(function: LambdaFunction) -> None:
    first = result(function, "tools/call", {"name": "ask"})
    second = result(
        function, "tools/call", {"name": "ask", "inputResponses": {}, "requestState": first["requestState"]}
    )
    assert first.keys() == second.keys() == {"resultType", "inputRequests", "requestState", "_meta"}
    assert first["requestState"] != second["requestState"]


# --- J, K, L: tools, prompts and resources --------------------------------------------------------------------------


def test_a_list_is_the_same_for_every_caller_and_at_any_time(function: LambdaFunction) -> None:
    before = result(function, "tools/list")
    for method, params in METHODS.items():
        send(function, method, params, capabilities={})
    send(function, "tools/call", {"name": "ask"})
    assert result(function, "tools/list", capabilities={}, meta={wire.PREFIX + "logLevel": "debug"}) == before


@pytest.mark.parametrize(
    "params", [{"name": "echo"}, {"name": "echo", "arguments": {"text": 7}}, {"name": "everything"}]
)
def test_every_result_of_a_call_has_content_and_an_error_flag(params: dict[str, Any], function: LambdaFunction) -> None:
    answer = result(function, "tools/call", params)
    assert isinstance(answer["content"], list)
    assert isinstance(answer["isError"], bool)


def test_bytes_in_content_are_base64_with_their_mime_type(function: LambdaFunction) -> None:
    _text, image, audio, _link, embedded = result(function, "tools/call", {"name": "everything"})["content"]
    assert image == {"type": "image", "mimeType": "image/png", "data": "/w=="}
    assert audio["mimeType"] == "audio/wav"
    assert audio["data"] == "AA=="
    assert embedded["resource"]["mimeType"] == "application/octet-stream"
    assert embedded["resource"]["blob"] == "AP8="


def test_bytes_of_a_resource_are_base64_with_their_mime_type(function: LambdaFunction) -> None:
    (read,) = result(function, "resources/read", {"uri": "pictures://tea%2Fcup"})["contents"]
    assert read == {"uri": "pictures://tea%2Fcup", "mimeType": "image/png", "blob": "dGVhL2N1cA=="}


@pytest.mark.parametrize("uri", ["config://nothing", "pictures://", "file:///etc/passwd", "config://app/../x", "", "x"])
def test_the_error_for_an_unknown_resource_names_its_uri(uri: str, function: LambdaFunction) -> None:
    message = send(function, "resources/read", {"uri": uri})["message"]
    assert message["error"] == {"code": -32602, "message": "Resource not found", "data": {"uri": uri}}


@pytest.mark.parametrize("value", [None, [], {}, "", b""])
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_resource_with_an_empty_value_has_contents(value: object, placement: str) -> None:
    @resource("a://b")
    def empty() -> object:
        return value

    function = place(placement, empty)
    (contents,) = result(function, "resources/read", {"uri": "a://b"})["contents"]
    assert contents["uri"] == "a://b"


@pytest.mark.parametrize("uri", ["", "no-scheme", "a b://c", "1a://b", "://x", "/path", "a://b c", "a://b\n", "config"])
def test_a_resource_without_a_uri_of_rfc_3986_is_refused(uri: str) -> None:
    with pytest.raises(TypeError, match="URI"):
        resource(uri)(config.function)


@pytest.mark.parametrize("template", ["{name}", "{name}://a"])
def test_a_uri_template_without_a_scheme_is_refused(template: str) -> None:
    with pytest.raises(TypeError, match="URI"):
        resource(template)(picture.function)


@pytest.mark.parametrize(
    "options", [{"ttl_ms": -1}, {"ttl_ms": 1.5}, {"ttl_ms": True}, {"cache_scope": "shared"}, {"cache_scope": ""}]
)
def test_cache_hints_outside_the_specification_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"ttl_ms|cache_scope"):
        resource("a://b", **options)(config.function)


@pytest.mark.parametrize("method", CACHEABLE)
def test_a_cacheable_result_has_cache_hints(method: str, function: LambdaFunction) -> None:
    answer = result(function, method, METHODS[method])
    assert type(answer["ttlMs"]) is int
    assert answer["cacheScope"] in ("public", "private")


@pytest.mark.parametrize("method", sorted(METHODS.keys() - {*CACHEABLE}))
def test_other_results_have_no_cache_hints(method: str, function: LambdaFunction) -> None:
    assert not {"ttlMs", "cacheScope"} & result(function, method, METHODS[method]).keys()


# --- N: requests to the client --------------------------------------------------------------------------------------


def sample_with_context(context: str, sampling: dict[str, Any]) -> dict[str, Any]:
    """Return the response of a tool that samples with `includeContext`, to a client with this sampling capability."""

    @tool(requires=["sampling.context"])
    def summarize(*, sample: Sample) -> str:
        return str(sample("summary", "Hi", max_tokens=5, includeContext=context))

    function = place("direct", summarize)
    message: dict[str, Any] = send(function, "tools/call", {"name": "summarize"}, capabilities={"sampling": sampling})[
        "message"
    ]
    return message


@pytest.mark.parametrize(("context", "sampling"), [("none", {}), ("allServers", {"context": {}})])
def test_a_client_that_shares_the_context_is_asked_for_it(context: str, sampling: dict[str, Any]) -> None:
    assert sample_with_context(context, sampling)["result"]["resultType"] == "input_required"


@pytest.mark.parametrize(("context", "sampling"), [("thisServer", {}), ("allServers", {"tools": {}})])
def test_a_client_that_does_not_share_the_context_gets_an_error(context: str, sampling: dict[str, Any]) -> None:
    error = sample_with_context(context, sampling)["error"]
    assert error["data"] == {"requiredCapabilities": {"sampling": {"context": {}}}}


# --- I, O: progress and schemas --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_progress_that_json_cannot_write_or_that_does_not_grow_is_not_sent(value: float) -> None:
    @tool
    def work(*, progress: Progress) -> str:
        for done in (1, value, 1, 2):
            progress(done)
        return "done"

    response = send(place("direct", work), "tools/call", {"name": "work"}, meta={"progressToken": 1})
    *notifications, _result = wire.messages(response)
    assert [message["params"]["progress"] for message in notifications] == [1, 2]


def test_the_docs_name_the_dialect_of_json_schema() -> None:
    root = PACKAGE.parents[2]
    pages = [root / "README.md", *(root / "docs").glob("*.md")]
    assert any("JSON Schema 2020-12" in page.read_text(encoding="utf-8") for page in pages)
