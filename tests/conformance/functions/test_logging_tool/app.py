"""A tool that logs: a client that did not ask for log messages gets none."""

from mcp_functions import Log, serve, tool


@tool
def test_logging_tool(*, log: Log) -> str:
    """Work, and log what is done."""
    log.info("Tool execution started", logger="conformance")
    log.info("Tool processing data", logger="conformance")
    log.info("Tool execution completed", logger="conformance")
    return "Done."


handler = serve(test_logging_tool)
