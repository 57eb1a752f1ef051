from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.oauth import world as worlds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.oauth.world import World


@pytest.fixture
def world() -> Iterator[World]:
    with worlds.running() as running:
        yield running
