"""`mcp-functions verify URL` with AuthMode jwt: a token of the local issuer gives access to closed routes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness import Harness
from mcp_functions_harness.loopback import HttpRequest, HttpResponse, json_response

from .conftest import FOLDERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .conftest import Verified

    Verify = Callable[..., Verified]
    Gate = Callable[..., str]

MISSING = "callers need an access token: set MCP_FUNCTIONS_TOKEN, or pass --token"
ROOT = "/.well-known/oauth-protected-resource"


@pytest.fixture(scope="module")
def harness(directory: Path) -> Iterator[Harness]:
    with Harness(directory, state_dir=directory.parent / "closed", auth="jwt") as running:
        yield running


@pytest.fixture
def token(harness: Harness) -> str:
    assert harness.issuer
    return harness.issuer.token(subject="ann")


def test_verify_reaches_closed_routes_with_a_token(
    harness: Harness, token: str, verify: Verify, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_FUNCTIONS_TOKEN", token)
    verified = verify(harness.url, "--auth", "jwt", "--tool", "count", "--arguments", '{"most": 3}')
    assert verified.code == 0
    assert verified.lines["endpoint"] == ("ok", f"{harness.url} answers; mode jwt, callers have an access token")
    assert verified.lines["closed routes"] == (
        "ok",
        f"/mcp and {FOLDERS} functions refuse a caller without credentials",
    )
    assert verified.lines["open routes"] == ("ok", f"OPTIONS /mcp, {ROOT}/mcp, {ROOT}")
    assert [verified.lines[name][0] for name in ("lists", "functions", "conversation", "task")] == ["ok"] * 4


def test_verify_without_a_token_runs_only_the_checks_that_need_none(harness: Harness, verify: Verify) -> None:
    verified = verify(harness.url)
    assert verified.code == 0
    assert [verified.lines[name][0] for name in ("closed routes", "open routes")] == ["ok", "ok"]
    needing = ("endpoint", "lists", "functions", "conversation", "task")
    assert {verified.lines[name] for name in needing} == {("skipped", MISSING)}


def test_verify_reports_a_refused_token_without_showing_it(harness: Harness, verify: Verify) -> None:
    verified = verify(harness.url, "--token", "not-a-token")
    assert verified.failed() == {"endpoint": "your credentials are refused: HTTP 401, no JSON-RPC response"}
    assert "not-a-token" not in str(verified)


def test_verify_accepts_the_preflight_of_an_allowed_origin(harness: Harness, token: str, verify: Verify) -> None:
    origin = harness.url.removesuffix("/mcp")
    verified = verify(harness.url, "--token", token, "--origin", origin)
    assert verified.lines["open routes"] == ("ok", f"OPTIONS /mcp, {ROOT}/mcp, {ROOT}, preflights of {origin}")


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (json_response(403, {"message": "Forbidden"}), "answers HTTP 403 to a caller without credentials"),
        (json_response(200, {"resource": "https://other.example/mcp"}), "names the resource https://other.example/mcp"),
        (HttpResponse(200, (), b"<html>"), "names the resource None, and clients use"),
    ],
)
def test_verify_reports_metadata_that_no_client_can_use(
    document: HttpResponse, why: str, harness: Harness, verify: Verify, gate: Gate
) -> None:
    def decide(request: HttpRequest) -> HttpRequest | HttpResponse:
        return document if request.target.startswith(ROOT) else request

    verified = verify(gate(harness.url, decide))
    assert list(verified.failed()) == ["open routes"]
    assert verified.failed()["open routes"].startswith(f"{ROOT}/mcp {why}")


def test_verify_reports_metadata_without_an_issuer(harness: Harness, verify: Verify, gate: Gate) -> None:
    def decide(request: HttpRequest) -> HttpRequest | HttpResponse:
        ours = f"http://{request.header('host')}/mcp"
        return json_response(200, {"resource": ours}) if request.target.startswith(ROOT) else request

    assert verify(gate(harness.url, decide)).failed() == {"open routes": f"{ROOT}/mcp names no issuer of tokens"}


def test_verify_reports_an_open_route_that_must_require_a_token(
    harness: Harness, token: str, verify: Verify, gate: Gate
) -> None:
    def decide(request: HttpRequest) -> HttpRequest | HttpResponse:
        if request.target != "/mcp/greet":
            return request
        return HttpRequest(
            request.method, request.target, (*request.headers, ("authorization", f"Bearer {token}")), request.body
        )

    failed = verify(gate(harness.url, decide)).failed()
    assert failed["closed routes"] == "/mcp/greet answers HTTP 200 to a caller without credentials"
    assert json.dumps(failed).count(token) == 0
