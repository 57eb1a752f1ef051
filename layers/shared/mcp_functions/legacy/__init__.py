"""Clients of 2025 use the same functions through this translation layer; no server keeps a session.

A request of an earlier revision becomes one of 2026-07-28, the "modern" one. Its result is translated back.

    server.py           an HTTP request comes in, an HTTP response goes out; batches.py has the batches of 2025-03-26
    exchange.py         one HTTP request, with its caller and the parts of the deployment; sessions.py has its session
    replies.py          the reply to one JSON-RPC request
    runner.py           runs it as modern requests; translation.py rewrites them
    conversations.py    calls that ask their user: the response ends with the question, and the answer is a request
    round_records.py    runs the next rounds of these calls, and records the outcomes
    streams.py          the events for a client that returns for the rest of a call
    mailbox.py          the table with the messages that a client has not fetched yet

Most of this package is plain functions over one value, `Exchange`. Only the mailbox and the seals have state.
A session id is a sealed token: it holds the session itself, encrypted and authenticated. The modern path does not
import this package, so deleting these files removes the feature.
"""

from __future__ import annotations

from mcp_functions.legacy.runner import ModernServer
from mcp_functions.legacy.server import LegacyServer

__all__ = ["LegacyServer", "ModernServer"]
