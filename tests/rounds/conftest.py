"""Fixtures that the tests of rounds share."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support import conversations

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions_harness.testing import Conversation

    AuthorError = Callable[[Conversation], str]


@pytest.fixture
def author_error(caplog: pytest.LogCaptureFixture) -> AuthorError:
    """Return the message that the author of a tool reads after the tool has broken a rule."""
    return lambda talk: conversations.author_error(talk, caplog)


@pytest.fixture
def runs() -> Counter[str]:
    """Count how often each function ran; the functions of a test do so themselves."""
    return Counter()
