"""One execution environment: a process of the real runtime, the API that it asks, and one invocation at a time.

An init that fails, or takes longer than ten seconds, is run once more as a part of the invocation, as on Lambda: then
its failure is the invocation's.
"""

from __future__ import annotations

import json
import time
from queue import Empty
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from mcp_functions.local.runtime import api, reports
from mcp_functions.local.runtime.process import reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.local.runtime.process import Process
    from mcp_functions.local.runtime.template import Configuration

    Start = Callable[[str, Callable[[int], None]], Process]  # (address of the API, called with the exit status)

INIT_SECONDS = 10.0  # "The Init phase is limited to 10 seconds"
GONE_SECONDS = 5.0  # in which a killed process is gone, and its last words are read


class NotTakenError(Exception):
    """The process was gone before it took the event: nothing has run, and another may have it."""


class Ended(NamedTuple):
    """How an invocation ended: what the Invoke API returns, and its figures."""

    payload: bytes
    report: reports.Report
    pid: int


class _FailedError(Exception):
    def __init__(self, error: str, payload: bytes) -> None:
        super().__init__(error)
        self.error, self.payload = error, payload


class _Life:
    """A process, and the API that it alone asks."""

    def __init__(self, start: Start) -> None:
        self.api = api.RuntimeApi()
        try:
            self.process = start(self.api.address, self._ended)
        except BaseException:
            self.api.stop()
            raise

    def hear(self, until: float) -> api.Told | None:
        try:
            return self.api.told.get(timeout=max(0.0, until - time.monotonic()))
        except Empty:
            return None

    def end(self) -> None:
        self.process.kill()
        self.process.join(GONE_SECONDS)

    def _ended(self, status: int) -> None:
        self.api.told.put(api.Exited(status))
        self.api.stop()


class Environment:
    """Runs one invocation after another, until `end`.

    Attributes:
        stamp: of the files that its process has loaded.
        idle_since: when its last invocation ended, by the monotonic clock.

    """

    def __init__(self, configuration: Configuration, stamp: object, start: Start, said: Callable[[str], None]) -> None:
        """Remember how to start: the process starts with the first invocation.

        Args:
            configuration: timeout and memory.
            stamp: of the files that its process will load.
            start: starts a process.
            said: takes the lines around an invocation when there is no process to stand among.

        """
        self.stamp, self.idle_since = stamp, 0.0
        self._configuration, self._start, self._said = configuration, start, said
        self._lock, self._over, self._used = Lock(), False, 0
        self._life: _Life | None = None

    @property
    def alive(self) -> bool:
        """Whether it can take another event."""
        return not self._over and self._life is not None and self._life.process.alive

    def invoke(self, task: api.Task) -> Ended:
        """Run one invocation.

        Raises:
            NotTakenError: the process was gone before it took the event.

        """
        cold, init = self._life is None, None
        if cold:
            init = self._init_phase()
        began, error = time.monotonic(), None
        self._say(reports.started(task.request_id))
        try:
            until = began + self._configuration.timeout
            life = self._life or self._init(until, "invoke", task.request_id)
            payload = self._run(life, task, until, cold=cold)
        except _FailedError as failed:
            payload, error = failed.payload, failed.error
        return self._ended(task.request_id, payload, (time.monotonic() - began) * 1000, init, error)

    def look(self) -> None:
        """Look at its memory, and kill it if that is too much."""
        if self._life and self._measured(self._life.process.memory()):
            self._life.process.kill()

    def end(self) -> None:
        """Kill it, now and for ever; `join` waits for that."""
        with self._lock:
            self._over = True
        if self._life:
            self._life.process.kill()

    def join(self) -> None:
        """Wait until it is gone."""
        if self._life:
            self._life.process.join(GONE_SECONDS)

    def _init_phase(self) -> float | None:
        began = time.monotonic()
        try:
            self._init(began + INIT_SECONDS, "init", "")
        except _FailedError:
            self._life = None  # the invocation tries again
            return None
        return (time.monotonic() - began) * 1000

    def _init(self, until: float, phase: str, request_id: str) -> _Life:
        began = time.monotonic()
        with self._lock:
            if self._over:
                raise _failed(reports.EXITED, reason(-9), request_id)
            life = self._life = _Life(self._start)
        try:
            told = life.hear(until)
            if told != api.Ready():
                raise self._failure(told, request_id)
        except _FailedError as failed:
            life.end()
            self._say(reports.init_failed((time.monotonic() - began) * 1000, failed.error, phase))
            raise
        return life

    def _run(self, life: _Life, task: api.Task, until: float, *, cold: bool) -> bytes:
        left = until - time.monotonic()
        task.deadline_ms = int((time.time() + left) * 1000)
        life.api.hand(task)
        while (told := life.hear(until)) == api.Ready():
            pass  # it asked before this event was there: the end of the last invocation
        if isinstance(told, api.Exited) and not task.taken and not cold:
            raise NotTakenError
        too_much = self._measured(life.process.peak())
        if isinstance(told, api.Responded) and not too_much:
            return told.payload
        failed = self._failure(told, task.request_id)
        if isinstance(told, api.TooMuch):
            life.hear(until)  # the runtime dies of the refusal, or asks for the next event
        elif too_much or not isinstance(told, api.Raised):
            life.end()
        raise failed

    def _failure(self, told: api.Told | None, request_id: str) -> _FailedError:
        if self._used > self._configuration.memory:
            return _failed(reports.OUT_OF_MEMORY, reason(-9), request_id)
        match told:
            case api.Raised(payload):
                return _FailedError(_type(payload), payload)
            case api.Exited(status):
                return _failed(reports.EXITED, reason(status), request_id)
            case api.TooMuch():
                message = f"Response payload size exceeded maximum allowed payload size ({api.MAX_RESPONSE} bytes)."
                return _FailedError(reports.TOO_LARGE, api.failure(reports.TOO_LARGE, message))
        seconds = f"{self._configuration.timeout:.2f}"
        return _failed(reports.TIMED_OUT, f"Task timed out after {seconds} seconds", request_id)

    def _measured(self, now: int | None) -> bool:
        self._used = max(self._used, now or 0)
        return self._used > self._configuration.memory

    def _ended(
        self, request_id: str, payload: bytes, milliseconds: float, init: float | None, error: str | None
    ) -> Ended:
        size = self._configuration.memory
        report = reports.Report(request_id, milliseconds, size, min(self._used, size) or None, init, error)
        if report.by_platform:
            self._say(str(json.loads(payload)["errorMessage"]))
        self._say(reports.ended(request_id))
        self._say(report.text())
        return Ended(payload, report, self._life.process.pid if self._life else 0)

    def _say(self, line: str) -> None:
        if self._life:
            self._life.process.write(line)
        else:
            self._said(line)


def _failed(error: str, message: str, request_id: str) -> _FailedError:
    return _FailedError(error, api.failure(error, f"RequestId: {request_id} Error: {message}"))


def _type(payload: bytes) -> str:
    try:
        return str(json.loads(payload)["errorType"])
    except (ValueError, KeyError, TypeError):
        return "Runtime.Unknown"
