"""The lines that Lambda logs around an invocation: START, END, REPORT, and the reason of a failure."""

from __future__ import annotations

import math
from dataclasses import dataclass

# The platform's errors, by Lambda's names; every other error is the function's own.
EXITED, OUT_OF_MEMORY, TIMED_OUT = "Runtime.ExitError", "Runtime.OutOfMemory", "Sandbox.Timedout"
TOO_LARGE = "Function.ResponseSizeTooLarge"
PLATFORM = frozenset({EXITED, OUT_OF_MEMORY, TIMED_OUT, TOO_LARGE})
LAMBDA_PREFIXES = frozenset({"Function", "Runtime", "Sandbox"})  # of the names of Lambda's own errors


@dataclass(frozen=True)
class Report:
    """The figures of one invocation."""

    request_id: str  # Lambda's
    milliseconds: float  # duration of the function
    size: int  # memory limit in MB
    used: int | None = None  # peak of the environment's memory in MB; None if unknown
    init: float | None = None  # milliseconds until the process was ready, if this invocation waited for it
    error: str | None = None  # its type; None if the function returned

    @property
    def by_platform(self) -> bool:
        """Whether the platform ended it."""
        return self.error in PLATFORM

    def text(self) -> str:
        """Return the REPORT line, with Lambda's tabs."""
        parts = [
            f"REPORT RequestId: {self.request_id}",
            f"Duration: {self.milliseconds:.2f} ms",
            f"Billed Duration: {math.ceil(self.milliseconds + (self.init or 0))} ms",
            f"Memory Size: {self.size} MB",
            *(() if self.used is None else (f"Max Memory Used: {self.used} MB",)),
            *(() if self.init is None else (f"Init Duration: {self.init:.2f} ms",)),
            # Lambda does not write the function's own exceptions into this line
            *(_status(self.error) if self.error and self.error.partition(".")[0] in LAMBDA_PREFIXES else ()),
        ]
        return "\t".join(parts)


def started(request_id: str) -> str:
    """Return the line before the function's lines."""
    return f"START RequestId: {request_id} Version: $LATEST"


def ended(request_id: str) -> str:
    """Return the line after the function's lines."""
    return f"END RequestId: {request_id}"


def init_failed(milliseconds: float, error: str, phase: str) -> str:
    """Return the line of a failed init, in phase "init" or "invoke"."""
    return "\t".join([f"INIT_REPORT Init Duration: {milliseconds:.2f} ms", f"Phase: {phase}", *_status(error)])


def _status(error: str) -> tuple[str, ...]:
    return ("Status: timeout",) if error == TIMED_OUT else ("Status: error", f"Error Type: {error}")
