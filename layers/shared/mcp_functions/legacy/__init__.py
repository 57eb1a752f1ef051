"""Clients of 2025 use the same functions through this translation layer; no server keeps a session.

A legacy request (of 2025-03-26, 2025-06-18 or 2025-11-25) becomes a request of 2026-07-28, and its result is translated
back. A session id holds the session itself, sealed: the client can neither read nor change it.

    server.py           an HTTP request comes in, an HTTP response goes out
    request.py          one HTTP request, with its caller and the parts of the deployment
    sessions.py         what a client sent in `initialize`; sealed_ids.py has the seal of sessions and other ids
    replies.py          the reply to one JSON-RPC request
    runner.py           runs the rounds of a call: current_requests.py writes a request of 2026-07-28, outcomes.py
                        reads what came of it, and translation.py rewrites its result
    explanations.py     the text for the model if a call was not finished, because the user cannot be asked
    waiting_calls.py    calls that ask their user: the response ends with the question
    answers.py          the answers to these questions, each of which is a request
    streams.py          the events for a client that returns for the rest of a call; call_ids.py has the ids for that
    call_store.py       the table with the messages that a client has not fetched yet

`assembly` imports this package for the first request that is not of 2026-07-28. With `MCP_EARLIER_REVISIONS=off` it
never does.
"""

from __future__ import annotations

from mcp_functions.legacy.current_requests import forwardable_event
from mcp_functions.legacy.server import LegacyServer

__all__ = ["LegacyServer", "forwardable_event"]
