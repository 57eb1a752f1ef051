"""A cold start as on Lambda: the function is loaded by the real runtime client, `awslambdaric`.

The client has imported json, logging and typing before it loads the function, so these cost the function nothing. The
sample ends when the response arrives: the process is killed, and the system says how much processor time it took.
"""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from mcp_functions_harness.environment import STACK
from tests.benchmarks.dialects import WrongAnswer
from tests.support.http_servers import listening

if TYPE_CHECKING:
    from collections.abc import Mapping

REQUEST_ID = "8f5a1c1e-6d0c-4b6b-9a64-0d6c7b1f3a52"
ARN = "arn:aws:lambda:us-east-1:123456789012:function"
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
    posted: SimpleQueue[tuple[str, bytes]] = SimpleQueue()
    with listening(_runtime_api(json.dumps(event).encode(), function, posted)) as host:
        began = time.monotonic_ns()
        pid = _spawn([python, *COMMAND], {**environ, "AWS_LAMBDA_RUNTIME_API": host}, errors)
        try:
            path, body = posted.get(timeout=PATIENCE)
        except Empty:
            path, body = "", errors.read_bytes()
        wall = time.monotonic_ns() - began
        memory = _memory(pid)
        os.kill(pid, signal.SIGKILL)
        _pid, _status, usage = os.wait4(pid, 0)
    if not path.endswith("/response"):
        raise WrongAnswer(body.decode(errors="replace")[-600:])
    return json.loads(body), wall, int((usage.ru_utime + usage.ru_stime) * 1e9), memory


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


def _runtime_api(event: bytes, function: str, posted: SimpleQueue[tuple[str, bytes]]) -> type[BaseHTTPRequestHandler]:
    """Make a Lambda Runtime API (2018-06-01) that has one event; what the process posts goes into `posted`."""
    events = [event]

    class RuntimeApi(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle(self) -> None:
            # The process is killed in the middle of its second question.
            with suppress(ConnectionError):
                super().handle()

        def do_GET(self) -> None:
            if not events:
                time.sleep(1)  # the process has answered, and is being killed
                return
            headers = {
                "content-type": "application/json",
                "lambda-runtime-trace-id": TRACE_ID,
                "lambda-runtime-aws-request-id": REQUEST_ID,
                "lambda-runtime-deadline-ms": str(int(time.time() * 1000) + 28_000),
                "lambda-runtime-invoked-function-arn": f"{ARN}:{STACK}_{function}",
            }
            self._send(200, events.pop(), headers)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            posted.put((self.path, body))
            self._send(202, b"{}", {})

        def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    return RuntimeApi
