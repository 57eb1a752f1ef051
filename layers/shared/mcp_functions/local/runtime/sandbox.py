"""One execution environment: a process of the real runtime that runs one invocation at a time.

    start the process -> init: it imports the function -> invocation -> invocation -> … -> end

An init that fails, or takes longer than ten seconds, runs again as a part of the invocation, as on Lambda. If it fails
again, the invocation fails.
"""

from __future__ import annotations

import json
import signal
import time
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from mcp_functions.local.lambdas import Outcome
from mcp_functions.local.runtime import api, process, reports
from mcp_functions.local.runtime.reports import FailedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.local.runtime.configuration import Configuration
    from mcp_functions.local.runtime.process import Process

INIT_SECONDS = 10.0  # "The Init phase is limited to 10 seconds"


class ProcessGoneError(Exception):
    """The process ended before it took the event: no code ran, so another process may take it."""


@dataclass(eq=False)
class Sandbox:
    """Runs one invocation after another, until `end`. The first one starts its process."""

    configuration: Configuration  # says the timeout and the memory limit
    fingerprint: object  # identifies the files and the configuration that its process loads
    start: Callable[[], Process]  # starts a process
    log: Callable[[str], None]  # writes the lines around an invocation while there is no process
    on_start: Callable[[], None]  # called once, when its first process has started or failed
    _lock: Lock = field(default_factory=Lock, init=False)  # guards _over and _running
    _over: bool = field(default=False, init=False)  # whether `end` was called
    _memory: int = field(default=0, init=False)  # MB, the most that its process had
    _running: Process | None = field(default=None, init=False)

    @property
    def alive(self) -> bool:
        """Whether it can take another event."""
        return not self._over and self._running is not None and self._running.alive

    def invoke(self, task: api.Task) -> Outcome:
        """Run one invocation.

        Raises:
            ProcessGoneError: the process ended before it took the event.
        """
        init = None  # milliseconds of the init phase; None without one
        is_cold = self._running is None
        if is_cold:
            init = self._init_phase()
        error = None  # the type of the error; None if the function returned
        began = time.monotonic()
        self._write(f"START RequestId: {task.request_id} Version: $LATEST")
        try:
            until = began + self.configuration.timeout
            running = self._running
            if running is None:  # the init phase failed
                running = self._init(until, "invoke", task.request_id)
            payload = self._run(running, task, until, is_cold=is_cold)
        except FailedError as failed:
            payload = failed.payload
            error = failed.error
        outcome = Outcome(
            payload=payload,
            request_id=task.request_id,
            milliseconds=(time.monotonic() - began) * 1000,
            error=error,
            pid=self._running.pid if self._running else None,
            init_milliseconds=init,
            memory_mb=min(self._memory, self.configuration.memory) or None,
        )
        if error in reports.PLATFORM:
            self._write(str(json.loads(payload)["errorMessage"]))
        self._write(f"END RequestId: {task.request_id}")
        self._write(reports.report(outcome, self.configuration.memory))
        return outcome

    def prepare(self) -> None:
        """Start its process, if it has none."""
        if self._running is None:
            self._init_phase()

    def check_memory(self) -> None:
        """Kill the process if it has too much memory."""
        running = self._running
        if running is None:
            return
        self._note_memory(process.resident(running.pid))
        if self._has_too_much_memory:
            running.kill()

    def end(self) -> None:
        """Kill the process and start no other; `join` waits for its end."""
        with self._lock:
            self._over = True
            running = self._running
        if running:
            running.kill()

    def join(self) -> None:
        """Wait until the process has ended."""
        if self._running:
            self._running.join()

    def _init_phase(self) -> float | None:
        """Start the process; return the milliseconds of its init, None if it failed."""
        began = time.monotonic()
        try:
            self._init(began + INIT_SECONDS, "init", "")
        except FailedError:
            self._running = None  # the invocation tries again
            return None
        finally:
            self.on_start()
        return (time.monotonic() - began) * 1000

    def _init(self, until: float, phase: str, request_id: str) -> Process:
        began = time.monotonic()
        with self._lock:
            if self._over:
                raise self._failure(api.Exit(-signal.SIGKILL), request_id)
            self._memory = 0
            self._running = running = self.start()
        event = running.next_event(until)
        if event == api.Ready():
            return running
        _end(running)
        failed = self._failure(event, request_id)
        self._write(reports.init_failed((time.monotonic() - began) * 1000, failed.error, phase))
        raise failed

    def _run(self, running: Process, task: api.Task, until: float, *, is_cold: bool) -> bytes:
        """Give the process a task, and wait for the result until a time of the monotonic clock."""
        task.deadline_ms = int((time.time() + until - time.monotonic()) * 1000)
        running.api.hand(task)
        event = running.next_event(until)
        while event == api.Ready():  # an old event: it asked for this task after its last invocation
            event = running.next_event(until)
        if isinstance(event, api.Exit) and not task.taken and not is_cold:
            raise ProcessGoneError
        self._note_memory(process.peak(running.pid))
        too_much = self._has_too_much_memory
        if isinstance(event, api.Response) and not too_much:
            return event.payload
        if isinstance(event, api.ResponseTooLarge):
            running.next_event(until)  # the runtime ends after this error, or asks for the next event
        elif too_much or not isinstance(event, api.FunctionError):
            _end(running)
        raise self._failure(event, task.request_id)

    def _failure(self, event: api.ProcessEvent | None, request_id: str) -> FailedError:
        timeout = self.configuration.timeout
        return reports.failure(event, request_id, timeout, too_much_memory=self._has_too_much_memory)

    @property
    def _has_too_much_memory(self) -> bool:
        return self._memory > self.configuration.memory

    def _note_memory(self, megabytes: int | None) -> None:
        """Keep the peak of the process's memory; None is unknown."""
        self._memory = max(self._memory, megabytes or 0)

    def _write(self, line: str) -> None:
        if self._running:
            self._running.write(line)
        else:
            self.log(line)


def _end(running: Process) -> None:
    """Kill a process, and wait until it has ended."""
    running.kill()
    running.join()
