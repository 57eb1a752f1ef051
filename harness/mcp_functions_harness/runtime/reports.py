"""Lambda's log lines about an invocation, and the error objects that its Invoke API returns.

    REPORT RequestId: 7f…  Duration: 12.34 ms  Billed Duration: 13 ms  Memory Size: 512 MB  (with tabs between)
    {"errorType": "Runtime.ExitError", "errorMessage": "RequestId: 7f… Error: Runtime exited …"}

An error that the function reports itself has its own object, which passes unchanged.
"""

import json
import math
import signal

from mcp_functions_harness.lambdas.service import Outcome
from mcp_functions_harness.runtime import api

# Lambda's names of the errors that the platform notices; every other error is the function's own.
EXITED = "Runtime.ExitError"
OUT_OF_MEMORY = "Runtime.OutOfMemory"
TIMED_OUT = "Sandbox.Timedout"
TOO_LARGE = "Function.ResponseSizeTooLarge"
PLATFORM = frozenset({EXITED, OUT_OF_MEMORY, TIMED_OUT, TOO_LARGE})
LAMBDA_PREFIXES = frozenset({"Function", "Runtime", "Sandbox"})  # what the names of the platform's errors begin with


class FailedError(Exception):
    """An init or an invocation failed."""

    def __init__(self, error: str, payload: bytes) -> None:
        """Take the error's type, as in `PLATFORM` or the class of an exception, and the error object as JSON."""
        super().__init__(error)
        self.error = error
        self.payload = payload


def report(outcome: Outcome, memory_limit: int) -> str:
    """Return the REPORT line of an invocation; the memory limit is in MB."""
    error = outcome.error or ""
    init = outcome.init_milliseconds
    parts = [
        f"REPORT RequestId: {outcome.request_id}",
        f"Duration: {outcome.milliseconds:.2f} ms",
        f"Billed Duration: {math.ceil(outcome.milliseconds + (init or 0))} ms",
        f"Memory Size: {memory_limit} MB",
    ]
    if outcome.memory_mb is not None:
        parts.append(f"Max Memory Used: {outcome.memory_mb} MB")
    if init is not None:
        parts.append(f"Init Duration: {init:.2f} ms")
    if error.partition(".")[0] in LAMBDA_PREFIXES:  # Lambda writes no exception of the function into this line
        parts += _status(error)
    return "\t".join(parts)


def init_failed(milliseconds: float, error: str, phase: str) -> str:
    """Return the line of a failed init; the phase is "init", or "invoke" where the init ran again."""
    return "\t".join([f"INIT_REPORT Init Duration: {milliseconds:.2f} ms", f"Phase: {phase}", *_status(error)])


def failure(event: api.ProcessEvent | None, request_id: str, timeout: int, *, too_much_memory: bool) -> FailedError:
    """Return the error for the last event of a process, if that event is no `Response` in time.

    Args:
        event: the last event; None if there was none in time.
        request_id: Lambda's id of the invocation; "" before an invocation.
        timeout: seconds that an invocation may take.
        too_much_memory: whether the process was over its limit.
    """
    if too_much_memory:
        return _platform_error(OUT_OF_MEMORY, _reason(-signal.SIGKILL), request_id)
    match event:
        case api.FunctionError(payload):
            return FailedError(_error_type(payload), payload)
        case api.Exit(status):
            return _platform_error(EXITED, _reason(status), request_id)
        case api.ResponseTooLarge():
            message = f"Response payload size exceeded maximum allowed payload size ({api.MAX_RESPONSE} bytes)."
            return FailedError(TOO_LARGE, _error_object(TOO_LARGE, message))
    return _platform_error(TIMED_OUT, f"Task timed out after {timeout:.2f} seconds", request_id)


def _status(error: str) -> tuple[str, ...]:
    if error == TIMED_OUT:
        return ("Status: timeout",)
    return ("Status: error", f"Error Type: {error}")


def _reason(status: int) -> str:
    """Say how a process ended; a negative status is the number of the signal that killed it."""
    if status == 0:
        return "Runtime exited without providing a reason"
    if status > 0:
        return f"Runtime exited with error: exit status {status}"
    name = signal.strsignal(-status) or str(-status)
    return f"Runtime exited with error: signal: {name.lower()}"


def _platform_error(error: str, message: str, request_id: str) -> FailedError:
    return FailedError(error, _error_object(error, f"RequestId: {request_id} Error: {message}"))


def _error_object(error: str, message: str) -> bytes:
    return json.dumps({"errorType": error, "errorMessage": message}).encode()


def _error_type(payload: bytes) -> str:
    try:
        return str(json.loads(payload)["errorType"])
    except (ValueError, KeyError, TypeError):
        return "Runtime.Unknown"
