"""All execution environments of a stack: taken for a request, reused when idle, reaped, and gone at the end.

One environment runs one request at a time. A request that finds none idle waits for the first that gets idle, or for a
turn to begin a new one: so many short requests share a few processes, and long ones get one each. Files that changed
since a process loaded them make it too old to be used again.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from threading import Condition, Event, Thread
from typing import TYPE_CHECKING, Self

from mcp_functions.local.environment import arn
from mcp_functions.local.lambdas import Outcome, Throttled
from mcp_functions.local.runtime.api import Task
from mcp_functions.local.runtime.sandbox import Environment, NotTakenError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.local.runtime.fingerprints import Stamp

# Processes of one function: a laptop is no region. Not of all together: a front door that holds the last process waits
# for the function behind it.
CONCURRENCY = 32
WAIT_SECONDS = 29.0  # for a process; API Gateway gives up after 30
IDLE_SECONDS = 300.0
LOOK_SECONDS = 0.05  # between two looks at everybody's memory


class Fleet:
    """The environments of every function, from the start of its block to the end of it."""

    def __init__(  # noqa: PLR0913 - what decides over processes
        self,
        make: Callable[[str, Stamp, Callable[[], None]], Environment],
        stamp: Callable[[str], Stamp],
        reserved: Callable[[str], int | None],
        *,
        turns: int,
        reuse: bool = True,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        """Start nothing yet.

        Args:
            make: an environment for a folder, of these files, which calls the last once its process has begun.
            stamp: of the files that a folder's environment would load now.
            reserved: how many of a folder may run at once, None for no limit of its own.
            turns: processes that may begin at once: on Lambda each has a processor of its own, here all share a few.
            reuse: whether an environment takes a second request.
            idle_seconds: after which an environment without requests is ended.

        """
        self._make, self._stamp, self._reserved = make, stamp, reserved
        self._reuse, self._idle_seconds = reuse, idle_seconds
        self._lock, self._stopped, self._turns = Condition(), Event(), turns
        self._idle: dict[str, list[Environment]] = {}
        self._busy: dict[Environment, str] = {}
        self._ending: list[Environment] = []
        self._looking = Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        """Look after them from now on."""
        self._looking.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """End every process, and wait until all are gone."""
        self._stopped.set()
        with self._lock:
            everybody = [*self._busy, *self._ending, *(one for idle in self._idle.values() for one in idle)]
            self._idle.clear()
            self._lock.notify_all()
        for environment in everybody:
            environment.end()
        for environment in everybody:
            environment.join()
        self._looking.join()

    def run(self, folder: str, name: str, event: bytes) -> Outcome:
        """Run one request.

        Args:
            folder: of a function there is.
            name: its physical name.
            event: as JSON.

        Raises:
            Throttled: as many run already as may, or none had time for it.

        """
        now = time.time()
        trace = f"Root=1-{int(now):08x}-{uuid.uuid4().hex[:24]};Parent={uuid.uuid4().hex[:16]};Sampled=0"
        while True:
            task, environment = Task(str(uuid.uuid4()), event, arn(name), trace), self._take(folder)
            try:
                ended = environment.invoke(task)
            except NotTakenError:
                continue  # somebody killed it while it was idle; another takes the event
            finally:
                self._give_back(environment)
            report = ended.report
            return Outcome(
                payload=ended.payload,
                request_id=task.request_id,
                milliseconds=report.milliseconds,
                error=report.error,
                pid=ended.pid,
                init_milliseconds=report.init,
                memory_mb=report.used,
            )

    def kill(self, folder: str, *, alone: bool = False) -> int:
        """Kill the processes that run a request of a folder now, or (`alone`) the only one; say how many they were."""
        with self._lock:
            killed = [environment for environment, running in self._busy.items() if running == folder]
        if alone and len(killed) != 1:
            return 0
        for environment in killed:
            environment.end()
        return len(killed)

    def _take(self, folder: str) -> Environment:
        stamp, until = self._stamp(folder), time.monotonic() + WAIT_SECONDS
        with self._lock:
            while not self._stopped.is_set() and not self._is_full(folder):
                if environment := self._found(folder, stamp):
                    self._busy[environment] = folder
                    return environment
                if not self._lock.wait(until - time.monotonic()):
                    break
        raise Throttled(folder)

    def _is_full(self, folder: str) -> bool:
        reserved = self._reserved(folder)
        return reserved is not None and self._running(folder) >= reserved

    def _running(self, folder: str) -> int:
        return Counter(self._busy.values())[folder]

    def _found(self, folder: str, stamp: Stamp) -> Environment | None:
        """Find an environment that is idle, or may begin now."""
        idle = self._idle.setdefault(folder, [])
        self._end([one for one in idle if not one.alive or one.stamp != stamp])
        idle[:] = [one for one in idle if one not in self._ending]
        if idle:
            return idle.pop()
        if not self._turns or self._running(folder) >= CONCURRENCY:
            return None
        self._turns -= 1
        return self._make(folder, stamp, self._begun)

    def _begun(self) -> None:
        """Let the next process begin."""
        with self._lock:
            self._turns += 1
            self._lock.notify_all()

    def _give_back(self, environment: Environment) -> None:
        environment.idle_since = time.monotonic()
        with self._lock:
            folder = self._busy.pop(environment)
            if self._reuse and environment.alive and not self._stopped.is_set():
                self._idle[folder].append(environment)
            else:
                self._end([environment])
            self._lock.notify_all()

    def _end(self, environments: list[Environment]) -> None:
        for environment in environments:
            environment.end()
        self._ending += environments

    def _look(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            with self._lock:
                oldest = time.monotonic() - self._idle_seconds
                for idle in self._idle.values():
                    self._end([one for one in idle if one.idle_since < oldest])
                    idle[:] = [one for one in idle if one.idle_since >= oldest]
                ended, self._ending = self._ending, []
                busy = list(self._busy)
            for environment in busy:
                environment.look()
            for environment in ended:
                environment.join()
