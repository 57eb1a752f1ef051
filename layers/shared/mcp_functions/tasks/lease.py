"""The lease of a worker: the time in which no other worker may take its task.

A worker is a Lambda invocation that runs one round of a task. It renews its lease from a thread, so that a long step
keeps it. If the worker dies, the lease ends, and another worker takes the task.

A worker may lose its lease without knowing it, for example while Lambda freezes it. So the task has an epoch: the
number of workers that have taken it. Every write checks that the epoch is still the one of this worker:

    worker 1 takes the task     epoch 1
    worker 1 sleeps, its lease ends
    worker 2 takes the task     epoch 2
    worker 1 saves a step       LeaseLost: nothing is written
"""

from __future__ import annotations

import logging
import time
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

    def __init__(  # noqa: PLR0913 - the task's key and state, the round, the time and what tests replace
        self,
        store: TaskStore,
        task_id: str,
        owner: str | None,
        task: Task,
        round_: Round,
        *,
        milliseconds: int,
        now: Callable[[], float],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Hold the lease of a task that the worker has just taken, and connect it with the round.

        The round renews the lease before each step, and saves its record after each step.

        Args:
            store: the tasks of the function.
            task_id: the task's id.
            owner: the digest of the task's principal; None on a server without sign-in.
            task: the state after the worker took the task.
            round_: the round that the worker runs.
            milliseconds: the length of the lease.
            now: the clock, in unix seconds.
            sleep: the function that waits some seconds.
        """
        self.task_id = task_id
        self.owner = owner
        self.epoch = task.epoch
        self._store = store
        self._round = round_
        self._milliseconds = milliseconds
        self._now = now
        self._sleep = sleep
        self._lock = Lock()  # threads of this worker write one after the other, so that their writes do not conflict
        self._round_ended = Event()
        round_.must_stop = self._renew_before_step
        round_.on_step_recorded = self._save_step

    def change(self, transition: Callable[[Task], Task]) -> Task:
        """Write the next state of the task and return it; try again while the table is unavailable.

        Raises:
            LeaseLost: the worker has lost its lease, as the transition found. Nothing is written.
        """
        with self._lock:
            for pause in WRITE_PAUSES:
                try:
                    return self._write(transition)
                except TemporarilyUnavailable:
                    self._sleep(pause)
            return self._write(transition)

    def renew(self) -> Task:
        """Renew the lease and return the task, which the client may have cancelled; LeaseLost if it is too late.

        In the first half of the lease this only checks that the worker still has the task, without a write.
        """

        def transition(task: Task) -> Task:
            until = self._new_end()
            if until - task.until < self._milliseconds // 2:
                until = task.until
            return transitions.renew(task, self.epoch, until, self._message(task))

        return self.change(transition)

    @contextmanager
    def renewed_by_thread(self) -> Iterator[None]:
        """Renew the lease in a thread until the end of the block."""
        thread = Thread(target=self._renew_until_round_ends, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._round_ended.set()
            thread.join()

    def _renew_until_round_ends(self) -> None:
        seconds = self._milliseconds / 1000 / 3  # one renewal may fail before the lease ends
        while not self._round_ended.wait(seconds):
            try:
                self.renew()
            except LeaseLost:
                return  # the round finds this out by itself before its next step
            except McpError as error:
                log.warning("a lease was not renewed: %s", error.reason)

    def _renew_before_step(self) -> bool:
        """Renew the lease. Return True if the round must end before the step: it lost the task, or is cancelled."""
        try:
            return self.renew().cancel
        except LeaseLost:
            return True

    def _save_step(self) -> None:
        """Save the round's record, or end the round: after a step that was not saved, no other step may run."""

        def transition(task: Task) -> Task:
            # The record is read here, under the lock: a slower thread must not overwrite it with an older one.
            progress = Progress(self.epoch, self._new_end(), round_record(self._round), self._message(task))
            return transitions.save_progress(task, progress)

        try:
            self.change(transition)
        except LeaseLost:
            self._round.end()

    def _message(self, task: Task) -> str:
        return self._round.progress_message or task.message

    def _new_end(self) -> int:
        """Return when a lease ends that begins now, in unix milliseconds."""
        return int(self._now() * 1000) + self._milliseconds

    def _write(self, transition: Callable[[Task], Task]) -> Task:
        try:
            _before, after = self._store.change(self.task_id, self.owner, transition)
        except UnknownTask:
            raise LeaseLost from None  # the task was deleted, and for a worker that is the same
        return after


def round_record(round_: Round) -> dict[str, Any]:
    """Return what the next round must know: the answers and steps so far.

    `sheds`, the number of rounds that ended for lack of time, is left out: a task may have any number of them.
    """
    return {name: value for name, value in round_.next_record().items() if name != "sheds"}
