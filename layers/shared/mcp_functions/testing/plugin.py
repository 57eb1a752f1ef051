"""The pytest plugin, found by its entry point: fixtures for conversations with functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.testing import Conversation


@pytest.fixture(scope="session")
def mcp_deployed() -> Iterator[None]:
    """Give the session's functions what a deployment gives them: the template's variables, and a KMS on loopback."""
    from mcp_functions.testing import deployed  # noqa: PLC0415 - nothing is loaded for those who do not ask

    with deployed():
        yield


@pytest.fixture
def converse(mcp_deployed: None) -> type[Conversation]:  # noqa: ARG001 - around the conversation
    """Give a test what begins conversations, with functions that are deployed."""
    from mcp_functions.testing import Conversation  # noqa: PLC0415

    return Conversation
