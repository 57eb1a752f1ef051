"""The revision that answers a request: each row of the table in docs/legacy.md, seen from its response.

A request of 2026-07-28 names its revision in `_meta` ("envelope"). Without an envelope it is a request of 2025.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_functions import serve
from mcp_functions_harness.testing import deployed
from tests.legacy.clients import Client, read_question
from tests.legacy.deployment import Deployment
from tests.legacy.handlers import ALL_HANDLERS, add
from tests.support import wire

INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}
LIST: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


PROGRESS: dict[str, Any] = {
    "jsonrpc": "2.0",
    "method": "notifications/progress",
    "params": {"progressToken": 1, "progress": 1},
}


@pytest.fixture
def client(placement: str) -> Client:
    return Deployment(*ALL_HANDLERS, placement=placement).client()


def post(client: Client, body: Any, version: str | None = None, **headers: str | None) -> tuple[int, Any]:  # noqa: ANN401 - JSON
    """Send a body under MCP-Protocol-Version (None: without it); return the status and the JSON of the response."""
    response = client.http("POST", body, mcp_protocol_version=version, **headers)
    return response["statusCode"], json.loads(response["body"]) if response["body"] else None


def assert_error(response: tuple[int, Any], status: int, code: int) -> None:
    assert (response[0], response[1]["error"]["code"]) == (status, code)


# ---- With an envelope


def test_a_request_with_an_envelope_is_of_2026(client: Client) -> None:
    _status, response = post(client, wire.message("tools/list"), "2026-07-28", mcp_method="tools/list")
    assert response["result"]["resultType"] == "complete"


@pytest.mark.parametrize("version", [None, "2025-11-25", "2027-01-01"])
def test_header_and_envelope_must_name_the_same_revision(client: Client, version: str | None) -> None:
    assert_error(post(client, wire.message("tools/list"), version, mcp_method="tools/list"), 400, -32020)


def test_initialize_with_an_envelope_is_an_unknown_method(client: Client) -> None:
    message = wire.message("initialize", INITIALIZE["params"])
    assert_error(post(client, message, "2026-07-28", mcp_method="initialize"), 404, -32601)


@pytest.mark.parametrize("version", ["2026-07-28", "2027-01-01", "v999", "2025-11-25,2025-11-25"])
def test_a_header_that_is_not_of_2025_needs_the_envelope(client: Client, version: str) -> None:
    assert_error(post(client, LIST, version), 400, -32602)


def test_an_envelope_with_a_legacy_revision_gets_the_list_of_modern_revisions(client: Client) -> None:
    message = wire.message("tools/list", version="2025-11-25")
    response = post(client, message, "2025-11-25", mcp_method="tools/list")
    assert_error(response, 400, -32022)
    assert response[1]["error"]["data"]["supported"] == ["2026-07-28"]


# ---- Without an envelope


@pytest.mark.parametrize("version", [None, "2025-03-26", "2025-06-18", "2025-11-25"])
def test_initialize_without_an_envelope_is_the_legacy_handshake(client: Client, version: str | None) -> None:
    status, response = post(client, INITIALIZE, version)
    assert status == 200
    assert response["result"]["protocolVersion"] == "2025-11-25"


def test_initialize_under_a_modern_header_gets_the_list_of_revisions(client: Client) -> None:
    assert_error(post(client, INITIALIZE, "2026-07-28"), 400, -32022)


@pytest.mark.parametrize("version", [None, "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_without_an_envelope_a_request_of_2025_is_legacy(client: Client, version: str | None) -> None:
    status, response = post(client, LIST, version)
    assert status == 200
    assert response["result"].keys() == {"tools"}


def test_a_request_without_a_header_is_of_2025_03_26(client: Client) -> None:
    """Without the header, "the server SHOULD assume protocol version 2025-03-26", which has no outputSchema."""
    _status, response = post(client, LIST)
    assert not [tool for tool in response["result"]["tools"] if "outputSchema" in tool]


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen"])
def test_a_call_of_a_2026_method_without_its_envelope_gets_an_error_that_names_the_gap(
    client: Client, method: str
) -> None:
    assert_error(post(client, {"jsonrpc": "2.0", "id": 1, "method": method}), 400, -32602)


# ---- Arrays: 2025-06-18, changelog: "Remove support for JSON-RPC batching"

VERSIONS_OF_2025 = ["2025-03-26", "2025-06-18", "2025-11-25"]
MESSAGE = "Send one message, not an array: MCP 2025-06-18 removed batches, and this server accepts none"
REFUSAL = (400, {"jsonrpc": "2.0", "error": {"code": -32600, "message": MESSAGE}})


@pytest.mark.parametrize("version", [None, "2024-11-05", *VERSIONS_OF_2025, "2026-07-28", "v999"])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param([], id="empty"),
        pytest.param([PING], id="a request"),
        pytest.param([LIST, PROGRESS, PING], id="several messages"),
        pytest.param([PROGRESS], id="a notification"),
        pytest.param([{"jsonrpc": "2.0", "id": "1", "result": {}}], id="a response"),
        pytest.param([INITIALIZE], id="a handshake"),
        pytest.param([wire.message("tools/list")], id="a request of 2026"),
        pytest.param([[PING]], id="an array"),
        pytest.param([1], id="a number"),
    ],
)
def test_an_array_is_refused_in_every_revision(client: Client, body: list[Any], version: str | None) -> None:
    assert post(client, body, version) == REFUSAL


@pytest.mark.parametrize("version", VERSIONS_OF_2025)
def test_an_array_in_a_session_calls_no_function(
    placement: str, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    deployment = Deployment(*ALL_HANDLERS, placement=placement)
    client = deployment.client()
    client.initialize(version)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}
    for header in (None, *VERSIONS_OF_2025):
        with caplog.at_level("INFO", "mcp_functions"):
            assert post(client, [call, {**call, "id": 2}], header) == REFUSAL
        line = vars(caplog.records[-1])
        assert (line["outcome"], line["reason"], line["levelname"]) == ("refused", "array", "INFO")
    assert deployment.rounds_run == 0
    assert post(client, call, version)[0] == 200


# ---- The revision of a session


@pytest.mark.parametrize("negotiated", VERSIONS_OF_2025)
@pytest.mark.parametrize("header", [None, "2024-11-05", *VERSIONS_OF_2025])
def test_a_session_keeps_its_revision_under_every_header_of_2025(
    client: Client, negotiated: str, header: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    client.initialize(negotiated)
    expected = client.result("tools/list")
    with caplog.at_level("INFO", "mcp_functions"):
        _status, response = post(client, LIST, header)
    assert response["result"] == expected
    assert vars(caplog.records[-1])["revision"] == negotiated


@pytest.mark.parametrize("header", ["2026-07-28", "2027-01-01", "v999", ""])
def test_a_header_that_names_no_revision_of_2025_is_refused_in_a_session(client: Client, header: str) -> None:
    """2025-11-25: "an invalid or unsupported `MCP-Protocol-Version`, it MUST respond with `400 Bad Request`"."""
    client.initialize("2025-11-25")
    assert_error(post(client, LIST, header), 400, -32602)


def test_a_client_is_asked_as_its_session_says_under_the_header_of_an_earlier_revision(client: Client) -> None:
    client.initialize("2025-11-25")
    resolve = {"name": "resolve", "arguments": {"bug": 7}}
    assert read_question(client.send("tools/call", resolve, mcp_protocol_version="2025-03-26"))


# ---- Other requests


def test_a_response_to_no_question_is_refused(client: Client) -> None:
    client.initialize()
    assert_error(post(client, {"jsonrpc": "2.0", "id": "1", "result": {}}), 400, -32600)


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_only_post_is_allowed_without_an_event_id(client: Client, method: str) -> None:
    client.initialize()
    response = client.http(method)
    assert response["statusCode"] == 405
    assert response["headers"]["allow"] == "POST"


@pytest.mark.parametrize("version", ["2025-11-25", None])
def test_an_unknown_event_id_is_not_found(client: Client, version: str | None) -> None:
    client.initialize()
    response = client.http("GET", last_event_id="ks1.none", mcp_protocol_version=version)
    assert response["statusCode"] == 404


@pytest.mark.parametrize(
    ("event_id", "version"),
    [
        pytest.param("ks1.none", "2026-07-28", id="a client of 2026"),
        pytest.param("żółw", "2025-11-25", id="not ASCII, so no id of this server"),
    ],
)
def test_get_is_not_allowed_if_there_is_nothing_to_resume(client: Client, event_id: str, version: str) -> None:
    client.initialize()
    assert client.http("GET", last_event_id=event_id, mcp_protocol_version=version)["statusCode"] == 405


@pytest.mark.parametrize(
    ("body", "code"),
    [("{", -32700), ('{"jsonrpc": "2.0"}', -32600), ({**LIST, "id": None}, -32600)],
)
def test_a_malformed_body_gets_the_same_error_as_from_clients_of_2026(client: Client, body: Any, code: int) -> None:  # noqa: ANN401 - JSON
    assert_error(post(client, body), 400, code)


def test_a_body_of_another_content_type_is_refused(client: Client) -> None:
    response = post(client, LIST, content_type="text/plain")
    assert_error(response, 415, -32600)
    assert response[1]["id"] == LIST["id"]


@pytest.mark.parametrize(("switch", "status"), [("on", 200), ("off", 400)])
def test_earlier_revisions_can_be_switched_off(switch: str, status: int) -> None:
    with deployed(MCP_EARLIER_REVISIONS=switch):
        assert post(Client(serve(add)), INITIALIZE)[0] == status
