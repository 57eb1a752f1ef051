"""A tool that is never a task, whatever its client could take."""

from mcp_functions import serve, tool


@tool
def greet(name: str) -> str:
    """Greet a person."""
    return f"Hello, {name}!"


handler = serve(greet)
