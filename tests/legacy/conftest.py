from __future__ import annotations

import pytest

from tests.support.placements import PLACEMENTS


@pytest.fixture(params=PLACEMENTS)
def placement(request: pytest.FixtureRequest) -> str:
    """Return whether clients reach the Lambda with the handlers directly or through the front door."""
    return str(request.param)
