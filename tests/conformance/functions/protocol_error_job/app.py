"""A task that ends as no result can say: with an error of the protocol."""

from mcp_functions import serve, tool
from mcp_functions.errors import InternalError


@tool(task="required")
def protocol_error_job() -> str:
    """Break down."""
    raise InternalError


handler = serve(protocol_error_job)
