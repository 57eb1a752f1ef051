"""A tool that never asks: its Lambda can neither seal a state nor open one."""

from mcp_functions import serve, tool


@tool
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


handler = serve(add)
