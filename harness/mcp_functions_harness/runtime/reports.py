"""Lambda's log lines about an invocation, and the error objects that its Invoke API returns.

    REPORT RequestId: 7f…  Duration: 12.34 ms  Billed Duration: 13 ms  Memory Size: 512 MB  (with tabs between)
    {"time": "2026-…", "type": "platform.report", "record": {"requestId": "7f…", …, "status": "success"}}
    {"errorType": "Runtime.ExitError", "errorMessage": "RequestId: 7f… Error: Runtime exited …"}

An error that the function reports itself has its own object, which passes unchanged.
"""

import json
import math
import signal
from collections.abc import Mapping
from datetime import UTC, datetime

from mcp_functions_harness.lambdas.service import Outcome
from mcp_functions_harness.runtime import api

# Lambda's names of the errors that the platform notices; every other error is the function's own.
EXITED = "Runtime.ExitError"
OUT_OF_MEMORY = "Runtime.OutOfMemory"
TIMED_OUT = "Sandbox.Timedout"
TOO_LARGE = "Function.ResponseSizeTooLarge"
PLATFORM = frozenset({EXITED, OUT_OF_MEMORY, TIMED_OUT, TOO_LARGE})
LAMBDA_PREFIXES = frozenset({"Function", "Runtime", "Sandbox"})  # what their names begin with


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
    if error.partition(".")[0] in LAMBDA_PREFIXES:  # Lambda writes no exception here
        parts += _status(error)
    return "\t".join(parts)


def json_start(request_id: str) -> str:
    """Return the first line of an invocation, with LogFormat JSON."""
    return _json_line("platform.start", {"requestId": request_id, "version": "$LATEST"})


def json_report(outcome: Outcome, memory_limit: int) -> str:
    """Return the last line of an invocation, with LogFormat JSON; of a failed one, it is all that tells how it ended.

    The members are those of PlatformReport in the schema of Lambda's Telemetry API.
    """
    init = outcome.init_milliseconds
    metrics = {
        "durationMs": round(outcome.milliseconds, 3),
        "billedDurationMs": math.ceil(outcome.milliseconds + (init or 0)),
        "memorySizeMB": memory_limit,
        "maxMemoryUsedMB": outcome.memory_mb,
        "initDurationMs": None if init is None else round(init, 3),
    }
    record = {
        "requestId": outcome.request_id,
        "metrics": {name: value for name, value in metrics.items() if value is not None},
        "status": _json_status(outcome.error),
    }
    return _json_line("platform.report", record if outcome.error is None else {**record, "errorType": outcome.error})


def json_init_failed(milliseconds: float, error: str, phase: str) -> str:
    """Return the line of a failed init, with LogFormat JSON."""
    record = {
        "initializationType": "on-demand",
        "phase": phase,
        "status": _json_status(error),
        "metrics": {"durationMs": round(milliseconds, 3)},
        "errorType": error,
    }
    return _json_line("platform.initReport", record)


def _json_line(event_type: str, record: Mapping[str, object]) -> str:
    time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({"time": time, "type": event_type, "record": record}, separators=(",", ":"))


def _json_status(error: str | None) -> str:
    if error is None:
        return "success"
    return "timeout" if error == TIMED_OUT else "error"


def init_failed(milliseconds: float, error: str, phase: str) -> str:
    """Return the line of a failed init; the phase is "init", or "invoke" where the init ran again."""
    return "\t".join([f"INIT_REPORT Init Duration: {milliseconds:.2f} ms", f"Phase: {phase}", *_status(error)])


def failure(event: api.ProcessEvent | None, request_id: str, timeout: int, *, too_much_memory: bool) -> FailedError:
    """Return the error for a process whose last event is no `Response`, or that sent none in time (None).

    `request_id` is Lambda's id of the invocation; "" before one. The timeout of invocations is in seconds.
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
