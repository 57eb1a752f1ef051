"""One execution environment: a process of the real runtime that runs one invocation at a time.

    initialize: start the process, which imports the function -> invoke -> invoke -> … -> end

An init that fails, or takes longer than ten seconds, runs again as a part of the first invocation, as on Lambda. If the
init fails again, the invocation fails.

Every `deadline` is a time of the monotonic clock, in seconds.
"""

import json
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from mcp_functions_harness.lambdas.service import Outcome
from mcp_functions_harness.runtime import api, reports
from mcp_functions_harness.runtime.configuration import Configuration
from mcp_functions_harness.runtime.process import Process
from mcp_functions_harness.runtime.reports import FailedError

INIT_SECONDS = 10.0  # "The Init phase is limited to 10 seconds" (Lambda Developer Guide)


class ProcessGoneError(Exception):
    """The process ended before it took the event: no code ran, so another process may take it."""


@dataclass(eq=False)
class Sandbox:
    """Runs one invocation after another, until `end`."""

    configuration: Configuration
    fingerprint: object  # identifies the files and the configuration that the process loads
    start_process: Callable[[], Process]
    _process: Process | None = field(default=None, init=False)  # the one that was started last
    _init_milliseconds: float | None = field(default=None, init=False)  # until it is reported
    _is_used: bool = field(default=False, init=False)  # whether an invocation has begun
    # `end` comes from another thread. The lock keeps a process from being started after it.
    _lock: Lock = field(default_factory=Lock, init=False)
    _has_ended: bool = field(default=False, init=False)  # whether `end` was called

    @property
    def is_new(self) -> bool:
        """Whether `initialize` was not called yet."""
        return self._process is None

    @property
    def alive(self) -> bool:
        """Whether it can take another event."""
        return not self._has_ended and self._process is not None and self._process.alive

    def initialize(self) -> None:
        """Start the process before the first invocation, and run its init. A failed init runs again in `invoke`."""
        began = time.monotonic()
        try:
            self._start(began + INIT_SECONDS, "init", request_id="")
        except FailedError:
            return
        self._init_milliseconds = _milliseconds_since(began)

    def invoke(self, task: api.Task) -> Outcome:
        """Run one invocation, and write Lambda's log lines around it.

        Raises:
            ProcessGoneError: the process ended before it took the event; never at the first invocation.
        """
        began = time.monotonic()
        if not self._logs_json:
            self._write(f"START RequestId: {task.request_id} Version: $LATEST")
        elif self._logs_success:
            self._write(reports.json_start(task.request_id))
        error = None
        try:
            payload = self._run(task, began + self.configuration.timeout)
        except FailedError as failed:
            payload = failed.payload
            error = failed.error
        outcome = Outcome(
            payload=payload,
            request_id=task.request_id,
            milliseconds=_milliseconds_since(began),
            error=error,
            pid=self._process.pid if self._process else None,
            init_milliseconds=self._init_milliseconds,
            memory_mb=min(self._peak_memory, self.configuration.memory) or None,  # as Lambda does
        )
        self._init_milliseconds = None
        self._write_end(outcome)
        return outcome

    def check_memory(self) -> None:
        """Kill the process if it has too much memory."""
        if self._process and self._has_too_much_memory:
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

    def _start(self, deadline: float, phase: str, request_id: str) -> Process:
        """Start a process, and return it when its init has ended: then it asks for its first event.

        The phase is "init", or "invoke" if the init is a part of the invocation with this id.
        """
        began = time.monotonic()
        with self._lock:
            if self._has_ended:
                raise self._failure(api.Exit(-signal.SIGKILL), request_id)
            process = self.start_process()
            self._process = process
        event = process.next_event(deadline)
        if event == api.Ready():
            process.is_ready = True
            return process
        _kill_and_join(process)
        failed = self._failure(event, request_id)
        failed_line = reports.json_init_failed if self._logs_json else reports.init_failed
        self._write(failed_line(_milliseconds_since(began), failed.error, phase))
        raise failed

    def _run(self, task: api.Task, deadline: float) -> bytes:
        """Give the process a task, and return the function's response."""
        is_first = not self._is_used
        self._is_used = True
        process = self._process
        if process is None or not process.is_ready:
            process = self._start(deadline, "invoke", task.request_id)
        task.deadline_ms = int((time.time() + deadline - time.monotonic()) * 1000)
        process.api.give(task)
        event = process.next_event(deadline)
        while event == api.Ready():  # sent when the last invocation ended
            event = process.next_event(deadline)
        # An idle process may have ended. At the first invocation it has just started, so its own code has ended it.
        if isinstance(event, api.Exit) and not task.is_taken and not is_first:
            raise ProcessGoneError
        if isinstance(event, api.Response) and not self._has_too_much_memory:
            return event.payload
        self._clean_up(process, event, deadline)
        raise self._failure(event, task.request_id)

    def _clean_up(self, process: Process, event: api.ProcessEvent | None, deadline: float) -> None:
        """After a failed invocation, kill the process, unless Lambda would use it again."""
        if isinstance(event, api.ResponseTooLarge):
            process.next_event(deadline)  # the client exits after this error, or asks for the next
        elif self._has_too_much_memory or not isinstance(event, api.FunctionError):
            _kill_and_join(process)

    def _failure(self, event: api.ProcessEvent | None, request_id: str) -> FailedError:
        timeout = self.configuration.timeout
        return reports.failure(event, request_id, timeout, too_much_memory=self._has_too_much_memory)

    @property
    def _logs_json(self) -> bool:
        return self.configuration.log_format == "JSON"

    @property
    def _logs_success(self) -> bool:
        """Whether Lambda's lines of a success are in a log of JSON.

        "Log-level filtering" of Lambda's guide: `platform.start` and a successful `platform.report` are INFO, and a
        `platform.report` with another status is WARN.
        """
        return self.configuration.system_log_level != "WARN"

    @property
    def _peak_memory(self) -> int:
        """The most memory that the process has had, in MB; 0 if unknown."""
        return self._process.peak_memory if self._process else 0

    @property
    def _has_too_much_memory(self) -> bool:
        return self._peak_memory > self.configuration.memory

    def _write_end(self, outcome: Outcome) -> None:
        if self._logs_json:
            if self._logs_success or outcome.error:
                self._write(reports.json_report(outcome, self.configuration.memory))
            return
        if outcome.error in reports.PLATFORM:
            self._write(str(json.loads(outcome.payload)["errorMessage"]))
        self._write(f"END RequestId: {outcome.request_id}")
        self._write(reports.report(outcome, self.configuration.memory))

    def _write(self, line: str) -> None:
        """Write a line of Lambda's among those of the process. Without a process there is no log."""
        if self._process:
            self._process.output.write_line(line)


def _kill_and_join(process: Process) -> None:
    process.kill()
    process.join()


def _milliseconds_since(began: float) -> float:
    return (time.monotonic() - began) * 1000
