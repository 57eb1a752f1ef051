"""Failures of an init or an invocation, as Lambda's Invoke API reports them.

The function's own error object passes unchanged. A failure that the platform notices becomes
{"errorType": …, "errorMessage": "RequestId: … Error: …"}.
"""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

from mcp_functions.local.runtime import api, reports

if TYPE_CHECKING:
    from mcp_functions.local.runtime.configuration import Configuration


class FailedError(Exception):
    """An init or an invocation failed: the error's type, and the payload of the Invoke API."""

    def __init__(self, error: str, payload: bytes) -> None:
        """Take the error's type and the payload."""
        super().__init__(error)
        self.error, self.payload = error, payload


def of(
    event: api.ProcessEvent | None, request_id: str, configuration: Configuration, *, too_much_memory: bool = False
) -> FailedError:
    """Make the failure of a process's last event; None: it timed out. `request_id` is "" before an invocation."""
    if too_much_memory:
        return _platform(reports.OUT_OF_MEMORY, reason(-signal.SIGKILL), request_id)
    match event:
        case api.FunctionError(payload):
            return FailedError(_type(payload), payload)
        case api.Exit(status):
            return _platform(reports.EXITED, reason(status), request_id)
        case api.ResponseTooLarge():
            message = f"Response payload size exceeded maximum allowed payload size ({api.MAX_RESPONSE} bytes)."
            return FailedError(reports.TOO_LARGE, _object(reports.TOO_LARGE, message))
    return _platform(reports.TIMED_OUT, f"Task timed out after {configuration.timeout:.2f} seconds", request_id)


def reason(status: int) -> str:
    """Describe how a process ended."""
    if status == 0:
        return "Runtime exited without providing a reason"
    if status > 0:
        return f"Runtime exited with error: exit status {status}"
    return f"Runtime exited with error: signal: {(signal.strsignal(-status) or str(-status)).lower()}"


def _platform(error: str, message: str, request_id: str) -> FailedError:
    return FailedError(error, _object(error, f"RequestId: {request_id} Error: {message}"))


def _object(error: str, message: str) -> bytes:
    return json.dumps({"errorType": error, "errorMessage": message}).encode()


def _type(payload: bytes) -> str:
    try:
        return str(json.loads(payload)["errorType"])
    except (ValueError, KeyError, TypeError):
        return "Runtime.Unknown"
