"""Conversations with functions that a test defines itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions import serve
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions_harness.testing import Conversation

if TYPE_CHECKING:
    import pytest

    from mcp_functions.handlers.base import Handler


def talk_to(handler: Handler[..., Any], **options: Any) -> Conversation:  # noqa: ANN401 - of Conversation
    """Begin a conversation with one handler."""
    return Conversation(serve(handler), **options)


def author_error(talk: Conversation, caplog: pytest.LogCaptureFixture) -> str:
    """Return what a test tells the author about the tool that has just broken a rule.

    The client learns only that the tool failed, and the log only which rule it broke and where.
    """
    assert talk.status == 200
    assert talk.text == f"The tool {talk.function} failed unexpectedly. The server's log says why."
    assert isinstance(talk.raised, DeveloperError)
    assert caplog.messages[-1].startswith(f"failed: {talk.raised.rule} at ")
    return str(talk.raised)
