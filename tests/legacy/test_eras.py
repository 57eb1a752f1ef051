"""The revision that a request belongs to: each row of the table is recognised by the response."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.legacy.offered import ALL
from tests.legacy.world import DOORS, World
from tests.support import wire

if TYPE_CHECKING:
    from tests.legacy.clients import Client

INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}
LIST: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


@pytest.fixture(params=DOORS)
def client(request: pytest.FixtureRequest) -> Client:
    return World(*ALL, door=request.param).client()


def sent(client: Client, body: Any, version: str | None = None, **headers: str | None) -> tuple[int, Any]:  # noqa: ANN401 - JSON
    response = client.http("POST", body, mcp_protocol_version=version, **headers)
    return response["statusCode"], json.loads(response["body"]) if response["body"] else None


def code(answer: tuple[int, Any]) -> tuple[int, int]:
    return answer[0], answer[1]["error"]["code"]


@pytest.mark.parametrize("version", [None, "2025-11-25", "2026-07-28"])
def test_a_modern_envelope_makes_a_request_modern_whatever_its_header_says(client: Client, version: str | None) -> None:
    listed = sent(client, wire.message("tools/list"), version, mcp_method="tools/list")
    if version == "2026-07-28":
        assert listed[1]["result"]["resultType"] == "complete"
    else:
        assert code(listed) == (400, -32020)


def test_initialize_with_a_modern_envelope_is_a_method_that_is_gone(client: Client) -> None:
    modern = wire.message("initialize", INITIALIZE["params"])
    assert code(sent(client, modern, "2026-07-28", mcp_method="initialize")) == (404, -32601)


@pytest.mark.parametrize("version", ["2026-07-28", "2027-01-01", "v999", "2025-11-25,2025-11-25"])
def test_a_header_that_is_not_of_2025_needs_the_envelope(client: Client, version: str) -> None:
    assert code(sent(client, LIST, version)) == (400, -32602)


def test_header_and_envelope_must_agree(client: Client) -> None:
    asked = wire.message("tools/list", version="2027-01-01")
    assert code(sent(client, asked, "2026-07-28", mcp_method="tools/list")) == (400, -32020)


def test_an_envelope_with_a_legacy_revision_gets_the_list_of_modern_revisions(client: Client) -> None:
    answer = sent(client, wire.message("tools/list", version="2025-11-25"), "2025-11-25", mcp_method="tools/list")
    assert code(answer) == (400, -32022)
    assert answer[1]["error"]["data"]["supported"] == ["2026-07-28"]


@pytest.mark.parametrize("version", [None, "2025-03-26", "2025-06-18", "2025-11-25"])
def test_initialize_without_an_envelope_is_the_legacy_handshake(client: Client, version: str | None) -> None:
    status, answer = sent(client, INITIALIZE, version)
    assert (status, answer["result"]["protocolVersion"]) == (200, "2025-11-25")


def test_initialize_under_a_modern_header_gets_the_list_of_revisions(client: Client) -> None:
    assert code(sent(client, INITIALIZE, "2026-07-28")) == (400, -32022)


@pytest.mark.parametrize("version", [None, "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_without_an_envelope_a_request_of_2025_is_legacy(client: Client, version: str | None) -> None:
    status, answer = sent(client, LIST, version)
    assert status == 200
    assert answer["result"].keys() == {"tools"}
    # absent, "the server SHOULD assume protocol version 2025-03-26", which knows no outputSchema
    has_output = any("outputSchema" in tool for tool in answer["result"]["tools"])
    assert has_output == (version in {"2025-06-18", "2025-11-25"})


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen"])
def test_a_call_of_a_2026_method_without_its_envelope_gets_an_error_that_names_the_gap(
    client: Client, method: str
) -> None:
    assert code(sent(client, {"jsonrpc": "2.0", "id": 1, "method": method})) == (400, -32602)


@pytest.mark.parametrize("version", [None, "2025-03-26"])
def test_an_array_is_a_batch_of_2025_03_26(client: Client, version: str | None) -> None:
    told = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
    status, answer = sent(client, [LIST, told, PING], version)
    assert (status, [each["id"] for each in answer]) == (200, [1, 2])
    assert sent(client, [told, told], version) == (202, None)


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_an_array_is_nothing_for_a_later_revision(client: Client, version: str) -> None:
    assert code(sent(client, [LIST], version)) == (400, -32600)


@pytest.mark.parametrize("body", [[], [LIST, wire.message("tools/list")], [1], [LIST] * 51, [[LIST]]])
def test_a_batch_is_whole_legacy_and_bounded(client: Client, body: list[Any]) -> None:
    assert code(sent(client, body)) == (400, -32600)


def test_a_batch_under_a_later_revision_needs_a_valid_session_and_is_logged_as_a_batch(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    assert code(sent(client, [LIST], "2025-11-25", mcp_session_id="unknown")) == (404, -32600)
    with caplog.at_level("INFO", "mcp_functions"):
        sent(client, [LIST], "2025-11-25")
    assert caplog.records[-1].__dict__["method"] == "batch"


def test_a_session_of_another_revision_has_no_batches(client: Client) -> None:
    client.initialize("2025-06-18")
    assert code(sent(client, [LIST])) == (400, -32600)
    client.initialize("2025-03-26")
    assert sent(client, [PING]) == (200, [{"jsonrpc": "2.0", "id": 2, "result": {}}])


def test_a_batch_may_not_initialize(client: Client) -> None:
    status, answer = sent(client, [INITIALIZE])
    assert (status, answer[0]["error"]["code"]) == (200, -32601)


def test_a_response_to_nothing_is_refused(client: Client) -> None:
    client.initialize()
    assert code(sent(client, {"jsonrpc": "2.0", "id": "1", "result": {}})) == (400, -32600)


def test_there_is_no_stream_to_listen_to_and_no_session_to_end(client: Client) -> None:
    client.initialize()
    for method in ("GET", "DELETE", "PUT"):
        response = client.http(method)
        assert (response["statusCode"], response["headers"]["allow"]) == (405, "POST")


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28", None])
def test_a_stream_that_was_never_started_is_not_resumed(client: Client, version: str | None) -> None:
    client.initialize()
    status = client.http("GET", last_event_id="ks1.none", mcp_protocol_version=version)["statusCode"]
    assert status == (405 if version == "2026-07-28" else 404)
    assert client.http("GET", last_event_id="żółw")["statusCode"] == 405


def test_a_malformed_body_gets_the_same_error_as_for_other_clients(client: Client) -> None:
    assert code(sent(client, "{", None)) == (400, -32700)
    assert code(sent(client, '{"jsonrpc": "2.0"}', None)) == (400, -32600)
    assert code(sent(client, {**LIST, "id": None}, None)) == (400, -32600)
    status, error = sent(client, LIST, None, content_type="text/plain")
    assert (status, error["error"]["code"], error["id"]) == (415, -32600, LIST["id"])


def test_earlier_revisions_can_be_switched_off() -> None:
    from mcp_functions import serve  # noqa: PLC0415
    from mcp_functions.testing import deployed  # noqa: PLC0415
    from tests.legacy.clients import Client  # noqa: PLC0415
    from tests.legacy.offered import add  # noqa: PLC0415

    for switch, status in (("on", 200), ("off", 400)):
        with deployed(MCP_EARLIER_REVISIONS=switch):
            assert sent(Client(serve(add)), INITIALIZE)[0] == status
