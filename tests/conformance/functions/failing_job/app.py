"""A tool that must be a task, and fails after a second; the model hears why."""

import time

from mcp_functions import Step, ToolError, serve, tool


@tool(task="required")
def failing_job(*, step: Step) -> str:
    """Fail, after a while."""
    step("work", time.sleep, 1)
    message = "This job always fails"
    raise ToolError(message)


handler = serve(failing_job)
