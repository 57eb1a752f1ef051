from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.oauth.oauth_server import running_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.oauth.oauth_server import OAuthServer


@pytest.fixture
def server() -> Iterator[OAuthServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def client(server: OAuthServer) -> str:
    """Register a client, and return its id."""
    return server.new_client()
