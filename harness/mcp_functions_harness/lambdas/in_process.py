"""Calls functions in the harness's own process, each call in the thread of its HTTP request.

As with Lambda, the event and the result are JSON. If the function fails, the result is Lambda's error object:

    {"errorMessage": "…", "errorType": "KeyError", "requestId": "…", "stackTrace": ["…"]}
"""

import json
import sys
import time
import traceback
import uuid
from collections.abc import Mapping
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial

from mcp_functions.observability import listener, progress_listener
from mcp_functions.protocol.constants import WORKER_SUFFIX
from mcp_functions_harness.environment import arn, function_name
from mcp_functions_harness.lambdas import failures
from mcp_functions_harness.lambdas.functions import Function
from mcp_functions_harness.lambdas.own_variables import running_function
from mcp_functions_harness.lambdas.repeated_writes import heard
from mcp_functions_harness.lambdas.service import MAX_PAYLOAD, Outcome, Watcher

# Seconds that Lambda's context counts down, as in the template. A function that takes longer is not stopped here.
TIMEOUT, WORKER_TIMEOUT = 29.0, 900.0


class Context:
    """The context object that Lambda passes to a function."""

    def __init__(self, name: str, seconds: float) -> None:
        """Start the time of one invocation of the function with this name in AWS."""
        self.function_name = name
        self.function_version = "$LATEST"
        self.invoked_function_arn = arn(name)
        self.memory_limit_in_mb = "512"  # AWS passes a text
        self.aws_request_id = str(uuid.uuid4())
        self.log_group_name = f"/aws/lambda/{name}"
        self.log_stream_name = f"{time.strftime('%Y/%m/%d', time.gmtime())}/[$LATEST]{uuid.uuid4().hex}"
        self.client_context = None
        self.identity = None
        self.tenant_id = None
        self._deadline = time.monotonic() + seconds

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds that the function may still run."""
        return max(0, int((self._deadline - time.monotonic()) * 1000))


class MarshalError(Exception):
    """The result is not JSON."""


class ResponseSizeTooLarge(Exception):
    """The result is longer than Lambda's limit."""


ERROR_TYPES = {  # Lambda's names; for any other exception it reports the name of its class
    MarshalError: "Runtime.MarshalError",
    ResponseSizeTooLarge: "Function.ResponseSizeTooLarge",
    SystemExit: "Runtime.ExitError",
}


@dataclass(frozen=True)
class InProcess:
    """Calls loaded functions."""

    functions: Mapping[str, Function]  # by folder; it may change later
    debug: bool = field(default=False, kw_only=True)  # whether tracebacks have the toolkit's frames
    watcher: Watcher | None = field(default=None, kw_only=True)  # sees the progress of functions

    def run(self, folder: str, event: bytes) -> Outcome:
        """Call the function of a folder, or with WORKER_SUFFIX its worker; the event is JSON."""
        return copy_context().run(self._call, folder, event)  # what the call sets ends with it

    def _call(self, folder: str, event: bytes) -> Outcome:
        name = folder.removesuffix(WORKER_SUFFIX)
        context = Context(function_name(folder), TIMEOUT if name == folder else WORKER_TIMEOUT)
        running_function.set(name)  # chooses its environment variables
        heard().wrap_clients()
        shown: list[str] = []
        listener.set(lambda notes: shown.append(self._show_traceback(folder, notes.raised)))
        if self.watcher:
            progress_listener.set(partial(self.watcher.show_progress, folder))
        began = time.monotonic()
        error_type = None
        try:
            payload = _to_json(self.functions[name].handler(json.loads(event), context))
        except BaseException as error:  # noqa: BLE001 - a function may raise anything
            error_type = ERROR_TYPES.get(type(error), type(error).__name__)
            payload = _error_object(error, error_type, context.aws_request_id)
            shown.append(self._show_traceback(folder, error))
        milliseconds = (time.monotonic() - began) * 1000
        return Outcome(
            payload=payload,
            request_id=context.aws_request_id,
            milliseconds=milliseconds,
            error=error_type,
            traceback="".join(shown),
        )

    def _show_traceback(self, folder: str, error: BaseException | None) -> str:
        """Write the traceback of an exception for the author, and return it; "" if there is none.

        On Lambda neither the client nor the log gets it.
        """
        if error is None:
            return ""
        text = failures.whole_traceback(error, debug=self.debug)
        sys.stderr.write(f"{folder} raised\n{text}")
        return text


def _to_json(result: object) -> bytes:
    """Return a function's result as JSON, with Lambda's error texts if that fails."""
    try:
        payload = json.dumps(result, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise MarshalError(f"Unable to marshal response: {error}") from error
    if len(payload) > MAX_PAYLOAD:
        message = f"Response payload size exceeded maximum allowed payload size ({MAX_PAYLOAD} bytes)."
        raise ResponseSizeTooLarge(message)
    return payload


def _error_object(error: BaseException, error_type: str, request_id: str) -> bytes:
    frames = traceback.format_tb(error.__traceback__)[1:]  # without the frame of `_call`
    error_object = {"errorMessage": str(error), "errorType": error_type, "requestId": request_id, "stackTrace": frames}
    return json.dumps(error_object).encode()
