"""A task that ends with an error of the protocol: its result is larger than a task can keep."""

from mcp_functions import serve, tool


@tool(task="required")
def protocol_error_job() -> str:
    """Break down."""
    return "x" * 1_000_000


handler = serve(protocol_error_job)
