"""Fixtures that the tests of rounds share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import conversations

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.testing import Conversation


@pytest.fixture
def author_error(caplog: pytest.LogCaptureFixture) -> Callable[[Conversation], str]:
    """Read what the author learns about the tool that has just broken a rule."""
    return lambda talk: conversations.author_error(talk, caplog)
