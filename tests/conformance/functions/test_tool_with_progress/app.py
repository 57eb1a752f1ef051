"""A tool that says how far it is while it works."""

from mcp_functions import Progress, serve, tool


@tool
def test_tool_with_progress(*, progress: Progress) -> str:
    """Work, and report progress."""
    for percent in (0, 50, 100):
        progress(percent, total=100, message=f"Completed step {percent} of 100")
    return "Done."


handler = serve(test_tool_with_progress)
