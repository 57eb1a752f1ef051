"""Fixtures that the tests of clients of 2025 share. A file whose clients begin otherwise has its own `client`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.legacy.deployment import Deployment
from tests.legacy.handlers import ALL_HANDLERS
from tests.support.placements import PLACEMENTS

if TYPE_CHECKING:
    from tests.legacy.clients import Client


@pytest.fixture(params=PLACEMENTS)
def placement(request: pytest.FixtureRequest) -> str:
    """Return whether clients reach the Lambda with the handlers directly or through the front door."""
    return str(request.param)


@pytest.fixture
def deployment(placement: str) -> Deployment:
    """Deploy all handlers of `tests.legacy.handlers`."""
    return Deployment(*ALL_HANDLERS, placement=placement)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let no pause between two attempts take time; return the pauses in seconds."""
    pauses: list[float] = []
    monkeypatch.setattr("mcp_functions.legacy.call_store.sleep", pauses.append)
    return pauses


@pytest.fixture
def client(deployment: Deployment) -> Client:
    """Return a client that has done the handshake."""
    return deployment.initialized_client()
