"""What the tests of a page begin with: its code, run afresh, and what it touches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.docs.pages import Page
from tests.docs.stand_ins import Clock, Ledger

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.testing import Conversation


@pytest.fixture
def page() -> dict[str, Any]:
    return Page.named("writing-a-conversation.md").run()


@pytest.fixture
def blamed(caplog: pytest.LogCaptureFixture) -> Callable[[Conversation], str]:
    """Says what the log tells the author about the round that has just failed; the client hears nothing of it."""

    def read(talk: Conversation) -> str:
        assert (talk.status, talk.error) == (500, {"code": -32603, "message": "Internal error"})
        return caplog.messages[-1]

    return read


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()
