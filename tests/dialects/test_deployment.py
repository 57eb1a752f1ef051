"""Operators switch dialects on by name; they are off by default and cause no server error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mcp_functions import dialects, settings
from mcp_functions_harness.catalog import generate
from mcp_functions_harness.testing import deployed
from tests.dialects.clients import MultiTurnClient, StateClient
from tests.dialects.functions import ALL_HANDLERS
from tests.dialects.wires import Events
from tests.support import wire
from tests.support.placements import PLACEMENTS, place

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.http.gateway import LambdaFunction

    Over = Callable[..., Events]

DIALECTS = "sep-1685,sep-1858,sep-2322-tasks"


def test_dialects_are_off_by_default() -> None:
    assert settings.Settings({"MCP_STACK": "shop"}).dialects == ()
    assert settings.Settings({"MCP_STACK": "shop", "MCP_DIALECTS": "sep-1858, sep-1685,"}).dialects == (
        "sep-1858",
        "sep-1685",
    )


@pytest.mark.parametrize("name", ["sep-1859", "SEP-1858", "sep_1858", "1858", "dialect", "sep-1858.x", "*"])
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_an_unknown_dialect_stops_the_server_and_the_log_lists_the_known_ones(
    placement: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with deployed(MCP_DIALECTS=f"sep-1858,{name}"):
        reply = Events(place(placement, *ALL_HANDLERS)).post(
            wire.message("tools/list"), wire.headers({"method": "tools/list"})
        )
    assert (reply.status, reply.messages[0]["error"]["code"]) == (500, -32603)
    assert f"MCP_DIALECTS names {name!r}: there are sep-1685, sep-1858, sep-2322-tasks" in caplog.text


def test_the_server_runs_after_the_file_of_a_dialect_is_deleted() -> None:
    """No module of the package names a dialect, neither another dialect nor the code that loads them."""
    package = Path(dialects.__file__).parents[1]
    modules = sorted(path.stem for path in Path(dialects.__file__).parent.glob("sep_*.py"))
    assert modules == ["sep_1685", "sep_1858", "sep_2322_tasks"]
    for path in package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert [name for name in modules if name in text and path.stem != name] == [], path


def test_cors_allows_the_headers_that_a_dialect_reads(wire_to: Over) -> None:
    asking = {"origin": "http://localhost:80", "access-control-request-method": "POST"}
    event = wire.event("", http_method="OPTIONS", headers=asking)
    response = wire_to().function(event, wire.Context("local_all"))
    assert "last-event-id" in response["headers"]["access-control-allow-headers"].split(", ")


def test_a_get_request_does_not_resume_a_stream(wire_to: Over) -> None:
    headers = {"last-event-id": "all.x", "mcp-protocol-version": wire.VERSION}
    event = wire.event("", http_method="GET", headers=headers)
    assert wire_to().function(event, wire.Context("local_all"))["statusCode"] == 405


@pytest.mark.parametrize("option", [0, 1, 2])
def test_a_call_too_large_for_a_state_gets_an_error_with_the_reason(
    option: int, caplog: pytest.LogCaptureFixture
) -> None:
    with deployed(MCP_DIALECTS=DIALECTS, MCP_MAX_STATE_CHARS="1000"):
        client = StateClient(Events(place("direct", *ALL_HANDLERS)), option)
        call = {"name": "long", "arguments": {"text": "x" * 2000}}
        (message,) = client.request("tools/call", call).messages
        assert message["result"]["isError"] is True
        assert "more to remember than it can carry" in message["result"]["content"][0]["text"]
        read = client.request("resources/read", {"uri": f"long://{'x' * 2000}"})
        assert (read.status, read.messages[0]["error"]["code"]) == (200, -32602)
        assert "MCP_MAX_STATE_CHARS" in caplog.text


def test_a_client_that_declares_two_dialects_gets_one_of_them(wire_to: Over) -> None:
    client = MultiTurnClient(wire_to())
    client.capabilities["experimental"] |= {"sep-1685": {}}
    call = {"name": "both", "arguments": {}}
    assert "dependent_requests" not in client.request("tools/call", call).text
    names = [event["event"] for event in client.replies[-1].events]
    assert names in (["message"], ["buffer_input", "message", "message", "input_required"])


scraps: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "x", "all.x", "all.ks1.AAAA", "other.ks1.x", {}, [], {"sealed": "all.x"}, "\u2028"]
)
fields = st.sampled_from(
    ["jsonrpc", "id", "result", "error", "state", "method", "params", "dependent_responses", "responses"]
)
odd = st.recursive(scraps, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fields, inner, max_size=5))
response = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "id": scraps}, optional={"result": odd, "state": odd, "error": odd}
)


@hypothesis_settings(max_examples=60)
@given(
    body=odd | response | st.lists(response, max_size=3),
    last=st.none() | st.sampled_from(["", "x", "all.x", "all.ks1.A"]),
)
def test_random_requests_cause_no_server_error_with_dialects(
    placed_function: tuple[str, LambdaFunction],
    body: Any,  # noqa: ANN401 - JSON
    last: str | None,
) -> None:
    reply = Events(placed_function[1]).post(
        json.dumps(body),
        {"mcp-protocol-version": wire.VERSION, **({} if last is None else {"last-event-id": last})},
    )
    assert reply.status < 500
    assert "Internal" not in reply.text


def test_a_dialect_does_not_change_the_catalog_of_a_function(tmp_path: Path) -> None:
    folder = tmp_path / "echo"
    folder.mkdir()
    source = Path(__file__).with_name("echo") / "app.py"
    (folder / "app.py").write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    assert "experimental" not in json.dumps(generate(tmp_path))
