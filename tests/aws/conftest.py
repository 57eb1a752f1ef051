"""Fixtures of the tests of the clients of AWS: a scripted service, called by our client and by boto3's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_functions.aws import endpoints
from tests.aws.calls import LAMBDA
from tests.support.http_servers import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _empty_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the developer's AWS configuration files, because with one the toolkit would call through boto3."""
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def service() -> Iterator[ScriptedServer]:
    with ScriptedServer().listening() as running:
        yield running


@pytest.fixture(params=["lean", "boto3"])
def client_kind(request: pytest.FixtureRequest, service: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> str:
    services = ("DYNAMODB", "KMS", "LAMBDA")
    known = {**LAMBDA, **{f"AWS_ENDPOINT_URL_{name}": f"http://{service.host}" for name in services}}
    unset = endpoints.BOTO3_VARIABLES + endpoints.TLS_VARIABLES + endpoints.PLAIN_VARIABLES
    for name in (*unset, "AWS_LAMBDA_FUNCTION_NAME", "_X_AMZN_TRACE_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**known, "MCP_AWS_CLIENT": request.param}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    return str(request.param)


@pytest.fixture
def half_of_the_longest_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the random bytes of the system make 0.5, so that a client waits for half of the longest time."""
    monkeypatch.setattr("os.urandom", lambda size: b"\x80".ljust(size, b"\0"))
