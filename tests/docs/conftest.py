"""Fixtures for the tests of a page: its code, run for each test, and the services that it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.docs.pages import Page
from tests.docs.stand_ins import Clock, Ledger
from tests.support import conversations

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions_harness.testing import Conversation


@pytest.fixture
def page() -> dict[str, Any]:
    return Page.named("writing-a-conversation.md").run()


@pytest.fixture
def author_error(caplog: pytest.LogCaptureFixture) -> Callable[[Conversation], str]:
    """Read what the author learns about the tool that has just broken a rule."""
    return lambda talk: conversations.author_error(talk, caplog)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()
