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

# AWS Lambda Developer Guide, "Lambda execution environment lifecycle": "The Init phase is limited to 10 seconds"
INIT_SECONDS = 10.0


class ProcessGoneError(Exception):
    """The process ended before it took the event: no code ran, so another process may take it."""


@dataclass(eq=False)
class Sandbox:
    """Runs one invocation after another, until `end`. The first one starts its process."""

    configuration: Configuration  # says the timeout and the memory limit
    fingerprint: object  # identifies the files and the configuration that its process loads
    start: Callable[[], Process]  # starts a process
    log: Callable[[str], None]  # writes a line while there is no process
    on_start: Callable[[], None]  # called once, when its first process has started or failed
    _process: Process | None = field(default=None, init=False)  # the last process that was started
    _ready: Process | None = field(default=None, init=False)  # that process, once its init has succeeded
    _is_over: bool = field(default=False, init=False)  # whether `end` was called
    _start_lock: Lock = field(default_factory=Lock, init=False)  # no process starts while or after `end` runs
    _memory: int = field(default=0, init=False)  # MB, the most that the process had

    @property
    def alive(self) -> bool:
        """Whether it can take another event."""
        return not self._is_over and self._process is not None and self._process.alive

    def invoke(self, task: api.Task) -> Outcome:
        """Run one invocation.

        Raises:
            ProcessGoneError: the process ended before it took the event.
        """
        is_cold = self._ready is None
        init_milliseconds = self._run_init_phase() if is_cold else None
        began = time.monotonic()
        until = began + self.configuration.timeout
        error = None
        self._write(f"START RequestId: {task.request_id} Version: $LATEST")
        try:
            ready = self._ready
            if ready is None:  # the init phase failed
                ready = self._init(until, "invoke", task.request_id)
            payload = self._run(ready, task, until, is_cold=is_cold)
        except FailedError as failed:
            payload = failed.payload
            error = failed.error
        outcome = Outcome(
            payload=payload,
            request_id=task.request_id,
            milliseconds=(time.monotonic() - began) * 1000,
            error=error,
            pid=self._process.pid if self._process else None,
            init_milliseconds=init_milliseconds,
            memory_mb=min(self._memory, self.configuration.memory) or None,
        )
        self._write_end(outcome)
        return outcome

    def check_memory(self) -> None:
        """Kill the process if it has too much memory."""
        if self._process is None:
            return
        self._note_memory(process.resident(self._process.pid))
        if self._has_too_much_memory:
            self._process.kill()

    def end(self) -> None:
        """Kill the process and start no other; `join` waits for its end."""
        with self._start_lock:
            self._is_over = True
        if self._process:
            self._process.kill()

    def join(self) -> None:
        """Wait until the process has ended."""
        if self._process:
            self._process.join()

    def _run_init_phase(self) -> float | None:
        """Start the process before its first invocation; return the milliseconds of its init, None if it failed."""
        began = time.monotonic()
        try:
            self._init(began + INIT_SECONDS, "init", "")
        except FailedError:
            return None
        finally:
            self.on_start()
        return (time.monotonic() - began) * 1000

    def _init(self, until: float, phase: str, request_id: str) -> Process:
        """Start a process, and wait until it asks for its first event; return it.

        Args:
            until: a time of the monotonic clock.
            phase: "init", or "invoke" if the init is a part of an invocation.
            request_id: the id of that invocation.

        Raises:
            FailedError: the process did not ask for an event in time.
        """
        began = time.monotonic()
        with self._start_lock:
            if self._is_over:
                raise self._failure(api.Exit(-signal.SIGKILL), request_id)
            self._memory = 0
            self._process = started = self.start()
        event = started.next_event(until)
        if event == api.Ready():
            self._ready = started
            return started
        _kill_and_join(started)
        failed = self._failure(event, request_id)
        self._write(reports.init_failed((time.monotonic() - began) * 1000, failed.error, phase))
        raise failed

    def _run(self, running: Process, task: api.Task, until: float, *, is_cold: bool) -> bytes:
        """Give the process a task, and wait for the result until a time of the monotonic clock."""
        task.deadline_ms = int((time.time() + until - time.monotonic()) * 1000)
        running.api.give(task)
        event = running.next_event(until)
        while event == api.Ready():  # an old event: it asked for this task after its last invocation
            event = running.next_event(until)
        if isinstance(event, api.Exit) and not task.is_taken and not is_cold:
            raise ProcessGoneError
        self._note_memory(process.peak(running.pid))
        too_much_memory = self._has_too_much_memory
        if isinstance(event, api.Response) and not too_much_memory:
            return event.payload
        if isinstance(event, api.ResponseTooLarge):
            running.next_event(until)  # the runtime ends after this error, or asks for the next event
        elif too_much_memory or not isinstance(event, api.FunctionError):
            _kill_and_join(running)
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

    def _write_end(self, outcome: Outcome) -> None:
        """Write the lines after an invocation."""
        if outcome.error in reports.PLATFORM:
            self._write(str(json.loads(outcome.payload)["errorMessage"]))
        self._write(f"END RequestId: {outcome.request_id}")
        self._write(reports.report(outcome, self.configuration.memory))

    def _write(self, line: str) -> None:
        if self._process:
            self._process.write(line)
        else:
            self.log(line)


def _kill_and_join(running: Process) -> None:
    running.kill()
    running.join()
