"""Clients of 2025 use the same functions through this translation layer; no server keeps a session.

A request of an earlier revision becomes one of 2026-07-28, the "modern" one. Its result is translated back.

    server.py           HTTP: which requests are legacy, their session and their headers
    message_handler.py  the messages of one HTTP request, or of a batch
    request_handler.py  one JSON-RPC request
    runner.py           runs it as modern requests; translation.py rewrites them
    conversations.py    calls that ask their user: the response ends with the question, and the answer is a request
    mailbox.py          keeps the messages that the clients of these calls fetch next

A session id is a sealed token: it holds the session itself, encrypted and authenticated. The modern path does not
import this package, so deleting these files removes the feature.
"""

from __future__ import annotations

from mcp_functions.legacy.runner import ModernServer
from mcp_functions.legacy.server import LegacyServer

__all__ = ["LegacyServer", "ModernServer"]
