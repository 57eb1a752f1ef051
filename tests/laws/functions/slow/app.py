"""A tool that works in steps; each step is recorded and runs once."""

from mcp_functions import Step, serve, tool
from tests.laws.clock import Clock, TimedByClock

CLOCK = Clock()


def work(part: int, seconds: float) -> int:
    return CLOCK.work(part, seconds)


@tool
def slow(parts: int, seconds: float, *, step: Step) -> int:
    """Work for a while."""
    return sum(step(f"part-{part}", work, part, seconds) for part in range(parts))


@tool(max_sheds=9)
def slower(parts: int, seconds: float, *, step: Step) -> int:
    """Work for a long while."""
    return sum(step(f"part-{part}", work, part, seconds) for part in range(parts))


handler = TimedByClock(CLOCK, serve(slow, slower, now=CLOCK))
