"""A tool that takes a given time: as a task, unless the time is zero."""

import time

from mcp_functions import Step, serve, tool

TICK = 0.5  # seconds, after each of which a cancellation is seen


@tool(task=lambda seconds, label: "allowed" if seconds else None)  # noqa: ARG005 - it gets all arguments
def slow_compute(seconds: int, label: str = "", *, step: Step) -> str:
    """Compute something for some seconds."""
    for tick in range(int(seconds / TICK)):
        step(f"tick-{tick}", time.sleep, TICK)
    return f"Computed {label} for {seconds} s."


handler = serve(slow_compute)
