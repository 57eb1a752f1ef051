"""The lease of a worker: the time in which no other worker may take its task.

A worker is a Lambda invocation that runs the task's tool once. While it runs, a thread renews the lease. If the worker
dies, the lease ends, and another worker takes the task.

A worker may lose its lease without knowing it, for example while Lambda freezes it. So the task has an epoch: the
number of workers that have taken it. Every write of a worker checks that the epoch is still its own:

    worker 1 takes the task     epoch 1
    worker 1 sleeps, its lease ends
    worker 2 takes the task     epoch 2
    worker 1 saves a step       LeaseLost: nothing is written
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import replace
from threading import Event, Lock, Thread
from time import sleep
from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import McpError, TemporarilyUnavailable, UnknownTask
from mcp_functions.tasks import transitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_functions.rounds.round import Round
    from mcp_functions.tasks.task import Task

log = logging.getLogger("mcp_functions")

RETRY_PAUSES = (0.1, 0.5, 2.0)  # seconds before each further attempt of `change`


class LeaseLost(Exception):
    """The worker has lost its task: another worker has taken it, it has ended, or it was deleted."""


class Lease:
    """The lease of the worker that runs a task, and the writes of this worker."""

    def __init__(
        self,
        change_task: Callable[[Callable[[Task], Task]], Task],
        task: Task,
        *,
        lease_ms: int,
        now_ms: Callable[[], int],
    ) -> None:
        """Hold the lease, which `transitions.take` has begun; `change_task` is `TaskStore.change` of this task."""
        self._change_task = change_task
        self._epoch = task.epoch
        self._lease_ms = lease_ms
        self._now_ms = now_ms
        self._lock = Lock()  # of two writes at the same time the table would refuse one
        self._round_ended = Event()

    def change(self, transition: Callable[[Task], Task]) -> Task:
        """Write the state that `transition` returns, once the table is available; LeaseLost if the task is lost."""
        with self._lock:
            for pause in RETRY_PAUSES:
                try:
                    return self._write(transition)
                except TemporarilyUnavailable:
                    # Other threads wait for the lock meanwhile: the table is unavailable for their writes as well.
                    sleep(pause)
            return self._write(transition)  # the last attempt: its error reaches the caller

    def renew(self, round_: Round) -> Task:
        """Renew the lease and return the task, which the client may have cancelled; LeaseLost as in `change`.

        If more than half of the lease is left, the end of the lease stays the same, which saves a write.
        """

        def renewed(task: Task) -> Task:
            lease_until = task.lease_until
            if lease_until - self._now_ms() <= self._lease_ms // 2:
                lease_until = self._new_end()
            return replace(task, lease_until=lease_until, message=round_.progress_message or task.message)

        return self.change(renewed)

    def renew_before_step(self, round_: Round) -> bool:
        """Renew the lease; return False if the task is cancelled or lost, so that the step must not run."""
        try:
            return not self.renew(round_).cancel
        except LeaseLost:
            return False

    def save_step(self, round_: Round) -> bool:
        """Save the round's record after a step, and renew the lease; return False if the task is lost."""

        def saved(task: Task) -> Task:
            # `change` has the lock here, so that no slower thread overwrites this record with an older one.
            return replace(transitions.save_progress(task, round_), lease_until=self._new_end())

        try:
            self.change(saved)
        except LeaseLost:
            return False
        return True

    @contextmanager
    def renewed_by_thread(self, round_: Round) -> Iterator[None]:
        """Renew the lease in a thread until the end of the block, so that a long step does not lose it."""
        thread = Thread(target=self._renew_until_round_ends, args=[round_], daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._round_ended.set()
            thread.join()

    def _renew_until_round_ends(self, round_: Round) -> None:
        pause_seconds = self._lease_ms / 1000 / 3  # three renewals in the time of one lease
        while not self._round_ended.wait(pause_seconds):
            try:
                self.renew(round_)
            except LeaseLost:
                return  # the round finds this out by itself before its next step
            except McpError as error:
                log.warning("a lease was not renewed: %s", error.reason)

    def _new_end(self) -> int:
        """Return when a lease ends that begins now, in unix milliseconds."""
        return self._now_ms() + self._lease_ms

    def _write(self, transition: Callable[[Task], Task]) -> Task:
        def checked(task: Task) -> Task:
            # A late worker may continue: a lease that is over does no harm until another worker has taken the task.
            # `lease_until` is 0 if no worker has the task, because it waits or has ended.
            if task.epoch != self._epoch or not task.lease_until:
                raise LeaseLost
            return transition(task)

        try:
            return self._change_task(checked)
        except UnknownTask:
            raise LeaseLost from None  # the task was deleted
