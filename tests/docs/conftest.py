"""What the tests of a page begin with: its code, run afresh, and what it touches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions.protocol.errors import DeveloperError
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
    """Says what a test tells the author about the round that has just failed; the client and the log are told less."""

    def read(talk: Conversation) -> str:
        assert talk.status == 200
        assert talk.text == f"The tool {talk.function} failed unexpectedly. The server's log says why."
        assert isinstance(talk.raised, DeveloperError)
        assert caplog.messages[-1].startswith(f"failed: {talk.raised.rule} at ")
        return str(talk.raised)

    return read


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()
