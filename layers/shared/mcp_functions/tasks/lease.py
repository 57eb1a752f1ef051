"""A task that a worker has leased. A thread renews the lease; a worker that lost its lease writes nothing more."""

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

    from mcp_functions.rounds.round import AuditRecord, Round
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
        """Hold a task that the worker has just taken, with a lease of so many milliseconds.

        The round saves each step, and asks before each step whether it must stop.
        """
        self.task_id, self.owner, self.epoch, self.tool, self.round = task_id, owner, task.epoch, task.tool, round_
        self.has_audited_questions = False  # True once the author's audit got the questions of the round
        self._store, self._task, self._lease, self._now, self._sleep = store, task, lease, now, sleep
        self._lost, self._lock, self._done = False, Lock(), Event()
        round_.on_step_recorded, round_.must_stop = self._save, self.must_stop

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
        """Return whether the worker must stop: another worker has the task, or the client has cancelled it."""
        try:
            return self.change(self._renew).cancel
        except LeaseLost:
            return True

    def audit(self, report: Callable[[AuditRecord], object], *, asks: bool) -> None:
        """Report the round to the author's audit, with its questions if it `asks`.

        The report precedes the write that publishes the questions, because an unconfirmed write may publish them.
        A worker that lost its task reports nothing, because another worker runs this round.
        """
        sent = not self.must_stop() and asks
        if not self._lost:
            report(self.round.audit(self.tool, self.owner, sent=sent))
            self.has_audited_questions = sent

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
                self.must_stop()
            except McpError as error:
                log.warning("a lease was not renewed: %s", error.reason)

    def _renew(self, task: Task) -> Task:
        """Renew the lease in its second half; before that, only check that the worker still has the task."""
        end = self._lease_end()
        if end - task.until < self._lease // 2:
            end = task.until
        return transitions.renew(task, self.epoch, end, self._message())

    def _save(self) -> None:
        """Save the round's record, or end the round: a step without a saved record must not be followed by another."""
        progress = Progress(self.epoch, self._lease_end(), round_record(self.round), self._message())
        try:
            self.change(lambda task: transitions.save_progress(task, progress))
        except LeaseLost:
            self.round.end()

    def _message(self) -> str:
        return self.round.progress_message or self._task.message

    def _lease_end(self) -> int:
        return int(self._now() * 1000) + self._lease

    def _write(self, transition: Callable[[Task], Task]) -> Task:
        for pause in WRITE_PAUSES:
            try:
                return self._write_once(transition)
            except TemporarilyUnavailable:
                self._sleep(pause)
        return self._write_once(transition)

    def _write_once(self, transition: Callable[[Task], Task]) -> Task:
        try:
            return self._store.change(self.task_id, self.owner, transition)[1]
        except UnknownTask:
            raise LeaseLost from None


def round_record(round_: Round) -> dict[str, Any]:
    """Return a round's record without `sheds`: a task may be interrupted any number of times."""
    return {name: value for name, value in round_.next_record().items() if name != "sheds"}
