"""Runs the tool of a task for one round. Whatever the tool raises becomes the outcome of the task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions import observability
from mcp_functions.handlers.runner import crash_result, run_round
from mcp_functions.protocol.errors import Crash, InternalError, McpError, TemporarilyUnavailable, is_ctrl_c
from mcp_functions.protocol.results import tool_error
from mcp_functions.rounds.input_requests import missing_capabilities
from mcp_functions.store import ItemTooLarge

if TYPE_CHECKING:
    from mcp_functions.handlers.tools import Tool
    from mcp_functions.rounds.round import Round
    from mcp_functions.tasks.task import Task, TaskOutcome


def run_tool(task: Task, tool: Tool[..., Any], round_: Round) -> TaskOutcome | None:
    """Run the tool's function, and return the outcome of the task; None if the task continues."""
    try:
        result = run_round(tool, {"name": task.tool, "arguments": task.arguments, "_meta": {}}, round_)
        if result is not None:
            return {"result": result}
        missing = missing_capabilities(round_.requests.values(), task.declared)
        if not missing:
            return None
        from mcp_functions.rounds import unfinished

        return {"result": tool_error(unfinished.explain(tool, round_.requests, missing, {}))}
    except BaseException as error:  # an author's `sys.exit()` too must end the task
        if not ends_task(error):
            raise
        return error_outcome(tool, error)


def ends_task(error: BaseException) -> bool:
    """Return whether an exception ends the task. Otherwise the next poll invokes a worker that repeats the round.

    The exceptions: the table does not answer, or a developer has pressed Ctrl-C.
    """
    return not isinstance(error, TemporarilyUnavailable) and not is_ctrl_c(error)


def error_outcome(tool: Tool[..., Any], error: BaseException) -> TaskOutcome:
    """Return the outcome of a task that an exception ends: the same result or error as for a call."""
    if isinstance(error, ItemTooLarge):
        return too_large_outcome(error, None)
    if isinstance(error, Crash):
        return {"result": crash_result(tool, error)}
    if isinstance(error, McpError):
        observability.current().add_error(error)
        return {"error": error.to_json()}
    observability.current().add_crash(error)
    return {"error": InternalError().to_json()}


def too_large_outcome(error: ItemTooLarge, outcome: TaskOutcome | None) -> TaskOutcome:
    """Return the outcome of a task whose item cannot keep `outcome`, or the steps and questions of a round (None)."""
    observability.current().reason = error.reason  # the author reads the reason in the log
    if outcome is None:
        return {"result": tool_error("This call has more data than a task can keep. Answer more briefly.")}
    return {"error": InternalError(message="The result is larger than a task can keep (about 290 KB)").to_json()}
