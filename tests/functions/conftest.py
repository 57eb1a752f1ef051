"""The fixture that compares a sample's conversation with its recorded events."""

from __future__ import annotations

import pytest

from tests.support.recordings import Recording


@pytest.fixture
def recording(request: pytest.FixtureRequest) -> Recording:
    return Recording(update=request.config.getoption("--update-events"))
