"""One execution environment: a process of the real runtime, and one invocation at a time.

An init that fails, or takes longer than ten seconds, is run once more as a part of the invocation, as on Lambda: then
its failure is the invocation's.
"""

from __future__ import annotations

import json
import time
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from mcp_functions.local.runtime import api, failures, reports
from mcp_functions.local.runtime.failures import FailedError
from mcp_functions.local.runtime.life import Life

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.local.runtime.configuration import Configuration
    from mcp_functions.local.runtime.life import Start

INIT_SECONDS = 10.0  # "The Init phase is limited to 10 seconds"


class NotTakenError(Exception):
    """The process was gone before it took the event: nothing has run, and another may have it."""


class Ended(NamedTuple):
    """How an invocation ended: what the Invoke API returns, and its figures."""

    payload: bytes
    report: reports.Report
    pid: int | None


class Environment:
    """Runs one invocation after another, until `end`.

    Attributes:
        stamp: of the files that its process has loaded.
        idle_since: when its last invocation ended, by the monotonic clock.

    """

    def __init__(
        self,
        configuration: Configuration,
        stamp: object,
        start: Start,
        said: Callable[[str], None],
        begun: Callable[[], None],
    ) -> None:
        """Remember how to start: the process starts with the first invocation.

        Args:
            configuration: timeout and memory.
            stamp: of the files that its process will load.
            start: starts a process.
            said: takes the lines around an invocation when there is no process to stand among.
            begun: called once, when its first process has begun, or could not.

        """
        self.stamp, self.idle_since = stamp, 0.0
        self._configuration, self._start, self._said = configuration, start, said
        self._begun, self._lock, self._over, self._used = begun, Lock(), False, 0
        self._life: Life | None = None

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
        except FailedError as failed:
            payload, error = failed.payload, failed.error
        size, used = self._configuration.memory, min(self._used, self._configuration.memory)
        milliseconds = (time.monotonic() - began) * 1000
        report = reports.Report(task.request_id, milliseconds, size, used or None, init, error)
        return self._reported(Ended(payload, report, self._life.process.pid if self._life else None))

    def look(self) -> None:
        """Look at its memory, and kill it if that is too much."""
        life = self._life
        if life and self._has_too_much(life.process.memory()):
            life.process.kill()

    def end(self) -> None:
        """Kill it, now and for ever; `join` waits for that."""
        with self._lock:
            self._over, life = True, self._life
        if life:
            life.process.kill()

    def join(self) -> None:
        """Wait until it is gone."""
        if self._life:
            self._life.join()

    def _init_phase(self) -> float | None:
        began = time.monotonic()
        try:
            self._init(began + INIT_SECONDS, "init", "")
        except FailedError:
            self._life = None  # the invocation tries again
            return None
        finally:
            self._begun()
        return (time.monotonic() - began) * 1000

    def _init(self, until: float, phase: str, request_id: str) -> Life:
        began = time.monotonic()
        with self._lock:
            if self._over:
                raise failures.of(api.Exited(-9), request_id, self._configuration)
            life, self._used = Life(self._start), 0
            self._life = life
        told = life.hear(until)
        if told == api.Ready():
            return life
        life.end()
        failed = self._failure(told, request_id)
        self._say(reports.init_failed((time.monotonic() - began) * 1000, failed.error, phase))
        raise failed

    def _run(self, life: Life, task: api.Task, until: float, *, cold: bool) -> bytes:
        task.deadline_ms = int((time.time() + until - time.monotonic()) * 1000)
        life.api.hand(task)
        while (told := life.hear(until)) == api.Ready():
            pass  # it asked before this event was there: the end of the last invocation
        if isinstance(told, api.Exited) and not task.taken and not cold:
            raise NotTakenError
        too_much = self._has_too_much(life.process.peak())
        if isinstance(told, api.Responded) and not too_much:
            return told.payload
        if isinstance(told, api.TooMuch):
            life.hear(until)  # the runtime dies of the refusal, or asks for the next event
        elif too_much or not isinstance(told, api.Raised):
            life.end()
        raise self._failure(told, task.request_id)

    def _failure(self, told: api.Told | None, request_id: str) -> FailedError:
        too_much = self._has_too_much(0)
        return failures.of(told, request_id, self._configuration, too_much_memory=too_much)

    def _has_too_much(self, now: int | None) -> bool:
        self._used = max(self._used, now or 0)
        return self._used > self._configuration.memory

    def _reported(self, ended: Ended) -> Ended:
        if ended.report.by_platform:
            self._say(str(json.loads(ended.payload)["errorMessage"]))
        self._say(reports.ended(ended.report.request_id))
        self._say(ended.report.text())
        return ended

    def _say(self, line: str) -> None:
        if self._life:
            self._life.process.write(line)
        else:
            self._said(line)
