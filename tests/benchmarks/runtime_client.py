"""A cold start as on Lambda: the function is loaded by the real runtime client, `awslambdaric`.

The client has imported json and logging before it loads the function, so these cost the function nothing. The sample
ends when the response arrives: the process is killed, and the system says how much processor time it took.
"""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import TYPE_CHECKING, Any

from mcp_functions_harness.environment import STACK, arn
from mcp_functions_harness.runtime.api import FunctionError, Response, RuntimeApi, Task
from tests.benchmarks.dialects import WrongAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

REQUEST_ID = "8f5a1c1e-6d0c-4b6b-9a64-0d6c7b1f3a52"
TRACE_ID = "Root=1-6a63e840-0123456789abcdef01234567;Sampled=0"
PATIENCE = 20  # seconds
COMMAND = ("-m", "awslambdaric", "in_runtime.handler")


def run(
    python: str, environ: Mapping[str, str], function: str, event: Mapping[str, Any], errors: Path
) -> tuple[Any, int, int, int]:
    """Start a process of the runtime client, which answers one event.

    Args:
        python: the interpreter.
        environ: its variables; BENCH_CONTENDER names the contender.
        function: the function's name on Lambda, without the stack.
        event: the event.
        errors: the file for what the process prints.

    Returns:
        The response; from the start to the response, nanoseconds of wall time and of processor time; KB of memory.

    Raises:
        WrongAnswer: the function did not load, or raised.
    """
    api = RuntimeApi()
    try:
        deadline_ms = int(time.time() * 1000) + 28_000
        api.give(Task(REQUEST_ID, json.dumps(event).encode(), arn(f"{STACK}_{function}"), TRACE_ID, deadline_ms))
        began = time.monotonic_ns()
        pid = _spawn([python, *COMMAND], {**environ, "AWS_LAMBDA_RUNTIME_API": api.address}, errors)
        outcome = _wait(api, errors)
        wall = time.monotonic_ns() - began
        memory = _memory(pid)
        os.kill(pid, signal.SIGKILL)
        _pid, _status, usage = os.wait4(pid, 0)
    finally:
        api.stop()
    if not isinstance(outcome, Response):
        raise WrongAnswer(outcome.payload.decode(errors="replace")[-600:])
    return json.loads(outcome.payload), wall, int((usage.ru_utime + usage.ru_stime) * 1e9), memory


def _wait(api: RuntimeApi, errors: Path) -> Response | FunctionError:
    """Wait until the process has answered; without an answer, what it printed is the error."""
    with suppress(Empty):
        while True:
            event = api.events.get(timeout=PATIENCE)
            if isinstance(event, Response | FunctionError):
                return event
    return FunctionError(errors.read_bytes())


def _memory(pid: int) -> int:
    """Return how many KB of memory a process ever had; 0 if it has ended, or where there is no /proc."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return 0


def _spawn(command: list[str], environ: Mapping[str, str], errors: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    outputs = [(os.POSIX_SPAWN_OPEN, descriptor, str(errors), flags, 0o600) for descriptor in (1, 2)]
    return os.posix_spawn(command[0], command, environ, file_actions=outputs)
