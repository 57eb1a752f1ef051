"""Runs functions in the harness's own process, each call in the thread of its request: fast, and easy to debug.

An event comes in as JSON, and the result goes out as JSON, or as Lambda's error object if the function failed.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
import uuid
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from mcp_functions.local import failures
from mcp_functions.local.environment import arn, function_name
from mcp_functions.local.lambdas.own_variables import running_function
from mcp_functions.local.lambdas.service import MAX_PAYLOAD, Outcome
from mcp_functions.observability import listener, progress_listener
from mcp_functions.protocol.constants import WORKER_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.local.lambdas.functions import Function
    from mcp_functions.local.lambdas.service import Watcher

TIMEOUT = 29.0  # seconds, as in the template. In this process no function is stopped when it takes longer.
WORKER_TIMEOUT = 900.0  # seconds for a worker: the second Lambda of a function, which continues its MCP tasks


@dataclass(frozen=True)
class Context:
    """Lambda's context, attribute by attribute."""

    function_name: str
    aws_request_id: str
    invoked_function_arn: str
    log_group_name: str
    log_stream_name: str
    function_version: str = "$LATEST"
    memory_limit_in_mb: str = "512"  # AWS passes a text
    client_context: None = None
    identity: None = None
    tenant_id: None = None
    deadline: float = field(default=0.0, repr=False)  # a time of the monotonic clock

    def get_remaining_time_in_millis(self) -> int:
        """Return how long the function may still run."""
        return max(0, int((self.deadline - time.monotonic()) * 1000))


class MarshalError(Exception):
    """The result is not JSON."""


class ResponseSizeTooLarge(Exception):
    """The result is longer than Lambda's limit."""


LAMBDA_NAMES = {  # what Lambda reports for these exceptions, instead of the name of their class
    MarshalError: "Runtime.MarshalError",
    ResponseSizeTooLarge: "Function.ResponseSizeTooLarge",
    SystemExit: "Runtime.ExitError",
}


@dataclass(frozen=True)
class InProcess:
    """Calls loaded functions.

    Attributes:
        functions: the functions by folder; the mapping may change later.
        debug: whether tracebacks include the toolkit's own frames.
        watcher: sees the progress that functions report.
    """

    functions: Mapping[str, Function]
    debug: bool = field(default=False, kw_only=True)
    watcher: Watcher | None = field(default=None, kw_only=True)

    def run(self, folder: str, event: bytes) -> Outcome:
        """Call the function of a folder with an event as JSON."""
        return copy_context().run(self._call, folder, event)

    def _call(self, folder: str, event: bytes) -> Outcome:
        """Call the function in a context of its own, so that no variable of the context outlives the call."""
        name = folder.removesuffix(WORKER_SUFFIX)
        context = _context(function_name(folder), TIMEOUT if folder == name else WORKER_TIMEOUT)
        running_function.set(name)  # chooses the environment variables that the function sees
        listener.set(lambda notes: self._show(folder, notes.raised))  # the toolkit tells it what a handler raised
        if self.watcher:
            progress_listener.set(partial(self.watcher.show_progress, folder))  # and this one, how far a call is
        began = time.monotonic()
        error = None
        try:
            payload = _to_json(self.functions[name].handler(json.loads(event), context))
        except BaseException as raised:  # noqa: BLE001 - Lambda survives every exception of a function
            error = LAMBDA_NAMES.get(type(raised), type(raised).__name__)
            payload = _error_object(raised, error, context.aws_request_id)
            self._show(folder, raised)
        milliseconds = (time.monotonic() - began) * 1000
        return Outcome(payload=payload, request_id=context.aws_request_id, milliseconds=milliseconds, error=error)

    def _show(self, folder: str, error: BaseException | None) -> None:
        """Write the whole traceback for the author. On Lambda neither the client nor the log gets its text."""
        if error is None:
            return
        sys.stderr.write(f"{folder} raised\n{failures.whole_traceback(error, debug=self.debug)}")


def _to_json(result: object) -> bytes:
    try:
        payload = json.dumps(result, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        message = f"Unable to marshal response: {error}"
        raise MarshalError(message) from error
    if len(payload) > MAX_PAYLOAD:
        message = f"Response payload size exceeded maximum allowed payload size ({MAX_PAYLOAD} bytes)."
        raise ResponseSizeTooLarge(message)
    return payload


def _error_object(error: BaseException, name: str, request_id: str) -> bytes:
    frames = traceback.format_tb(error.__traceback__)[1:]  # without the harness's own frame
    error_object = {"errorMessage": str(error), "errorType": name, "requestId": request_id, "stackTrace": frames}
    return json.dumps(error_object).encode()


def _context(name: str, timeout: float) -> Context:
    """Make the context of one invocation of a function, by its name in AWS and its timeout in seconds."""
    return Context(
        function_name=name,
        aws_request_id=str(uuid.uuid4()),
        invoked_function_arn=arn(name),
        log_group_name=f"/aws/lambda/{name}",
        log_stream_name=f"{time.strftime('%Y/%m/%d', time.gmtime())}/[$LATEST]{uuid.uuid4().hex}",
        deadline=time.monotonic() + timeout,
    )
