"""Decides whether the server can ask a legacy client, and explains why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.http import events

if TYPE_CHECKING:
    from mcp_functions.legacy.conversations import Conversations
    from mcp_functions.legacy.exchange import Exchange
    from mcp_functions.legacy.final_messages import Why


class QuestionPolicy:
    """Decides for each exchange which questions its client can answer."""

    def __init__(self, conversations: Conversations | None, questions_since: str) -> None:
        """Use the conversations of a deployment.

        Args:
            conversations: None without a key or a table.
            questions_since: the first revision whose clients are asked.

        """
        self._conversations, self._since = conversations, questions_since

    def conversations_for(self, exchange: Exchange, *, in_batch: bool) -> Conversations | None:
        """Return the conversations if this client can be asked now: it must resume the stream after its answer."""
        session = exchange.session
        if in_batch or session is None or not session.resumes_streams:
            return None
        if exchange.revision < self._since or not events.takes_stream(exchange.http):
            return None
        return self._conversations

    def capabilities(self, exchange: Exchange, *, in_batch: bool) -> dict[str, Any]:
        """Return the client's capabilities that a function may use now."""
        session = exchange.session
        if session is None or in_batch:
            return {}
        if self.conversations_for(exchange, in_batch=in_batch):
            return session.capabilities
        # The error -32042 asks a client to open a page, so that question needs no mailbox.
        return {"elicitation": {"url": {}}} if "u" in session.declared else {}

    def why_not(self, exchange: Exchange) -> Why:
        """Return why this client, which declared the capability, is not asked."""
        if exchange.revision < self._since:
            return "revision"
        if exchange.session and not exchange.session.resumes_streams:
            return "leaves"
        return "mailbox"
