"""A tool that logs, for clients that say at the start of their session how much they want to hear."""

from mcp_functions import Log, serve, tool


@tool
def test_tool_with_logging(*, log: Log) -> str:
    """Work, and log what is done."""
    log.info("Tool execution started")
    log.info("Tool processing data")
    log.info("Tool execution completed")
    return "Tool with logging executed successfully"


handler = serve(test_tool_with_logging)
