"""A session of a 2025 client is a sealed value in Mcp-Session-Id; the server stores nothing.

The session holds the negotiated revision, the client's capabilities and the log level.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from mcp.server.mcpserver import Context, MCPServer

from mcp_functions.adopt import adopt
from mcp_functions.legacy import sessions
from mcp_functions.protocol.constants import APP_MIME_TYPE, EXTENSION_APPS
from mcp_functions.protocol.errors import McpError, Misconfigured, TemporarilyUnavailable
from tests.legacy.clients import read_question, result_text
from tests.legacy.deployment import Deployment
from tests.legacy.handlers import ALL_HANDLERS, start_resolving

if TYPE_CHECKING:
    from tests.legacy.clients import Client

PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
NOT_FOUND = {"code": -32600, "message": "Session not found: initialize again"}
DAY_SECONDS = 24 * 3600
MAX_WASTED_UNWRAPS = 3  # the calls of KMS that a person may cause with forged tokens


def assert_session_not_found(client: Client) -> None:
    response = client.http("POST", PING)
    assert response["statusCode"] == 404
    assert json.loads(response["body"])["error"] == NOT_FOUND


def forge(session: str | None, number: int) -> str:
    """Replace 20 characters of the wrapped data key, so that only KMS can tell that the token is forged."""
    assert session
    return f"{session[:30]}{number:020d}{session[50:]}"


# ---- Valid and invalid sessions


def test_a_session_id_is_visible_ascii_and_fits_into_a_header(deployment: Deployment) -> None:
    client = deployment.client()
    client_info = {"name": "ż" * 5000, "version": "ó" * 5000}
    capabilities = {"x": ["y"] * 99}
    params = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client_info}
    client.result("initialize", params)
    assert client.session
    assert all("!" <= character <= "~" for character in client.session)
    assert len(client.session) < 4096


def test_a_new_container_opens_a_session_with_one_call_of_kms(client: Client, deployment: Deployment) -> None:
    deployment.replace_containers()
    assert client.result("ping") == {}
    assert deployment.kms.calls == ["generate", "unwrap"]


def test_a_session_of_a_later_version_may_hold_more_capabilities(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = deployment.client()
    with monkeypatch.context() as later:
        later.setitem(sessions.CAPABILITIES, "z", {"zoo": {}})
        client.initialize(capabilities={"elicitation": {}, "zoo": {}})
    assert read_question(client.call("resolve", bug=7))["method"] == "elicitation/create"


def test_a_tool_that_changes_the_capabilities_of_its_call_changes_those_of_no_other_call() -> None:
    server = MCPServer("adopted")

    @server.tool()
    def add_type(ctx: Context) -> str:
        assert ctx.session.client_params
        extensions = ctx.session.client_params.capabilities.extensions
        assert extensions
        types: list[str] = extensions[EXTENSION_APPS]["mimeTypes"]
        types.append("text/plain")
        return " ".join(types)

    client = Deployment(*adopt(server)).client()
    client.initialize(capabilities={"extensions": {EXTENSION_APPS: {"mimeTypes": [APP_MIME_TYPE]}}})
    seen = [result_text(client.call("add_type")) for _ in range(2)]
    assert seen == [f"{APP_MIME_TYPE} text/plain"] * 2


def test_a_damaged_session_is_not_found(client: Client) -> None:
    assert client.session
    client.session = client.session[:-9] + "AAAA" + client.session[-5:]
    assert_session_not_found(client)


def test_an_invented_session_is_not_found(client: Client) -> None:
    client.session = "ks1.AAAA"
    assert_session_not_found(client)


def test_an_expired_session_is_not_found(client: Client, deployment: Deployment) -> None:
    deployment.clock.advance(DAY_SECONDS)
    assert_session_not_found(client)


def test_the_session_of_another_user_is_not_found(client: Client, deployment: Deployment) -> None:
    mallory = deployment.client("mallory")
    mallory.session, mallory.version = client.session, client.version
    assert_session_not_found(mallory)


def test_the_session_of_another_function_is_not_found() -> None:
    direct = Deployment(*ALL_HANDLERS, placement="direct")
    client = direct.initialized_client()
    front_door = Deployment(*ALL_HANDLERS, placement="behind the front door")
    front_door.kms = direct.kms
    front_door.replace_containers()
    client.function = front_door
    assert_session_not_found(client)


def test_a_question_id_is_no_session(client: Client) -> None:
    client.session = start_resolving(client)
    assert_session_not_found(client)


@pytest.mark.parametrize(
    ("auth_mode", "code"),
    [
        pytest.param("jwt", -32603, id="a request that passed no authorizer"),
        pytest.param("none", None, id="a deployment without users"),
    ],
)
def test_a_session_does_not_authenticate_its_client(auth_mode: str, code: int | None) -> None:
    client = Deployment(*ALL_HANDLERS, auth_mode=auth_mode).initialized_client()
    client.name = None
    assert client.message("ping").get("error", {}).get("code") == code


# ---- Forged tokens and KMS


def test_forged_sessions_cause_few_calls_of_kms(client: Client, deployment: Deployment) -> None:
    session = client.session
    deployment.replace_containers()
    deployment.kms.calls.clear()
    for number in range(20):
        client.session = forge(session, number)
        client.http("POST", PING)
    assert len(deployment.kms.calls) <= MAX_WASTED_UNWRAPS


@pytest.fixture
def thirty_oauth_clients(deployment: Deployment) -> list[Client]:
    """Return the sessions of one person in thirty OAuth clients, and containers that have unwrapped their one key."""
    clients = [deployment.client() for _ in range(30)]
    for number, client in enumerate(clients):
        client.oauth_client = f"client-{number}"
        client.initialize()
    deployment.replace_containers()
    clients[0].http("POST", PING)
    deployment.kms.calls.clear()
    return clients


def test_forged_sessions_of_many_oauth_clients_are_charged_to_their_person(
    thirty_oauth_clients: list[Client], deployment: Deployment
) -> None:
    for number, client in enumerate(thirty_oauth_clients):
        client.session = forge(client.session, number)
        client.http("POST", PING)
    assert 0 < len(deployment.kms.calls) <= MAX_WASTED_UNWRAPS


def test_forged_question_ids_of_many_oauth_clients_are_charged_to_their_person(
    thirty_oauth_clients: list[Client], deployment: Deployment
) -> None:
    for number, client in enumerate(thirty_oauth_clients):
        client.answer(forge(client.session, number), {})
    assert 0 < len(deployment.kms.calls) <= MAX_WASTED_UNWRAPS


# ---- Without KMS


@pytest.fixture
def client_without_key(placement: str) -> Client:
    return Deployment(*ALL_HANDLERS, placement=placement, has_key=False).initialized_client()


def test_without_a_key_clients_work_without_a_session(client_without_key: Client) -> None:
    assert client_without_key.session is None
    assert client_without_key.result("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})["isError"] is False
    assert client_without_key.result("logging/setLevel", {"level": "debug"}) == {}


def test_without_a_key_no_session_is_found(client_without_key: Client) -> None:
    assert client_without_key.http("POST", PING, mcp_session_id="x")["statusCode"] == 404


def test_during_an_outage_of_kms_a_client_starts_without_a_session(deployment: Deployment) -> None:
    deployment.kms.failure = TemporarilyUnavailable("kms:down")
    assert deployment.initialized_client().session is None


def test_an_outage_of_kms_is_an_error_of_the_request_that_may_be_repeated(
    client: Client, deployment: Deployment
) -> None:
    deployment.replace_containers()
    deployment.kms.failure = TemporarilyUnavailable("kms:down")
    error = client.message("tools/list")["error"]
    assert (error["code"], error["data"]) == (-32603, {"retryable": True})


@pytest.mark.parametrize(
    ("failure", "misconfigured"),
    [(TemporarilyUnavailable("kms:down"), None), (Misconfigured("kms:denied"), True)],
)
def test_a_failure_of_kms_is_logged_as_an_error_though_the_status_is_200(
    failure: McpError,
    misconfigured: bool | None,  # noqa: FBT001 - parametrized
    deployment: Deployment,
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = deployment.initialized_client()
    deployment.replace_containers()
    deployment.kms.failure = failure
    with caplog.at_level("INFO", "mcp_functions"):
        client.message("tools/list")
        deployment.client().message("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
    tools_list, initialize = [vars(record) for record in caplog.records if vars(record).get("reason") == failure.reason]
    assert (tools_list["method"], tools_list["outcome"]) == ("tools/list", "failed")
    assert (initialize["method"], initialize["outcome"]) == ("initialize", "complete")
    for line in (tools_list, initialize):
        assert (line["status"], line["levelname"]) == (200, "ERROR")
        assert line.get("misconfigured") is misconfigured


# ---- The log level


def test_the_log_level_is_in_the_session(client: Client) -> None:
    session = client.session
    client.result("logging/setLevel", {"level": "error"})
    assert client.session != session
    assert len(client.call("report")) == 1  # without the log message
    client.result("logging/setLevel", {"level": "debug"})
    assert len(client.call("report")) == 2
