"""A task that ends as no result can say: its result is larger than a task can keep, which is an error of the protocol."""

from mcp_functions import serve, tool


@tool(task="required")
def protocol_error_job() -> str:
    """Break down."""
    return "x" * 1_000_000


handler = serve(protocol_error_job)
