"""All execution environments of a stack: a request takes one, and returns it.

    idle: waits for a request -> busy: runs one -> idle again, or ending: killed, its end is awaited

An environment (`Sandbox`) is a process of one function, and runs one request at a time. A request without an idle
environment waits until one is idle, or until it may start a new one. So many short requests share a few processes, and
long requests get one each. An environment whose files have changed is not used again.
"""

from __future__ import annotations

import os
import time
import uuid
from dataclasses import dataclass, field
from threading import Condition, Event, Thread
from typing import TYPE_CHECKING, Self

from mcp_functions.local.environment import arn, function_name
from mcp_functions.local.lambdas import Throttled
from mcp_functions.local.runtime.api import Task
from mcp_functions.local.runtime.sandbox import ProcessGoneError

if TYPE_CHECKING:
    from mcp_functions.local.lambdas import Outcome
    from mcp_functions.local.runtime.launcher import Launcher
    from mcp_functions.local.runtime.sandbox import Sandbox

# How many processes one function may have. All functions together have no limit: functions/mcp, which forwards requests
# to the other functions, would hold the last process and wait for ever.
CONCURRENCY = 32
WAIT_SECONDS = 29.0  # longest wait for a free process; API Gateway gives up after 30
MIN_STARTS = 2  # processes that may start at once on the smallest machine, so that one that hangs does not block others
CHECK_SECONDS = 0.05  # pause between two checks of the processes' memory


@dataclass(eq=False)
class Fleet:
    """The environments of every function, while its block runs."""

    launcher: Launcher  # makes the environments
    reuse: bool  # whether an environment takes a second request
    # How many processes may start now. On Lambda each has its own processor, here all share a few.
    _starts: int = field(default_factory=lambda: max(MIN_STARTS, os.cpu_count() or 1), init=False)
    _lock: Condition = field(default_factory=Condition, init=False)  # guards the other fields, and wakes `_take`
    _stopped: Event = field(default_factory=Event, init=False)
    _idle: dict[str, list[Sandbox]] = field(default_factory=dict, init=False)  # by folder
    _busy: dict[Sandbox, str] = field(default_factory=dict, init=False)  # the folder of each
    _ending: list[Sandbox] = field(default_factory=list, init=False)  # killed; `_check` waits for their ends

    def __enter__(self) -> Self:
        """Check memory from now on."""
        self._checking = Thread(target=self._check, daemon=True)
        self._checking.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """End every process, and wait until all have ended."""
        self._stopped.set()
        with self._lock:
            sandboxes = [*self._busy, *self._ending]
            for idle in self._idle.values():
                sandboxes += idle
            self._idle.clear()
            self._lock.notify_all()
        for sandbox in sandboxes:
            sandbox.end()
        for sandbox in sandboxes:
            sandbox.join()
        self._checking.join()

    def run(self, folder: str, event: bytes) -> Outcome:
        """Run one request of a folder with an event as JSON.

        Raises:
            Throttled: the concurrency limit is reached, or no process was free in time.
        """
        now = time.time()
        trace = f"Root=1-{int(now):08x}-{uuid.uuid4().hex[:24]};Parent={uuid.uuid4().hex[:16]};Sampled=0"
        while True:
            task = Task(str(uuid.uuid4()), event, arn(function_name(folder)), trace)
            sandbox = self._take(folder)
            is_first = sandbox.is_new
            try:
                init_milliseconds = self._initialize(sandbox) if is_first else None
                return sandbox.invoke(task, is_first=is_first, init_milliseconds=init_milliseconds)
            except ProcessGoneError:
                continue  # the process was killed while it was idle; another takes the event
            finally:
                self._give_back(sandbox)

    def kill_only_process(self, folder: str) -> bool:
        """Kill the process that runs a request of a folder, if there is exactly one; return whether there was."""
        with self._lock:
            running = [sandbox for sandbox, busy_folder in self._busy.items() if busy_folder == folder]
        if len(running) != 1:
            return False
        running[0].end()
        return True

    def _take(self, folder: str) -> Sandbox:
        """Wait for an environment, and make it busy.

        Raises:
            Throttled: the concurrency limit is reached, or no environment was free in time.
        """
        fingerprint = self.launcher.fingerprint(folder)
        until = time.monotonic() + WAIT_SECONDS
        with self._lock:
            while not self._stopped.is_set() and not self._is_full(folder):
                sandbox = self._find(folder, fingerprint)
                if sandbox:
                    self._busy[sandbox] = folder
                    return sandbox
                if not self._lock.wait(until - time.monotonic()):
                    break
        raise Throttled(folder)

    def _is_full(self, folder: str) -> bool:
        reserved = self.launcher.reserved(folder)
        return reserved is not None and self._running(folder) >= reserved

    def _running(self, folder: str) -> int:
        return list(self._busy.values()).count(folder)

    def _find(self, folder: str, fingerprint: object) -> Sandbox | None:
        """Return an environment that is idle or may start now; None if there is neither."""
        idle = self._idle.setdefault(folder, [])
        usable = [sandbox for sandbox in idle if sandbox.alive and sandbox.fingerprint == fingerprint]
        self._end([sandbox for sandbox in idle if sandbox not in usable])
        idle[:] = usable
        if idle:
            return idle.pop()
        if not self._starts or self._running(folder) >= CONCURRENCY:
            return None
        self._starts -= 1
        return self.launcher.make(folder, fingerprint)

    def _initialize(self, sandbox: Sandbox) -> float | None:
        """Start the process of an environment; then the next process may start. Return the milliseconds of its init."""
        try:
            return sandbox.initialize()
        finally:
            with self._lock:
                self._starts += 1
                self._lock.notify_all()

    def _give_back(self, sandbox: Sandbox) -> None:
        with self._lock:
            folder = self._busy.pop(sandbox)
            if self.reuse and sandbox.alive and not self._stopped.is_set():
                self._idle[folder].append(sandbox)
            else:
                self._end([sandbox])
            self._lock.notify_all()

    def _end(self, sandboxes: list[Sandbox]) -> None:
        for sandbox in sandboxes:
            sandbox.end()
        self._ending += sandboxes

    def _check(self) -> None:
        """Check the memory of processes, and wait for those that were killed, until the fleet stops."""
        while not self._stopped.wait(CHECK_SECONDS):
            with self._lock:
                busy = list(self._busy)
                ended = self._ending
                self._ending = []
            for sandbox in busy:
                sandbox.check_memory()
            for sandbox in ended:
                sandbox.join()
