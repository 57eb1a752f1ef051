from __future__ import annotations

import pytest

from tests.tasks.deployment import Client, Deployment
from tests.tasks.jobs import JOBS, STARTED_STEPS, STEP_HOOKS


@pytest.fixture(autouse=True)
def _forget_steps() -> None:
    """Forget the steps and hooks of the test before this one."""
    STARTED_STEPS.clear()
    STEP_HOOKS.clear()


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """List the pauses of workers while the table is unavailable, in seconds; nothing waits."""
    pauses: list[float] = []
    monkeypatch.setattr("mcp_functions.tasks.lease.sleep", pauses.append)
    return pauses


@pytest.fixture
def deployment() -> Deployment:
    return Deployment(*JOBS)


@pytest.fixture
def alice(deployment: Deployment) -> Client:
    return Client(deployment)
