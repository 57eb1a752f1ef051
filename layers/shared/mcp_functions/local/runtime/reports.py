"""What Lambda writes around an invocation, as the last lines of its log: START, END, REPORT, and why it failed."""

from __future__ import annotations

import math
from dataclasses import dataclass

# What ends an invocation from outside, by Lambda's names; any other error is the function's own.
EXITED, OUT_OF_MEMORY, TIMED_OUT = "Runtime.ExitError", "Runtime.OutOfMemory", "Sandbox.Timedout"
TOO_LARGE = "Function.ResponseSizeTooLarge"
PLATFORM = frozenset({EXITED, OUT_OF_MEMORY, TIMED_OUT, TOO_LARGE})
OURS = frozenset({"Function", "Runtime", "Sandbox"})  # how the names of Lambda's own errors begin


@dataclass(frozen=True)
class Report:
    """The figures of one invocation.

    Attributes:
        request_id: Lambda's.
        milliseconds: that the function took.
        size: MB that it may have.
        used: MB that its environment ever had; None if nobody can tell.
        init: milliseconds until the process was ready, if this invocation waited for that.
        error: its type, None if the function returned.

    """

    request_id: str
    milliseconds: float
    size: int
    used: int | None = None
    init: float | None = None
    error: str | None = None

    @property
    def by_platform(self) -> bool:
        """Whether it was ended from outside."""
        return self.error in PLATFORM

    def text(self) -> str:
        """Write the REPORT line, with Lambda's tabs."""
        parts = [
            f"REPORT RequestId: {self.request_id}",
            f"Duration: {self.milliseconds:.2f} ms",
            f"Billed Duration: {math.ceil(self.milliseconds + (self.init or 0))} ms",
            f"Memory Size: {self.size} MB",
            *(() if self.used is None else (f"Max Memory Used: {self.used} MB",)),
            *(() if self.init is None else (f"Init Duration: {self.init:.2f} ms",)),
            # an exception of the function is its runtime's business, and no error of this line
            *(_status(self.error) if self.error and self.error.partition(".")[0] in OURS else ()),
        ]
        return "\t".join(parts)


def started(request_id: str) -> str:
    """Write the line before a function's own."""
    return f"START RequestId: {request_id} Version: $LATEST"


def ended(request_id: str) -> str:
    """Write the line after a function's own."""
    return f"END RequestId: {request_id}"


def init_failed(milliseconds: float, error: str, phase: str) -> str:
    """Write what became of an init that failed: in its own phase, or in that of the first invocation."""
    return "\t".join([f"INIT_REPORT Init Duration: {milliseconds:.2f} ms", f"Phase: {phase}", *_status(error)])


def _status(error: str) -> tuple[str, ...]:
    return ("Status: timeout",) if error == TIMED_OUT else ("Status: error", f"Error Type: {error}")
