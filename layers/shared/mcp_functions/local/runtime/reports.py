"""Lambda's log lines around an invocation (START, END, REPORT), and failures as its Invoke API has them.

The function's own error object passes unchanged. A failure that the platform notices becomes
{"errorType": …, "errorMessage": "RequestId: … Error: …"}.
"""

from __future__ import annotations

import json
import math
import signal
from typing import TYPE_CHECKING

from mcp_functions.local.runtime import api

if TYPE_CHECKING:
    from mcp_functions.local.lambdas import Outcome

# The errors that the platform notices, by Lambda's names; every other error is the function's own.
EXITED = "Runtime.ExitError"
OUT_OF_MEMORY = "Runtime.OutOfMemory"
TIMED_OUT = "Sandbox.Timedout"
TOO_LARGE = "Function.ResponseSizeTooLarge"
PLATFORM = frozenset({EXITED, OUT_OF_MEMORY, TIMED_OUT, TOO_LARGE})
LAMBDA_PREFIXES = frozenset({"Function", "Runtime", "Sandbox"})  # the names of Lambda's own errors begin so


class FailedError(Exception):
    """An init or an invocation failed: the error's type, and the payload of the Invoke API."""

    def __init__(self, error: str, payload: bytes) -> None:
        """Take the error's type and the payload."""
        super().__init__(error)
        self.error = error
        self.payload = payload


def report(outcome: Outcome, size: int) -> str:
    """Return the REPORT line of an invocation, with Lambda's tabs; `size` is the memory limit in MB."""
    error = outcome.error or ""
    init = outcome.init_milliseconds
    parts = [
        f"REPORT RequestId: {outcome.request_id}",
        f"Duration: {outcome.milliseconds:.2f} ms",
        f"Billed Duration: {math.ceil(outcome.milliseconds + (init or 0))} ms",
        f"Memory Size: {size} MB",
    ]
    if outcome.memory_mb is not None:
        parts.append(f"Max Memory Used: {outcome.memory_mb} MB")
    if init is not None:
        parts.append(f"Init Duration: {init:.2f} ms")
    if error.partition(".")[0] in LAMBDA_PREFIXES:  # the function's own exceptions are not in this line
        parts += _status(error)
    return "\t".join(parts)


def init_failed(milliseconds: float, error: str, phase: str) -> str:
    """Return the line of a failed init, in phase "init" or "invoke"."""
    return "\t".join([f"INIT_REPORT Init Duration: {milliseconds:.2f} ms", f"Phase: {phase}", *_status(error)])


def failure(event: api.ProcessEvent | None, request_id: str, timeout: int, *, too_much_memory: bool) -> FailedError:
    """Make the failure that a process's last event means.

    Args:
        event: the process's last event; None if it timed out.
        request_id: Lambda's id of the invocation; "" before an invocation.
        timeout: seconds that an invocation may take.
        too_much_memory: whether the process was over its limit.
    """
    if too_much_memory:
        return _of_platform(OUT_OF_MEMORY, _reason(-signal.SIGKILL), request_id)
    match event:
        case api.FunctionError(payload):
            return FailedError(_type(payload), payload)
        case api.Exit(status):
            return _of_platform(EXITED, _reason(status), request_id)
        case api.ResponseTooLarge():
            message = f"Response payload size exceeded maximum allowed payload size ({api.MAX_RESPONSE} bytes)."
            return FailedError(TOO_LARGE, _object(TOO_LARGE, message))
    return _of_platform(TIMED_OUT, f"Task timed out after {timeout:.2f} seconds", request_id)


def _status(error: str) -> tuple[str, ...]:
    if error == TIMED_OUT:
        return ("Status: timeout",)
    return ("Status: error", f"Error Type: {error}")


def _reason(status: int) -> str:
    """Describe how a process ended."""
    if status == 0:
        return "Runtime exited without providing a reason"
    if status > 0:
        return f"Runtime exited with error: exit status {status}"
    name = signal.strsignal(-status) or str(-status)
    return f"Runtime exited with error: signal: {name.lower()}"


def _of_platform(error: str, message: str, request_id: str) -> FailedError:
    return FailedError(error, _object(error, f"RequestId: {request_id} Error: {message}"))


def _object(error: str, message: str) -> bytes:
    return json.dumps({"errorType": error, "errorMessage": message}).encode()


def _type(payload: bytes) -> str:
    try:
        return str(json.loads(payload)["errorType"])
    except (ValueError, KeyError, TypeError):
        return "Runtime.Unknown"
