"""The lease of a worker: the time in which no other worker may take its task.

A worker is a Lambda invocation that runs one round of a task. If the worker dies, its lease ends, and another worker
takes the task. While it lives, these methods renew the lease and write its results:

    change               writes the next state of the task
    renew                renews the lease
    renewed_by_thread    renews the lease all the time while a round runs, so that a long step does not lose it
    renew_before_step    renews the lease, and tells whether the next step may run
    save_step            saves the record of the round after a step, and renews the lease

A worker may lose its lease without knowing it, for example while Lambda freezes it. So the task has an epoch: the
number of workers that have taken it. Every write checks that the epoch is still the one of this worker:

    worker 1 takes the task     epoch 1
    worker 1 sleeps, its lease ends
    worker 2 takes the task     epoch 2
    worker 1 saves a step       LeaseLost: nothing is written
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import McpError, TemporarilyUnavailable, UnknownTask
from mcp_functions.tasks import transitions
from mcp_functions.tasks.transitions import LeaseLost, Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_functions.rounds.round import Round
    from mcp_functions.tasks.task import Task

log = logging.getLogger("mcp_functions")


class Lease:
    """The lease of the worker that runs a round of a task, and the writes of this worker."""

    def __init__(
        self,
        change_task: Callable[[Callable[[Task], Task]], Task],
        epoch: int,
        *,
        lease_ms: int,
        now_ms: Callable[[], int],
        sleep: Callable[[float], None],
    ) -> None:
        """Hold the lease of a task that the worker has just taken.

        Args:
            change_task: writes the next state of this task (`TaskStore.change`).
            epoch: the epoch of the task since the worker took it.
            lease_ms: the length of the lease in milliseconds.
            now_ms: the clock, in unix milliseconds.
            sleep: the function that waits some seconds.
        """
        self.epoch = epoch
        self._change_task = change_task
        self._lease_ms = lease_ms
        self._now_ms = now_ms
        self._sleep = sleep
        self._lock = Lock()  # of two writes at the same time the table would refuse one
        self._round_ended = Event()

    def change(self, transition: Callable[[Task], Task]) -> Task:
        """Write the next state of the task and return it; try again while the table is unavailable.

        Raises:
            LeaseLost: another worker has the lease, or the task has ended. Nothing is written.
        """
        with self._lock:
            for pause in (0.1, 0.5, 2.0):  # in seconds
                try:
                    return self._write(transition)
                except TemporarilyUnavailable:
                    # Other threads wait for the lock meanwhile: the table is unavailable for their writes as well.
                    self._sleep(pause)
            return self._write(transition)  # the last attempt: its error reaches the caller

    def renew(self, round_: Round) -> Task:
        """Renew the lease and return the task, which the client may have cancelled; LeaseLost as in `change`.

        If more than half of the lease is left, the end of the lease stays the same, which saves a write.
        """

        def transition(task: Task) -> Task:
            lease_until = task.lease_until
            remaining = lease_until - self._now_ms()
            if remaining <= self._lease_ms // 2:
                lease_until = self._new_end()
            return transitions.renew(task, self.epoch, lease_until, round_.progress_message or task.message)

        return self.change(transition)

    def renew_before_step(self, round_: Round) -> bool:
        """Renew the lease; return False if the task is cancelled or lost, so that the step must not run."""
        try:
            return not self.renew(round_).cancel
        except LeaseLost:
            return False

    def save_step(self, round_: Round) -> bool:
        """Save the round's record after a step, and renew the lease; return False if the task is lost."""

        def transition(task: Task) -> Task:
            # `change` has the lock here, so that no slower thread overwrites this record with an older one.
            progress = Progress(self.epoch, round_record(round_), round_.progress_message or task.message)
            return transitions.save_progress(task, progress, self._new_end())

        try:
            self.change(transition)
        except LeaseLost:
            return False
        return True

    @contextmanager
    def renewed_by_thread(self, round_: Round) -> Iterator[None]:
        """Renew the lease in a thread until the end of the block, which runs the round."""
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
        try:
            return self._change_task(transition)
        except UnknownTask:
            raise LeaseLost from None  # the task was deleted, so this worker must stop as well


def round_record(round_: Round) -> dict[str, Any]:
    """Return what the next round must know: the answers and steps so far.

    The member `sheds`, the number of rounds that ended for lack of time, is left out. A task may have any number of
    such rounds, and another number alone is no progress.
    """
    return {name: value for name, value in round_.next_record().items() if name != "sheds"}
