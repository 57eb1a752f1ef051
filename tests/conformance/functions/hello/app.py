"""First in the list: the suite's header checks call the first tool there is, with no arguments at all."""

from mcp_functions import serve, tool


@tool
def hello() -> str:
    """Return a greeting."""
    return "Hello."


handler = serve(hello)
