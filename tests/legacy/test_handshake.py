"""The handshake of 2025 clients, and their requests that lead to no question.

Each revision has its own members and error codes: a client gets only what its revision defines.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from mcp_functions import tool
from tests.legacy.deployment import START, Deployment
from tests.legacy.handlers import ALL_HANDLERS, Sum, add, report

if TYPE_CHECKING:
    from tests.legacy.clients import Client

MARCH, JUNE, NOVEMBER = "2025-03-26", "2025-06-18", "2025-11-25"
REVISIONS = [MARCH, JUNE, NOVEMBER]
METHODS_WITHOUT_TOOLS = [
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
]
PARAMS = {"level": "info", "name": "x", "uri": "notes://ann", "ref": {"type": "ref/prompt", "name": "x"}}
ADD = {"name": "add", "arguments": {"a": 1, "b": 2}}


@pytest.fixture
def client(deployment: Deployment) -> Client:
    return deployment.client()


# ---- The handshake


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_server_negotiates_the_requested_revision(client: Client, revision: str) -> None:
    result = client.initialize(revision)
    assert result["protocolVersion"] == revision
    assert result["serverInfo"] == {"name": "tested", "version": "0"}
    assert result["capabilities"] == {"tools": {}, "prompts": {}, "resources": {}, "completions": {}, "logging": {}}


@pytest.mark.parametrize("revision", ["2024-11-05", "2026-07-28", "1.0", 5, None])
def test_an_unknown_revision_is_answered_with_the_latest_one_of_2025(client: Client, revision: Any) -> None:  # noqa: ANN401 - JSON
    assert client.initialize(revision)["protocolVersion"] == NOVEMBER


def test_the_front_door_sends_its_instructions() -> None:
    client = Deployment(add, placement="behind the front door").client()
    assert client.initialize()["instructions"] == "Be nice"


def test_a_server_with_one_logging_tool_has_no_other_capability(placement: str) -> None:
    client = Deployment(report, placement=placement).client()
    assert client.initialize()["capabilities"] == {"tools": {}, "logging": {}}
    assert client.result("logging/setLevel", PARAMS) == {}


@pytest.mark.parametrize("method", [*METHODS_WITHOUT_TOOLS, "logging/setLevel"])
def test_a_method_without_its_capability_is_unknown(placement: str, method: str) -> None:
    client = Deployment(add, placement=placement).client()
    assert client.initialize()["capabilities"] == {"tools": {}}
    assert client.message(method, PARAMS)["error"]["code"] == -32601


# ---- Lists


def test_a_tool_of_march_has_no_title_and_no_output_schema(client: Client) -> None:
    client.initialize(MARCH)
    tools = {tool["name"]: tool for tool in client.result("tools/list")["tools"]}
    assert not {"title", "outputSchema"} & tools["add_structured"].keys()


@pytest.mark.parametrize("revision", [JUNE, NOVEMBER])
def test_a_tool_has_a_title_and_an_output_schema_since_june(client: Client, revision: str) -> None:
    client.initialize(revision)
    tools = {tool["name"]: tool for tool in client.result("tools/list")["tools"]}
    assert tools["add_structured"].keys() > {"title", "outputSchema"}
    assert "outputSchema" not in tools["add"]  # its result is a number, and these revisions need an object


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_revision_lists_all_handlers(client: Client, revision: str) -> None:
    client.initialize(revision)
    assert len(client.result("tools/list")["tools"]) == 8
    assert [prompt["name"] for prompt in client.result("prompts/list")["prompts"]] == ["brief", "plain"]
    assert len(client.result("resources/templates/list")["resourceTemplates"]) == 2
    assert client.result("resources/list") == {"resources": []}


class Tree(BaseModel):
    branch: Tree | None = None


def list_and_call(returns: Any, value: object) -> tuple[dict[str, Any], dict[str, Any]]:  # noqa: ANN401 - an annotation
    """Deploy a tool with this return annotation; return the tool as it is listed, and the result of a call."""

    def return_value() -> object:
        return value

    return_value.__annotations__["return"] = returns
    client = Deployment(tool(return_value)).initialized_client()
    (listed,) = client.result("tools/list")["tools"]
    return listed, client.result("tools/call", {"name": "return_value"})


@pytest.mark.parametrize(
    ("returns", "value"),
    [
        pytest.param(Sum, Sum(total=3), id="model"),
        pytest.param(Tree, Tree(), id="recursive model, whose schema begins with a $ref"),
        pytest.param(Sum | Tree, Tree(), id="union of models"),
        pytest.param(Annotated[dict[str, int] | dict[str, str], "either"], {"a": 1}, id="union of dicts"),
    ],
)
def test_a_tool_that_returns_objects_has_an_output_schema(returns: Any, value: object) -> None:  # noqa: ANN401 - an annotation
    listed, result = list_and_call(returns, value)
    assert listed["outputSchema"]["type"] == "object"
    assert isinstance(result["structuredContent"], dict)


@pytest.mark.parametrize(
    ("returns", "value"),
    [
        pytest.param(Sum | list[Sum], [Sum(total=3)], id="model or list"),
        pytest.param(int | list[int], 3, id="number or list"),
        pytest.param(Literal[1, "a"], "a", id="literals"),
        pytest.param(Any, 3, id="Any"),
    ],
)
def test_a_tool_that_may_return_another_value_has_no_output_schema(returns: Any, value: object) -> None:  # noqa: ANN401 - an annotation
    listed, _result = list_and_call(returns, value)
    assert "outputSchema" not in listed


def test_a_list_has_pages(placement: str) -> None:
    client = Deployment(*ALL_HANDLERS, page_size=5, placement=placement).initialized_client()
    first = client.result("tools/list")
    assert len(first["tools"]) == 5
    second = client.result("tools/list", {"cursor": first["nextCursor"]})
    assert len(second["tools"]) == 3
    assert "nextCursor" not in second


@pytest.mark.parametrize("cursor", ["no", {}])
def test_an_invalid_cursor_is_refused(client: Client, cursor: Any) -> None:  # noqa: ANN401 - JSON
    client.initialize()
    assert client.message("tools/list", {"cursor": cursor})["error"]["code"] == -32602


# ---- Results


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_tool_returns_its_text(client: Client, revision: str) -> None:
    client.initialize(revision)
    assert client.result("tools/call", ADD) == {"content": [{"type": "text", "text": "3"}], "isError": False}


@pytest.mark.parametrize(("revision", "is_structured"), [(MARCH, False), (JUNE, True), (NOVEMBER, True)])
def test_a_result_is_structured_since_june(client: Client, revision: str, *, is_structured: bool) -> None:
    client.initialize(revision)
    result = client.result("tools/call", {**ADD, "name": "add_structured"})
    assert ("structuredContent" in result) == is_structured


@pytest.mark.parametrize(("revision", "texts"), [(MARCH, ["{}"]), (JUNE, []), (NOVEMBER, [])])
def test_a_result_without_content_is_an_empty_object_before_june(revision: str, texts: list[str]) -> None:
    @tool
    def do_nothing() -> None:
        """Do nothing."""

    client = Deployment(do_nothing).client()
    client.initialize(revision)
    content = client.result("tools/call", {"name": "do_nothing"})["content"]
    assert [block["text"] for block in content] == texts


@pytest.mark.parametrize(("revision", "type_"), [(MARCH, "text"), (JUNE, "resource_link"), (NOVEMBER, "resource_link")])
def test_a_resource_link_is_text_before_june(client: Client, revision: str, type_: str) -> None:
    client.initialize(revision)
    link, audio = client.result("tools/call", {"name": "link_note"})["content"]
    assert link["type"] == type_
    assert "notes://ann" in str(link)
    assert audio["type"] == "audio"


@pytest.mark.parametrize("revision", REVISIONS)
def test_prompts_resources_and_completions_return_the_same_for_every_revision(client: Client, revision: str) -> None:
    client.initialize(revision)
    prompt = client.result("prompts/get", {"name": "plain", "arguments": {"topic": "x"}})
    assert prompt["messages"][0]["content"]["text"] == "x"
    resource = client.result("resources/read", {"uri": "notes://ann"})
    assert resource == {"contents": [{"uri": "notes://ann", "mimeType": "text/plain", "text": "ann's note"}]}
    params = {"ref": {"type": "ref/prompt", "name": "plain"}, "argument": {"name": "topic", "value": "x"}}
    assert client.result("completion/complete", params)["completion"]["values"] == ["x!"]


def test_progress_and_log_messages_come_before_the_result_in_one_stream(client: Client) -> None:
    client.initialize()
    progress, log, last = client.send("tools/call", {"name": "report", "_meta": {"progressToken": "p"}})
    assert progress.data["params"]["progressToken"] == "p"
    assert log.data["params"]["level"] == "info"
    assert last.data["result"]["content"][0]["text"] == "done"
    assert client.event_ids == []  # nothing to resume


def test_a_client_that_accepts_only_json_gets_only_the_result(client: Client) -> None:
    client.initialize()
    (only,) = client.send("tools/call", {"name": "report", "_meta": {"progressToken": "p"}}, accept="application/json")
    assert only.data["result"]["content"][0]["text"] == "done"


# ---- Errors


@pytest.mark.parametrize("uri", ["nowhere://x", ""])
@pytest.mark.parametrize("revision", REVISIONS)
def test_an_unknown_resource_has_the_error_code_of_2025(client: Client, revision: str, uri: str) -> None:
    client.initialize(revision)
    error = client.message("resources/read", {"uri": uri})["error"]
    assert (error["code"], error["data"]) == (-32002, {"uri": uri})


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/call", {"name": "none"}, -32602),
        ("tools/call", {"name": 5}, -32602),
        ("tools/call", {}, -32602),
        ("prompts/get", {"name": "none"}, -32602),
        ("prompts/get", {"name": "plain"}, -32602),
        ("logging/setLevel", {"level": "loud"}, -32602),
        ("completion/complete", {"ref": {}}, -32602),
        ("resources/subscribe", {"uri": "notes://ann"}, -32601),
        ("resources/unsubscribe", {"uri": "notes://ann"}, -32601),
        ("tasks/list", {}, -32601),
        ("server/discover", {}, -32601),
        ("no/such", {}, -32601),
    ],
)
def test_the_error_of_a_request_has_status_200(client: Client, method: str, params: Any, code: int) -> None:  # noqa: ANN401 - JSON
    client.initialize()
    assert client.message(method, params)["error"]["code"] == code  # `message` asserts the status


def test_an_invalid_argument_is_a_tool_error_for_the_model(client: Client) -> None:
    client.initialize()
    assert client.call("add", a="x", b=1)[-1].data["result"]["isError"] is True


# ---- Unusual requests


def test_names_may_hold_characters_that_no_header_can_hold(client: Client) -> None:
    client.initialize()
    assert client.result("resources/read", {"uri": "notes://%C5%BC"})["contents"][0]["text"] == "ż's note"
    assert client.message("tools/call", {"name": "żółw"})["error"]["code"] == -32602


def test_a_header_parameter_may_hold_characters_that_no_header_can_hold(client: Client) -> None:
    client.initialize()
    arguments = {"a": 1, "b": 2, "region": " Łódź "}
    assert client.result("tools/call", {"name": "add", "arguments": arguments})["isError"] is False


def test_members_of_2026_in_a_call_are_ignored(client: Client) -> None:
    client.initialize()
    members = {"requestState": "ks1.x", "inputResponses": 5, "task": {}}
    assert client.result("tools/call", {**ADD, **members})["isError"] is False


@pytest.mark.parametrize("id_", ["a", "1", 1, 0, -5, ""])
def test_a_response_has_the_id_of_its_request(client: Client, id_: Any) -> None:  # noqa: ANN401 - JSON
    response = client.http("POST", {"jsonrpc": "2.0", "id": id_, "method": "ping"})
    assert json.dumps(json.loads(response["body"])["id"]) == json.dumps(id_)


def test_the_front_door_sends_the_function_a_request_of_2026(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Any] = []
    deployment = Deployment(*ALL_HANDLERS, placement="behind the front door")
    invoke = deployment.invoke_function

    def record_and_invoke(event: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        events.append(event)
        return invoke(event)

    monkeypatch.setattr(deployment, "invoke_function", record_and_invoke)
    deployment.initialized_client().call("add", a=1, b=2, region="us")
    (event,) = events
    assert event["headers"]["mcp-param-region"] == "us"
    assert event["headers"]["mcp-name"] == "add"
    assert not {"mcp-session-id", "last-event-id"} & event["headers"].keys()
    meta = json.loads(event["body"])["params"]["_meta"]
    assert meta["io.modelcontextprotocol/clientInfo"] == {"name": "tester", "version": "1"}
    assert event["requestContext"]["timeEpoch"] == START * 1000 - 1500  # 1.5 s are left to store the result


def test_a_request_writes_one_log_line_with_its_revision(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    client.initialize(JUNE)
    caplog.clear()
    with caplog.at_level("INFO", "mcp_functions"):
        client.call("add", a=1, b=2)
    (line,) = [vars(record) for record in caplog.records if "revision" in vars(record)]
    assert (line["method"], line["revision"]) == ("tools/call", JUNE)
    assert (line["handler"], line["outcome"]) == ("add", "complete")
