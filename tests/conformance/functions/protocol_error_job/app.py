"""A task that ends as no result can say: with an error of the protocol."""

from mcp_functions import serve, tool


@tool(task="required")
def protocol_error_job() -> str:
    """Break down."""
    message = "This job always breaks down"
    raise RuntimeError(message)


handler = serve(protocol_error_job)
