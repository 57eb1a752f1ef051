"""A task and the worker (a Lambda invocation) that runs its next round.

The worker has the task until a time, the end of its lease, and a thread renews the lease. If the worker dies, the lease
ends, and another worker takes the task. A worker that lost its lease writes nothing more.
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

    from mcp_functions.rounds.audit import AuditRecord
    from mcp_functions.rounds.round import Round
    from mcp_functions.tasks.task import Task
    from mcp_functions.tasks.task_store import TaskStore

log = logging.getLogger("mcp_functions")

WRITE_PAUSES = (0.1, 0.5, 2.0)  # seconds between the attempts to write while the table is unavailable


class LeasedTask:
    """A task and its worker: one thread works, another renews the lease, and a lock orders their writes."""

    def __init__(  # noqa: PLR0913 - the task's key, its state, the lease and the sources that tests replace
        self,
        store: TaskStore,
        task_id: str,
        owner: str | None,
        task: Task,
        round_: Round,
        *,
        lease: int,
        now: Callable[[], float],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Hold a task that the worker has just taken.

        The round will save each step here, and ask before each step whether it must stop.

        Args:
            store: the tasks of the function.
            task_id: the task's id.
            owner: the digest of the task's principal; None on a server without sign-in.
            task: the state after the worker took the task.
            round_: the round that the worker runs.
            lease: the length of the lease, in milliseconds.
            now: the clock, in unix seconds.
            sleep: the function that waits some seconds.
        """
        self.task_id = task_id
        self.owner = owner
        self.epoch = task.epoch
        self.tool = task.tool
        self.round = round_
        self.has_audited_questions = False  # True once the author's audit got the questions of the round
        self._store = store
        self._task = task
        self._lease = lease
        self._now = now
        self._sleep = sleep
        self._lost = False  # True once a write has shown that the worker lost its lease
        self._lock = Lock()  # held during each write
        self._done = Event()  # set when the round has ended
        round_.on_step_recorded = self._save
        round_.must_stop = self.must_stop

    def change(self, transition: Callable[[Task], Task]) -> Task:
        """Write the next state of the task and return it; LeaseLost if the worker has lost its task."""
        with self._lock:
            if self._lost:
                raise LeaseLost
            try:
                self._task = self._write(transition)
            except LeaseLost:
                self._lost = True
                raise
            return self._task

    def must_stop(self) -> bool:
        """Renew the lease. Return whether the worker must stop: it lost the task, or the client has cancelled it."""
        try:
            return self.change(self._renew).cancel
        except LeaseLost:
            return True

    def audit(self, report: Callable[[AuditRecord], object], *, asks: bool) -> None:
        """Report the round to the author's audit, with its questions if it `asks`.

        The report precedes the write that publishes the questions, because a write without a response may publish them.
        A worker that lost its task reports nothing, because another worker runs this round.
        """
        must_stop = self.must_stop()
        if self._lost:
            return
        will_ask = asks and not must_stop
        report(self.round.audit(self.tool, self.owner, sent=will_ask))
        self.has_audited_questions = will_ask

    @contextmanager
    def renewing(self, seconds: float) -> Iterator[None]:
        """Renew the lease every so many seconds, until the end of the block."""
        thread = Thread(target=self._renew_until_done, args=(seconds,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._done.set()
            thread.join()

    def _renew_until_done(self, seconds: float) -> None:
        while not self._done.wait(seconds):
            try:
                self.must_stop()  # it renews the lease; the round asks by itself before its next step
            except McpError as error:
                log.warning("a lease was not renewed: %s", error.reason)

    def _renew(self, task: Task) -> Task:
        """Renew the lease in its second half; before that, only check that the worker still has the task."""
        until = self._lease_end()
        if until - task.until < self._lease // 2:
            until = task.until
        return transitions.renew(task, self.epoch, until, self._message())

    def _save(self) -> None:
        """Save the round's record, or end the round: after a step that was not saved, no other step may run."""
        progress = Progress(self.epoch, self._lease_end(), round_record(self.round), self._message())
        try:
            self.change(lambda task: transitions.save_progress(task, progress))
        except LeaseLost:
            self.round.end()

    def _message(self) -> str:
        return self.round.progress_message or self._task.message

    def _lease_end(self) -> int:
        """Return when a lease ends that begins now, in unix milliseconds."""
        return int(self._now() * 1000) + self._lease

    def _write(self, transition: Callable[[Task], Task]) -> Task:
        """Write the next state; try again while the table is unavailable."""
        for pause in WRITE_PAUSES:
            try:
                return self._write_once(transition)
            except TemporarilyUnavailable:
                self._sleep(pause)
        return self._write_once(transition)

    def _write_once(self, transition: Callable[[Task], Task]) -> Task:
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
