"""Sessions without storage, and requests of 2025 clients that lead to no question."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from mcp_functions import tool
from mcp_functions.protocol.errors import McpError, Misconfigured, TemporarilyUnavailable
from tests.legacy.offered import ALL, Sum, add, told
from tests.legacy.world import DOORS, START, World

if TYPE_CHECKING:
    from tests.legacy.clients import Client

VERSIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
NOT_OF_TOOLS = {
    *("prompts/list", "prompts/get", "resources/list", "resources/templates/list", "resources/read"),
    *("completion/complete", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"),
}
PARAMS = {"level": "info", "name": "x", "uri": "notes://ann", "ref": {"type": "ref/prompt", "name": "x"}}
SIGNED_IN = ["jwt", "none"]


@pytest.fixture(params=DOORS)
def world(request: pytest.FixtureRequest) -> World:
    return World(*ALL, door=request.param)


@pytest.fixture
def client(world: World) -> Client:
    return world.client()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_server_negotiates_the_requested_version(client: Client, version: str) -> None:
    result = client.initialize(version)
    assert result["protocolVersion"] == version
    assert result["serverInfo"] == {"name": "tested", "version": "0"}
    assert result["capabilities"] == {"tools": {}, "prompts": {}, "resources": {}, "completions": {}, "logging": {}}


@pytest.mark.parametrize("version", ["2024-11-05", "2026-07-28", "1.0", 5, None])
def test_another_version_is_answered_with_the_latest_that_has_sessions(client: Client, version: Any) -> None:  # noqa: ANN401 - JSON
    assert client.initialize(version)["protocolVersion"] == "2025-11-25"


def test_instructions_are_passed_on() -> None:
    assert World(add, door=DOORS[1]).client().initialize()["instructions"] == "Be nice"


def test_a_session_id_is_visible_ascii_and_fits_into_a_header(client: Client) -> None:
    info = {"name": "ż" * 5000, "version": "ó" * 5000}
    client.result(
        "initialize", {"protocolVersion": "2025-11-25", "capabilities": {"x": ["y"] * 99}, "clientInfo": info}
    )
    assert client.session
    assert all("!" <= character <= "~" for character in client.session)
    assert len(client.session) < 4096


def test_a_session_is_opened_by_containers_that_never_saw_it(world: World, client: Client) -> None:
    client.initialize()
    world.anew()
    assert client.result("ping") == {}
    assert world.kms.asked == ["generate", "unwrap"]


@pytest.mark.parametrize("wrong", ["damaged", "forged", "expired", "another's", "another function's", "a question's"])
def test_every_invalid_session_is_not_found(world: World, wrong: str) -> None:
    client, mallory = world.client("alice"), world.client("mallory")
    client.initialize()
    assert client.session
    if wrong == "damaged":
        client.session = client.session[:-9] + "AAAA" + client.session[-5:]
    elif wrong == "forged":
        client.session = "ks1.AAAA"
    elif wrong == "expired":
        world.clock.advance(24 * 3600)
    elif wrong == "another's":
        client, mallory.session, mallory.version = mallory, client.session, client.version
    elif wrong == "another function's":
        other = World(*ALL, door=DOORS[world.door == DOORS[0]])
        other.kms = world.kms
        other.anew()
        client.function = other
    else:
        client.session = client.call("resolve", bug=1)[-1].data["id"]
    response = client.http("POST", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert response["statusCode"] == 404
    assert json.loads(response["body"])["error"] == {"code": -32600, "message": "Session not found: initialize again"}


def test_forged_sessions_ask_kms_no_more_than_a_caller_may_waste(world: World) -> None:
    client = world.client()
    client.initialize()
    assert client.session
    world.anew()
    world.kms.asked.clear()
    head, body = client.session[:30], client.session[50:]
    for number in range(20):
        client.session = f"{head}{number:020d}{body}"
        assert client.http("POST", {"jsonrpc": "2.0", "id": 1, "method": "ping"})["statusCode"] in {200, 404}
    assert len(world.kms.asked) <= 3


@pytest.mark.parametrize("forged", ["session", "question"])
def test_forged_sessions_and_questions_of_thirty_oauth_clients_are_charged_to_their_one_person(
    world: World, forged: str
) -> None:
    clients = [world.client() for _ in range(30)]
    for number, client in enumerate(clients):
        client.oauth_client = f"c{number}"
        client.initialize()
    world.anew()
    clients[0].http("POST", {"jsonrpc": "2.0", "id": 1, "method": "ping"})  # one unwrap: the sessions have one key
    world.kms.asked.clear()
    for number, client in enumerate(clients):
        assert client.session
        token = f"{client.session[:30]}{number:020d}{client.session[50:]}"
        if forged == "session":
            client.session = token
            client.http("POST", {"jsonrpc": "2.0", "id": 1, "method": "ping"})
        else:
            client.http("POST", {"jsonrpc": "2.0", "id": token, "result": {}})
    assert 0 < len(world.kms.asked) <= 3


@pytest.mark.parametrize("door", DOORS)
def test_without_a_key_there_are_no_sessions_and_all_the_rest(door: str) -> None:
    client = World(*ALL, door=door, keys=False).client()
    client.initialize()
    assert client.session is None
    assert client.call("add", a=1, b=2)[-1].data["result"]["content"][0]["text"] == "3"
    assert client.result("logging/setLevel", {"level": "debug"}) == {}
    assert client.http("POST", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, mcp_session_id="x")["statusCode"] == 404


def test_during_an_outage_of_kms_a_client_begins_without_a_session(world: World, client: Client) -> None:
    world.kms.failure = TemporarilyUnavailable("kms:down")
    client.initialize()
    assert client.session is None


def test_an_outage_is_an_error_of_the_request_and_not_of_the_connection(world: World, client: Client) -> None:
    client.initialize()
    world.anew()
    world.kms.failure = TemporarilyUnavailable("kms:down")
    error = client.message("tools/list")["error"]
    assert (error["code"], error["data"]) == (-32603, {"retryable": True})


@pytest.mark.parametrize("failure", [TemporarilyUnavailable("kms:down"), Misconfigured("kms:denied")])
def test_a_server_error_is_logged_as_an_error_though_its_status_is_200(
    failure: McpError, world: World, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.initialize()
    world.anew()
    world.kms.failure = failure
    with caplog.at_level("INFO", "mcp_functions"):
        client.message("tools/list")
        client.session = None
        client.initialize()
    lines = [vars(record) for record in caplog.records if vars(record).get("reason") == failure.reason]
    paging = True if failure.status == 500 else None
    assert [(line["method"], line["outcome"], line["status"], line["levelname"]) for line in lines] == [
        ("tools/list", "failed", 200, "ERROR"),
        ("initialize", "complete", 200, "ERROR"),
    ]
    assert [line.get("misconfigured") for line in lines] == [paging, paging]


@pytest.mark.parametrize("mode", SIGNED_IN)
def test_a_session_is_no_way_to_sign_in(mode: str) -> None:
    world = World(*ALL, auth_mode=mode)
    client = world.client()
    client.initialize()
    client.name = None
    message = client.message("ping")
    assert message.get("error", {}).get("code") == (-32603 if mode == "jwt" else None)  # a route without its authorizer


@pytest.mark.parametrize("version", VERSIONS)
def test_lists_hold_only_members_of_the_revision(client: Client, version: str) -> None:
    client.initialize(version)
    tools = {tool["name"]: tool for tool in client.result("tools/list")["tools"]}
    assert len(tools) == 13
    assert "outputSchema" not in tools["add"]  # an integer
    assert ("outputSchema" in tools["summed"]) == (version != "2025-03-26")
    assert ("title" in tools["summed"]) == (version != "2025-03-26")
    assert [each["name"] for each in client.result("prompts/list")["prompts"]] == ["brief", "plain"]
    assert len(client.result("resources/templates/list")["resourceTemplates"]) == 2
    assert client.result("resources/list") == {"resources": []}


class Again(BaseModel):
    again: Again | None = None


@pytest.mark.parametrize(
    ("returns", "is_of_objects", "value"),
    [
        (Sum, True, Sum(total=3)),
        (Again, True, Again()),  # its schema begins with a $ref
        (Sum | Again, True, Again()),
        (Annotated[dict[str, int] | dict[str, str], "either"], True, {"a": 1}),
        (Sum | list[Sum], False, [Sum(total=3)]),
        (int | list[int], False, 3),
        (Literal[1, "a"], False, "a"),
        (Any, False, 3),
    ],
)
def test_an_output_schema_is_listed_where_every_result_is_an_object(
    returns: Any,  # noqa: ANN401 - an annotation
    value: object,
    *,
    is_of_objects: bool,
) -> None:
    def returner() -> object:
        return value

    returner.__annotations__["return"] = returns
    client = World(tool(returner), door=DOORS[0]).client()
    client.initialize("2025-11-25")
    (listed,) = client.result("tools/list")["tools"]
    result = client.result("tools/call", {"name": "returner"})
    assert (listed.get("outputSchema", {}).get("type") == "object") == is_of_objects
    # If there is an output schema, "servers MUST provide structured results that conform to this schema".
    assert "outputSchema" not in listed or isinstance(result["structuredContent"], dict)


def test_pages_of_a_list_are_turned(world: World) -> None:
    paged = World(*ALL, page_size=5, door=world.door).client()
    paged.initialize()
    first = paged.result("tools/list")
    second = paged.result("tools/list", {"cursor": first["nextCursor"]})
    assert (len(first["tools"]), len(second["tools"]), "nextCursor" in second) == (5, 5, True)
    assert paged.message("tools/list", {"cursor": "no"})["error"]["code"] == -32602
    assert paged.message("tools/list", {"cursor": {}})["error"]["code"] == -32602


@pytest.mark.parametrize("version", VERSIONS)
def test_results_hold_only_members_of_the_revision(client: Client, version: str) -> None:
    client.initialize(version)
    assert client.result("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}) == {
        "content": [{"type": "text", "text": "3"}],
        "isError": False,
    }
    summed = client.result("tools/call", {"name": "summed", "arguments": {"a": 1, "b": 2}})
    assert ("structuredContent" in summed) == (version != "2025-03-26")
    link, audio = client.result("tools/call", {"name": "linked"})["content"]
    assert link["type"] == ("text" if version == "2025-03-26" else "resource_link")
    assert "notes://ann" in str(link)
    assert audio["type"] == "audio"
    assert client.result("prompts/get", {"name": "plain", "arguments": {"topic": "x"}})["messages"]
    assert client.result("resources/read", {"uri": "notes://ann"}) == {
        "contents": [{"uri": "notes://ann", "mimeType": "text/plain", "text": "ann's note"}]
    }
    completed = {"ref": {"type": "ref/prompt", "name": "plain"}, "argument": {"name": "topic", "value": "x"}}
    assert client.result("completion/complete", completed)["completion"]["values"] == ["x!"]


def test_names_that_no_header_could_hold_are_called(client: Client) -> None:
    client.initialize()
    assert client.result("resources/read", {"uri": "notes://%C5%BC"})["contents"][0]["text"] == "ż's note"
    assert client.message("tools/call", {"name": "żółw"})["error"]["code"] == -32602
    call = {"name": "add", "arguments": {"a": 1, "b": 2, "region": " Łódź "}}
    assert client.result("tools/call", call)["isError"] is False


@pytest.mark.parametrize("uri", ["nowhere://x", ""])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_resource_that_is_not_there_has_the_code_of_its_revision(client: Client, version: str, uri: str) -> None:
    client.initialize(version)
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
def test_errors_of_a_request_go_out_with_status_200(client: Client, method: str, params: Any, code: int) -> None:  # noqa: ANN401 - JSON
    client.initialize()
    assert client.message(method, params)["error"]["code"] == code


def test_arguments_that_do_not_fit_are_for_the_model_to_read(client: Client) -> None:
    client.initialize()
    assert client.call("add", a="x", b=1)[-1].data["result"]["isError"] is True


def test_a_client_that_brings_a_state_of_its_own_goes_nowhere_with_it(client: Client) -> None:
    client.initialize()
    params = {"name": "add", "arguments": {"a": 1, "b": 2}, "requestState": "ks1.x", "inputResponses": 5, "task": {}}
    assert client.result("tools/call", params)["isError"] is False


def test_progress_and_log_come_before_the_result_as_one_stream(client: Client) -> None:
    client.initialize()
    sent = {"name": "told", "_meta": {"progressToken": "p"}}
    progress, log, last = client.send("tools/call", sent)
    assert progress.data["params"]["progressToken"] == "p"
    assert log.data["params"]["level"] == "info"
    assert last.data["result"]["content"][0]["text"] == "done"
    assert client.seen == []  # nothing to come back for
    only = client.send("tools/call", sent, accept="application/json")
    assert [event.data["result"]["isError"] for event in only] == [False]


def test_the_level_of_the_log_is_in_the_session_from_then_on(client: Client) -> None:
    client.initialize()
    before = client.session
    assert client.result("logging/setLevel", {"level": "error"}) == {}
    assert client.session != before
    assert len(client.call("told")) == 1
    assert client.result("logging/setLevel", {"level": "debug"}) == {}
    assert len(client.call("told")) == 2


def test_a_batch_has_the_time_of_one_request(world: World) -> None:
    client = world.client()
    client.initialize("2025-03-26")
    world.died = lambda: bool(world.clock.advance(20))  # type: ignore[func-returns-value]
    calls = [
        {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}
        for id_ in range(4)
    ]
    answers = json.loads(client.http("POST", calls)["body"])
    assert ["error" in answer for answer in answers] == [False, False, True, True]
    assert world.ran == 2


def test_ids_come_back_as_they_were(client: Client) -> None:
    for id_ in ("a", "1", 1, 0, -5, ""):
        response = client.http("POST", {"jsonrpc": "2.0", "id": id_, "method": "ping"})
        assert json.loads(response["body"])["id"] == id_
        assert type(json.loads(response["body"])["id"]) is type(id_)


def test_the_function_behind_the_door_sees_a_modern_call(world: World) -> None:
    if world.door == DOORS[0]:
        return
    seen: list[Any] = []
    invoke = world.invoke
    world.invoke = lambda event: seen.append(event) or invoke(event)  # type: ignore[method-assign, func-returns-value]
    client = world.client()
    client.initialize()
    client.call("add", a=1, b=2, region="us")
    (event,) = seen
    assert event["headers"]["mcp-param-region"] == "us"
    assert event["headers"]["mcp-name"] == "add"
    assert not {"mcp-session-id", "last-event-id"} & event["headers"].keys()
    meta = json.loads(event["body"])["params"]["_meta"]
    assert meta["io.modelcontextprotocol/clientInfo"] == {"name": "tester", "version": "1"}
    assert event["requestContext"]["timeEpoch"] == START * 1000 - 1500  # there is a message to be kept afterwards


def test_one_line_tells_of_a_request_and_names_its_revision(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    client.initialize("2025-06-18")
    caplog.clear()
    with caplog.at_level("INFO", "mcp_functions"):
        client.call("add", a=1, b=2)
    lines = [vars(record) for record in caplog.records if "revision" in vars(record)]
    assert [(line["method"], line["revision"], line["handler"], line["outcome"]) for line in lines] == [
        ("tools/call", "2025-06-18", "add", "complete")
    ]


def test_a_tool_that_only_tells_is_offered_alone() -> None:
    client = World(told).client()
    assert client.initialize()["capabilities"] == {"tools": {}, "logging": {}}
    for method in NOT_OF_TOOLS - {"logging/setLevel"}:
        assert client.message(method, PARAMS)["error"]["code"] == -32601
    assert client.result("logging/setLevel", PARAMS) == {}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("method", sorted(NOT_OF_TOOLS))
def test_methods_that_are_not_advertised_are_unknown(door: str, method: str) -> None:
    client = World(add, door=door).client()
    assert client.initialize()["capabilities"] == {"tools": {}}
    assert client.message(method, PARAMS)["error"]["code"] == -32601
