"""A tool that a client would have to come back for, on a server that ends its stream in the middle of the work.

This one has no middle: what needs no user is one response, so there is nothing to come back for. What a client does
come back for here is the answer to a question: test_elicitation and its like.
"""

from mcp_functions import serve, tool


@tool
def test_reconnection() -> str:
    """Answer at once."""
    return "Nothing was interrupted."


handler = serve(test_reconnection)
