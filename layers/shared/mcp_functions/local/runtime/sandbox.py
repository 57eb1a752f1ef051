"""One execution environment: a process of the real runtime that runs one invocation at a time.

    initialize: start the process, which imports the function -> invoke -> invoke -> … -> end

An init that fails, or takes longer than ten seconds, runs again as a part of the first invocation, as on Lambda. If it
fails again, the invocation fails.
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
    """Runs one invocation after another, until `end`."""

    configuration: Configuration  # says the timeout and the memory limit
    fingerprint: object  # identifies the files and the configuration that its process loads
    start: Callable[[], Process]  # starts a process
    _process: Process | None = field(default=None, init=False)  # the last one that was started; None before the first
    _ready_process: Process | None = field(default=None, init=False)  # it is `_process`, once its init has succeeded
    _has_ended: bool = field(default=False, init=False)  # whether `end` was called
    _lock: Lock = field(default_factory=Lock, init=False)  # `end` comes from another thread: no process starts after it
    _peak_memory: int = field(default=0, init=False)  # MB; 0 if unknown

    @property
    def is_new(self) -> bool:
        """Whether `initialize` was not called yet."""
        return self._process is None

    @property
    def alive(self) -> bool:
        """Whether it can take another event."""
        return not self._has_ended and self._process is not None and self._process.alive

    def initialize(self) -> float | None:
        """Start the process before the first invocation; return the milliseconds of its init, None if it failed."""
        began = time.monotonic()
        try:
            self._ready_process = self._start_process(began + INIT_SECONDS, "init", request_id="")
        except FailedError:
            return None
        return (time.monotonic() - began) * 1000

    def invoke(self, task: api.Task, *, is_first: bool, init_milliseconds: float | None) -> Outcome:
        """Run one invocation.

        Args:
            task: the event.
            is_first: whether `initialize` was called for this invocation.
            init_milliseconds: what it returned; None for later invocations.

        Raises:
            ProcessGoneError: the process ended before it took the event; never at the first invocation.
        """
        began = time.monotonic()
        until = began + self.configuration.timeout
        error = None
        self._write(f"START RequestId: {task.request_id} Version: $LATEST")
        try:
            if self._ready_process is None:  # the init failed, so it runs again now
                self._ready_process = self._start_process(until, "invoke", task.request_id)
            # A process of an earlier invocation may have ended since then.
            payload = self._run(self._ready_process, task, until, may_be_gone=not is_first)
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
            memory_mb=self._reported_memory(),
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
        with self._lock:
            self._has_ended = True
        if self._process:
            self._process.kill()

    def join(self) -> None:
        """Wait until the process has ended."""
        if self._process:
            self._process.join()

    def _start_process(self, until: float, phase: str, request_id: str) -> Process:
        """Start a process, and return it when its init has ended: then it asks for its first event.

        Args:
            until: a time of the monotonic clock.
            phase: "init", or "invoke" if the init is a part of an invocation.
            request_id: the id of that invocation.

        Raises:
            FailedError: the process did not ask for an event in time, or `end` was called.
        """
        began = time.monotonic()
        with self._lock:
            if self._has_ended:
                raise self._failure(api.Exit(-signal.SIGKILL), request_id)
            self._peak_memory = 0
            self._process = started = self.start()
        event = started.next_event(until)
        if event == api.Ready():
            return started
        _kill_and_join(started)
        failed = self._failure(event, request_id)
        self._write(reports.init_failed((time.monotonic() - began) * 1000, failed.error, phase))
        raise failed

    def _run(self, running: Process, task: api.Task, until: float, *, may_be_gone: bool) -> bytes:
        """Give a process a task, and wait for the result until a time of the monotonic clock.

        Raises:
            FailedError: the invocation failed.
            ProcessGoneError: the process ended before it took the task, and `may_be_gone`.
        """
        task.deadline_ms = int((time.time() + until - time.monotonic()) * 1000)
        running.api.give(task)
        event = running.next_event(until)
        while event == api.Ready():  # an old event: it asked for this task after its last invocation
            event = running.next_event(until)
        if isinstance(event, api.Exit) and not task.is_taken and may_be_gone:
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
        return self._peak_memory > self.configuration.memory

    def _note_memory(self, megabytes: int | None) -> None:
        """Keep the peak of the process's memory; None is unknown."""
        self._peak_memory = max(self._peak_memory, megabytes or 0)

    def _reported_memory(self) -> int | None:
        """Return the peak as Lambda reports it: never more than the limit. None if unknown."""
        if self._peak_memory == 0:
            return None
        return min(self._peak_memory, self.configuration.memory)

    def _write_end(self, outcome: Outcome) -> None:
        """Write the lines after an invocation."""
        if outcome.error in reports.PLATFORM:
            self._write(str(json.loads(outcome.payload)["errorMessage"]))
        self._write(f"END RequestId: {outcome.request_id}")
        self._write(reports.report(outcome, self.configuration.memory))

    def _write(self, line: str) -> None:
        """Write a line of Lambda's among those of the process. Without a process there is no log."""
        if self._process:
            self._process.write(line)


def _kill_and_join(running: Process) -> None:
    running.kill()
    running.join()
