"""The lease of a worker: the time in which no other worker may take its task.

A worker is a Lambda invocation that runs one round of a task. If the worker dies, its lease ends, and another worker
takes the task. While it lives, these methods renew the lease and write its results:

    renewed_by_thread    while the round runs: renews the lease several times, so that a long step does not lose it
    renew_before_step    before each step: renews the lease; the round ends if the task is lost or cancelled
    save_step            after each step: saves the round's record, and renews the lease
    change               any other write of the worker, as at the end of the round

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
    from mcp_functions.tasks.task_store import TaskStore

log = logging.getLogger("mcp_functions")

WRITE_PAUSES = (0.1, 0.5, 2.0)  # seconds between the attempts to write while the table is unavailable


class Lease:
    """The lease of the worker that runs a round of a task, and the writes of this worker."""

    def __init__(  # noqa: PLR0913 - the task's key and epoch, the time and what tests replace
        self,
        store: TaskStore,
        task_id: str,
        owner: str | None,
        epoch: int,
        *,
        milliseconds: int,
        now: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        """Hold the lease of a task that the worker has just taken.

        Args:
            store: the tasks of the function.
            task_id: the task's id.
            owner: the digest of the task's principal; None on a server without sign-in.
            epoch: the epoch of the task since the worker took it.
            milliseconds: the length of the lease.
            now: the clock, in unix seconds.
            sleep: the function that waits some seconds.
        """
        self.epoch = epoch
        self._task_id = task_id
        self._owner = owner
        self._store = store
        self._milliseconds = milliseconds
        self._now = now
        self._sleep = sleep
        self._lock = Lock()  # threads of this worker write one after the other, so that their writes do not conflict
        self._round_ended = Event()

    def change(self, transition: Callable[[Task], Task]) -> Task:
        """Write the next state of the task and return it; try again while the table is unavailable.

        Raises:
            LeaseLost: another worker has the lease, or the task has ended. Nothing is written.
        """
        with self._lock:
            for pause in WRITE_PAUSES:
                try:
                    return self._write(transition)
                except TemporarilyUnavailable:
                    self._sleep(pause)  # under the lock: the other threads could not write either
            return self._write(transition)  # the last attempt: its error reaches the caller

    def renew(self, round_: Round) -> Task:
        """Renew the lease and return the task, which the client may have cancelled; LeaseLost if it is too late.

        A lease that has more than half of its time left is only checked, without a write.
        """

        def transition(task: Task) -> Task:
            end = self._new_end()
            if end - task.until < self._milliseconds // 2:  # more than half of the lease is left
                end = task.until
            return transitions.renew(task, self.epoch, end, round_.progress_message or task.message)

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
            # The record is read here, under the lock: a slower thread must not overwrite it with an older one.
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
        seconds = self._milliseconds / 1000 / 3  # one renewal may fail before the lease ends
        while not self._round_ended.wait(seconds):
            try:
                self.renew(round_)
            except LeaseLost:
                return  # the round finds this out by itself before its next step
            except McpError as error:
                log.warning("a lease was not renewed: %s", error.reason)

    def _new_end(self) -> int:
        """Return when a lease ends that begins now, in unix milliseconds."""
        return int(self._now() * 1000) + self._milliseconds

    def _write(self, transition: Callable[[Task], Task]) -> Task:
        try:
            return self._store.change(self._task_id, self._owner, transition)
        except UnknownTask:
            raise LeaseLost from None  # the task was deleted, and for a worker that is the same


def round_record(round_: Round) -> dict[str, Any]:
    """Return what the next round must know: the answers and steps so far.

    `sheds`, the number of rounds that ended for lack of time, is left out: a task may have any number of them, and a
    record that only counts them is no progress.
    """
    return {name: value for name, value in round_.next_record().items() if name != "sheds"}
