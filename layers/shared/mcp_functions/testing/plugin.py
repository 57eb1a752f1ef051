"""The pytest plugin, loaded by its entry point: fixtures for conversations with functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.testing import Conversation


@pytest.fixture(scope="session")
def mcp_deployed() -> Iterator[None]:
    """Give the functions of a test session a deployment: the template's variables, and a KMS on loopback."""
    from mcp_functions.testing import deployed  # noqa: PLC0415 - imported only by tests that use the fixture

    with deployed():
        yield


@pytest.fixture
def converse(mcp_deployed: None) -> type[Conversation]:  # noqa: ARG001 - around the conversation
    """Return the class of conversations, inside the session's deployment."""
    from mcp_functions.testing import Conversation  # noqa: PLC0415 - imported only by tests that use the fixture

    return Conversation
