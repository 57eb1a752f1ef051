"""All execution environments of a stack: a request takes one, and gives it back.

An environment (`Sandbox`) is a process of one function, and runs one request at a time:

    idle      waits for a request
    busy      runs a request; then it is idle again
    ending    was killed, because its files have changed, it has crashed, or environments are not reused

A request without an idle environment waits until one is idle, or until it may start a new one. So many short requests
share a few processes, and long requests get one each.
"""

import os
import time
import uuid
from itertools import chain
from threading import Condition, Event, Thread
from typing import Self

from mcp_functions_harness.environment import arn, function_name
from mcp_functions_harness.lambdas.service import Outcome, Throttled
from mcp_functions_harness.runtime.api import Task
from mcp_functions_harness.runtime.launcher import Launcher
from mcp_functions_harness.runtime.sandbox import ProcessGoneError, Sandbox

# How many processes one function may have. All functions together have no limit: functions/mcp forwards requests to the
# other functions. With a limit it could hold the last process, and wait for ever for one of theirs.
CONCURRENCY = 32
WAIT_SECONDS = 29.0  # longest wait for a free process; API Gateway gives up after 30
# How many processes may start at once. On Lambda each start has its own processor; here all share a few. Two at least,
# so that a start that hangs does not block the others.
CONCURRENT_STARTS = max(2, os.cpu_count() or 1)
CHECK_SECONDS = 0.05  # pause between two checks of the processes' memory


class Fleet:
    """The environments of every function, inside a `with` block."""

    def __init__(self, launcher: Launcher, *, reuse: bool) -> None:
        """Start without environments; with `reuse`, an environment takes a second request."""
        self.launcher = launcher
        self._reuse = reuse
        self._stopped = Event()
        # The lock guards the fields below. It is notified when a waiting request may find an environment.
        self._lock = Condition()
        self._idle: dict[str, list[Sandbox]] = {}  # by the folder of the function
        self._busy: dict[Sandbox, str] = {}  # environment -> folder of the function
        self._ending: list[Sandbox] = []  # `_supervise` waits for their ends
        self._free_starts = CONCURRENT_STARTS  # how many more processes may start now
        self._supervisor = Thread(target=self._supervise, daemon=True)

    def __enter__(self) -> Self:
        """Start the thread that checks memory."""
        self._supervisor.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """End every process, and wait until all have ended."""
        self._stopped.set()
        with self._lock:
            sandboxes = [*self._busy, *self._ending, *chain(*self._idle.values())]
            self._idle.clear()
            self._lock.notify_all()
        for sandbox in sandboxes:
            sandbox.end()
        for sandbox in sandboxes:
            sandbox.join()
        self._supervisor.join()

    def run(self, folder: str, event: bytes) -> Outcome:
        """Run one request of the function in a folder; the event is JSON.

        Raises:
            Throttled: the concurrency limit is reached, or no process was free in time.
        """
        now = time.time()
        trace = f"Root=1-{int(now):08x}-{uuid.uuid4().hex[:24]};Parent={uuid.uuid4().hex[:16]};Sampled=0"
        while True:
            task = Task(str(uuid.uuid4()), event, arn(function_name(folder)), trace)
            sandbox = self._take(folder)
            try:
                if sandbox.is_new:
                    self._initialize(sandbox)
                return sandbox.invoke(task)
            except ProcessGoneError:
                continue  # the process ended while it was idle; another one takes the event
            finally:
                self._give_back(sandbox)

    def kill_only_process(self, folder: str) -> bool:
        """Kill the process that runs a request of a function, if there is exactly one; return whether there was."""
        with self._lock:
            running = [sandbox for sandbox, busy_folder in self._busy.items() if busy_folder == folder]
        if len(running) != 1:
            return False
        running[0].end()
        return True

    def _take(self, folder: str) -> Sandbox:
        """Wait for an environment, idle or new, and note that it is busy."""
        fingerprint = self.launcher.fingerprint(folder)
        deadline = time.monotonic() + WAIT_SECONDS
        with self._lock:
            while not self._stopped.is_set() and not self._is_full(folder):
                sandbox = self._find(folder, fingerprint)
                if sandbox:
                    self._busy[sandbox] = folder
                    return sandbox
                if not self._lock.wait(deadline - time.monotonic()):
                    break  # the time is over
        raise Throttled(folder)

    def _is_full(self, folder: str) -> bool:
        """Whether the reserved concurrency of a function is used up. Lambda refuses such a request at once."""
        reserved = self.launcher.reserved(folder)
        return reserved is not None and self._count_busy(folder) >= reserved

    def _count_busy(self, folder: str) -> int:
        return list(self._busy.values()).count(folder)

    def _find(self, folder: str, fingerprint: object) -> Sandbox | None:
        """Return an idle environment, or else a new one if it may start now; None if the request must wait."""
        idle = self._idle.setdefault(folder, [])
        usable = [sandbox for sandbox in idle if sandbox.alive and sandbox.fingerprint == fingerprint]
        self._end([sandbox for sandbox in idle if sandbox not in usable])
        idle[:] = usable
        if idle:
            return idle.pop()
        if self._free_starts == 0 or self._count_busy(folder) >= CONCURRENCY:
            return None
        self._free_starts -= 1
        return self.launcher.make(folder, fingerprint)

    def _initialize(self, sandbox: Sandbox) -> None:
        """Start the process of an environment; then the next process may start."""
        try:
            sandbox.initialize()
        finally:
            with self._lock:
                self._free_starts += 1
                self._lock.notify_all()

    def _give_back(self, sandbox: Sandbox) -> None:
        with self._lock:
            folder = self._busy.pop(sandbox)
            if self._reuse and sandbox.alive and not self._stopped.is_set():
                self._idle[folder].append(sandbox)
            else:
                self._end([sandbox])
            self._lock.notify_all()

    def _end(self, sandboxes: list[Sandbox]) -> None:
        for sandbox in sandboxes:
            sandbox.end()
        self._ending += sandboxes

    def _supervise(self) -> None:
        """Kill processes with too much memory, and wait for killed ones to end, until the fleet stops."""
        while not self._stopped.wait(CHECK_SECONDS):
            with self._lock:
                busy = list(self._busy)
                ended = self._ending
                self._ending = []
            for sandbox in busy:
                sandbox.check_memory()
            for sandbox in ended:
                sandbox.join()
