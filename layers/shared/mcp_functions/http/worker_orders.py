"""Orders to a worker: a Lambda function that continues a task, which is a call that goes on after its response.

    {"mcpTask": {"id": "report.7f3a…", "owner": null}}     the event of a worker

Only a role that may call Lambda's Invoke API can send this event. API Gateway writes no member of this name, so clients
cannot send it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import FunctionStopped, Misconfigured, is_ctrl_c, to_mcp_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.http.events import LambdaContext
    from mcp_functions.http.exchange import Endpoint
    from mcp_functions.http.request_log import RequestLog
    from mcp_functions.observability import Notes

KEY = "mcpTask"  # the member of the event that holds the order


class WorkFailed(Exception):
    """A worker could not continue its task. The exception has no text, because Lambda would log the text."""


def carry_out(
    order: Mapping[str, Any],
    context: LambdaContext,
    log: RequestLog,
    get_endpoint: Callable[[LambdaContext], Endpoint],
) -> None:
    """Continue a task. A worker has no response, so only the log line shows an error.

    Raises:
        WorkFailed: the task could not be continued. When the client asks for the result, another worker starts.
    """
    with log.taking_notes(context) as notes:
        notes.method = "work"
        notes.status = 200
        error = _error_of_task(order, context, notes, get_endpoint)
        if error:
            notes.add_error(error)
            notes.status = to_mcp_error(error).status
    if error:
        raise WorkFailed


def _error_of_task(
    order: Mapping[str, Any],
    context: LambdaContext,
    notes: Notes,
    get_endpoint: Callable[[LambdaContext], Endpoint],
) -> BaseException | None:
    """Continue a task, unless the operator stopped the function. Return the exception that ended the work."""
    try:
        endpoint = get_endpoint(context)
        if endpoint.is_stopped:
            # The task waits. A client asks for its result now and then, and that request invokes another worker.
            notes.conclude("refused", FunctionStopped.__name__)
            return None
        if endpoint.run_task is None:
            return Misconfigured(reason="an order to work, but no tool here has task=…")
        endpoint.run_task(order, context)
    except BaseException as error:  # also SystemExit: an author's `sys.exit` must not end the environment
        if is_ctrl_c(error):
            raise
        return error
    return None
