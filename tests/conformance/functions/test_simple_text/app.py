"""A tool that answers with text."""

from mcp_functions import serve, tool


@tool
def test_simple_text() -> str:
    """Return a simple text."""
    return "This is a simple text response for testing."


handler = serve(test_simple_text)
