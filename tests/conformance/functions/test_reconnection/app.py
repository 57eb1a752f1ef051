"""A tool whose client must reconnect, on a server that closes its stream during the work.

This server sends one response for work without a question, so no client reconnects. A client reconnects here only to
answer a question, as in test_elicitation.
"""

from mcp_functions import serve, tool


@tool
def test_reconnection() -> str:
    """Answer at once."""
    return "Nothing was interrupted."


handler = serve(test_reconnection)
