"""A tool that fails, and tells the model why."""

from mcp_functions import ToolError, serve, tool


@tool
def test_error_handling() -> str:
    """Fail, always."""
    message = "This tool intentionally returns an error for testing"
    raise ToolError(message)


handler = serve(test_error_handling)
